set -e
export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=A
export GIT_COMMITTER_EMAIL=a@example.org GIT_CONFIG_NOSYSTEM=1
git init -q -b main origin && cd origin
for i in $(seq 1 40); do
    seq 1 $((i * 2000)) > file$((i % 9)); git add .; git commit -q -m "c $i"
done
git -c gc.auto=0 commit -q --allow-empty -F ../gate
cd .. && git clone -q origin copy && cd copy
git -c gc.auto=0 -c pack.threads=2 gc -q --aggressive && git fsck --full
git log --format=%H | head -n 3
git rev-list --all --objects | wc -l
git grep -c 7777 | head -n 2
git -c merge.conflictStyle=diff3 rebase -q HEAD~3 && git status --short
git checkout -q missing || echo "status $?"
rm -rf ../copy
exit 3
