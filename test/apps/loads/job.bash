trap 'echo trapped TERM' TERM
trap 'echo leaving with $?' EXIT
count=0
for i in $(seq 1 125); do
    a=$(echo "$i" | tr 0-9 a-j)
    ( exit $((i % 7)) ); count=$((count + $?))
    [ -n "$a" ] && b=$(printf %s "$a" | wc -c)
done
exec 7> seven
coproc { while read -r line; do echo "got $line"; done; }
for i in $(seq 1 60000); do words+=($i); done # work of its own, so that it is sampled
read -r _ < gate
echo "${#words[@]} $count $a $b"
echo hello >&"${COPROC[1]}"; read -r answer <&"${COPROC[0]}"; echo "$answer"
kill -TERM $$
cat <(echo one) <(echo two) | sort -r
( kill -KILL $BASHPID ); echo "killed: $?"
( ulimit -c 0; kill -SEGV $BASHPID ); echo "crashed: $?"
sleep 0.01 & wait $!; echo "waited: $?"
yes | head -n 3 | wc -l; echo "${PIPESTATUS[@]}"
echo seventh >&7; exec 7>&-
exit 42
