"""Real programs run the same under the profiler: output, exit status, files; and are profiled."""

import hashlib
import os
import re
import shutil
import subprocess
import textwrap
import time

import pytest

from ports import reserved_port
from waiting import eventually

pytestmark = pytest.mark.load


def files_of(folder):
    """Returns relative path -> hash of every file that a run left behind."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, folder)] = digest
    return found


def without_pids(text):
    """Removes process ids: bash names a killed process: "job.sh: line 13: 4711 Killed"."""
    return re.sub(r"(line \d+:) +\d+ ", r"\1 PID ", text)


@pytest.fixture
def same(run, tmp_path):
    """same(command, prepare=None, ignore=()): runs `command` without and with the profiler, each in a new folder with
    the same name, asserts that nothing differs, and returns the profiled run."""

    def compare(command, prepare=None, ignore=(), stdin="", extra_env=None):
        outcomes = []
        for profiled in (False, True):
            folder = tmp_path / "work"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            if prepare:
                prepare(folder)
            outcome = run(
                command, profiled=profiled, cwd=folder, stdin=stdin, env=extra_env or {}, timeout=120
            )
            left = files_of(folder)
            outcomes.append((outcome, {k: v for k, v in left.items() if not k.startswith(ignore)}))
        (plain, plain_files), (profiled, profiled_files) = outcomes
        assert profiled.returncode == plain.returncode
        assert profiled.stdout == plain.stdout
        assert without_pids(profiled.stderr) == without_pids(plain.stderr)
        assert profiled_files == plain_files
        return profiled

    return compare


def write(name, text):
    def prepare(folder):
        (folder / name).write_text(textwrap.dedent(text))

    return prepare


CPP_SOURCE = """
    #include <algorithm>
    #include <functional>
    #include <iostream>
    #include <map>
    #include <regex>
    #include <string>
    #include <unordered_map>
    #include <vector>
    template <int N> struct deep { static int value() { return N + deep<N - 1>::value(); } };
    template <> struct deep<0> { static int value() { return 0; } };
    int main(int argc, char **argv) {
        std::map<std::string, std::vector<int>> all;
        std::unordered_map<std::string, std::function<int(int)>> calls;
        calls["x"] = [&](int x) { return x + argc; };
        for (int i = 0; i < argc; i++)
            all[argv[i]].push_back(calls["x"](i) + deep<200>::value());
        std::regex word("[a-z]+(b|c)*");
        for (auto &entry : all)
            if (std::regex_match(entry.first, word))
                std::cout << entry.first << entry.second.size();
        return 0;
    }
"""


def test_gcc_writes_the_same_object(same):
    profiled = same(
        ["g++", "-O2", "-g", "-pipe", "-c", "big.cpp", "-o", "big.o"], write("big.cpp", CPP_SOURCE)
    )
    compiler = profiled.instance("cc1plus")
    assert compiler.cpu_total() > 1e8, "cc1plus worked for a second"
    assert compiler.total("alloc_space") > 1 << 20
    # Debian's cc1plus is stripped, except for the dynamic symbols that it exports for plugins
    assert any(name.startswith(("ggc_", "c_parse", "cp_", "c_", "do_")) for name in compiler.names()), (
        "functions of cc1plus by name"
    )


def test_make_runs_ten_compilers(same):
    def prepare(folder):
        for i in range(10):
            (folder / f"part{i}.c").write_text(f"int part{i}(int x) {{ return x * {i} + 1; }}\n")
        objects = " ".join(f"part{i}.o" for i in range(10))
        (folder / "Makefile").write_text(f"all: {objects}\n%.o: %.c\n\t@gcc -O2 -pipe -c $<\n")

    same(["make", "-s", "-j2"], prepare)


PYTHON_JSON = """
    import json, threading
    def work(n, out):
        data = {"list": list(range(3000)), "text": "x" * 1000, "deep": [{"a": i} for i in range(500)]}
        for _ in range(n):
            data = json.loads(json.dumps(data))
        out.append(len(json.dumps(data)))
    out = []
    threads = [threading.Thread(target=work, args=(60, out)) for _ in range(4)]
    for t in threads: t.start()
    for t in threads: t.join()
    work(200, out)
    print(out)
"""


def test_python_threads(same):
    profiled = same(["/usr/bin/python3", "job.py"], write("job.py", PYTHON_JSON))
    python = profiled.instance("python3")
    assert python.cpu_total() > 1e8
    assert python.total("alloc_objects") > 0
    assert any("Eval" in name or "Py" in name for name in python.names())


PYTHON_PROCESSES = """
    import multiprocessing, os, subprocess, sys
    def square(x):
        total = 0
        for i in range(60000):
            total += i * x
        return total
    if __name__ == "__main__":
        for method in ("fork", "spawn"):
            context = multiprocessing.get_context(method)
            with context.Pool(3) as pool:
                print(method, sum(pool.map(square, range(40))))
        print(subprocess.run(["sh", "-c", "echo out; exit 9"], capture_output=True))
        died = subprocess.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"])
        print("died of", -died.returncode)
        pid = os.fork()
        if pid == 0:
            os._exit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_python_processes(same):
    same(["/usr/bin/python3", "job.py"], write("job.py", PYTHON_PROCESSES))


PYTHON_ITIMER = """
    import signal, time
    hits = []
    signal.signal(signal.SIGPROF, lambda *_: hits.append(1))
    signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)
    end = time.process_time() + 0.6
    while time.process_time() < end:
        sum(range(1000))
    signal.setitimer(signal.ITIMER_PROF, 0)
    print("handled" if len(hits) > 20 else "lost")
    print(signal.getsignal(signal.SIGPROF) is not None)
"""


def test_python_gets_its_own_sigprof(same):
    profiled = same(["/usr/bin/python3", "job.py"], write("job.py", PYTHON_ITIMER))
    assert profiled.stdout == "handled\nTrue\n"


def test_python_default_sigprof_kills(same):
    code = "import os, signal; os.kill(os.getpid(), signal.SIGPROF); print('alive')"
    profiled = same(["/usr/bin/python3", "-c", code])
    assert profiled.returncode == -27, "a SIGPROF from outside does what it did"


BASH_SCRIPT = r"""
    trap 'echo trapped TERM' TERM
    trap 'echo leaving with $?' EXIT
    count=0
    for i in $(seq 1 125); do
        a=$(echo "$i" | tr 0-9 a-j)
        ( exit $((i % 7)) ); count=$((count + $?))
        [ -n "$a" ] && b=$(printf %s "$a" | wc -c)
    done
    echo "$count $a $b"
    kill -TERM $$
    cat <(echo one) <(echo two) | sort -r
    ( kill -KILL $BASHPID ); echo "killed: $?"
    ( ulimit -c 0; kill -SEGV $BASHPID ); echo "crashed: $?"
    sleep 0.01 & wait $!; echo "waited: $?"
    yes | head -n 3 | wc -l; echo "${PIPESTATUS[@]}"
    exec 7> seven; echo seventh >&7; exec 7>&-
    exit 42
"""


def test_bash_forks(same):
    profiled = same(["bash", "job.sh"], write("job.sh", BASH_SCRIPT))
    assert profiled.returncode == 42
    assert "leaving with 42" in profiled.stdout


def test_dash_forks(same):
    same(["dash", "-c", "for i in 1 2 3 4 5; do (echo $i; exit $i); echo $?; done | cat; exit 6"])


SQLITE_SCRIPT = """
    CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
        INSERT INTO t SELECT i, 'row ' || (i * 7919 % 10007), i / 3.0 FROM n;
    CREATE INDEX x ON t(b);
    SELECT count(*), sum(c), max(b) FROM t;
    SELECT b, count(*) FROM t GROUP BY b ORDER BY 2 DESC, 1 LIMIT 5;
    DELETE FROM t WHERE a % 3 = 0;
    SELECT count(*) FROM t JOIN t u ON t.b = u.b WHERE t.a < 500;
    VACUUM;
    PRAGMA integrity_check;
"""


def test_sqlite(same):
    profiled = same(["sqlite3", "new.db"], stdin=SQLITE_SCRIPT)
    sqlite = profiled.instance("sqlite3")
    assert sqlite.cpu_total() > 1e8
    assert any(name.startswith("sqlite3") for name in sqlite.names())


PERL_SCRIPT = """
    my %h;
    for my $i (1 .. 400000) { $h{"key" . ($i % 5000)} .= chr(65 + $i % 26); }
    my @sorted = sort { length($h{$b}) <=> length($h{$a}) || $a cmp $b } keys %h;
    print "$sorted[0] ", length $h{$sorted[0]}, "\\n";
    my $pid = fork();
    if (!$pid) { exit 5 }
    waitpid($pid, 0);
    print $? >> 8, "\\n";
    $SIG{ALRM} = sub { print "alarm\\n" };
    alarm 1; select(undef, undef, undef, 1.5);
    print `echo from a shell`;
    die "the end\\n";
"""


def test_perl(same):
    profiled = same(["/usr/bin/perl", "job.pl"], write("job.pl", PERL_SCRIPT))
    assert "alarm\n" in profiled.stdout
    assert any(name.lower().startswith("perl") for name in profiled.instance("perl").names())


NODE_SCRIPT = """
    const { Worker, isMainThread, parentPort } = require('worker_threads');
    const { execFileSync } = require('child_process');
    function churn(n) {
        let objects = [];
        for (let i = 0; i < n; i++) objects.push({ i, text: 'x'.repeat(i % 50) });
        return objects.map(o => JSON.stringify(o)).join('').length;
    }
    if (isMainThread) {
        const results = [];
        let left = 3;
        for (let i = 0; i < left; i++) {
            const worker = new Worker(__filename);
            worker.on('message', m => { results.push(m); if (results.length === 3) console.log(results); });
        }
        console.log(churn(200000));
        console.log(execFileSync('echo', ['child']).toString());
    } else {
        parentPort.postMessage(churn(100000));
    }
"""


def test_node_workers(same):
    profiled = same(["/usr/bin/node", "job.js"], write("job.js", NODE_SCRIPT))
    node = profiled.instance("node")
    assert node.cpu_total() > 1e8
    assert any("v8::" in name for name in node.names())


def test_xz_and_tar(same):
    def prepare(folder):
        (folder / "tree").mkdir()
        for i in range(20):
            (folder / "tree" / f"file{i}").write_bytes(
                b"".join(
                    hashlib.sha256(b"%d" % (i * 9 + k % 9973)).hexdigest().encode() for k in range(20000)
                )
            )

    profiled = same(
        ["sh", "-c", "tar --sort=name --mtime=@0 -cf - tree | xz -T2 -3 > tree.tar.xz && xz -t -v "
         "tree.tar.xz 2>/dev/null && xz -dc tree.tar.xz | tar -tf - | wc -l"],
        prepare,
    )
    xz = profiled.instance("xz")
    assert xz.cpu_total() > 1e8


GIT_ENVIRONMENT = {
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent",
}
GIT_SCRIPT = """
    set -e
    git init -q -b main origin && cd origin
    for i in $(seq 1 30); do seq 1 $((i * 50)) > file$((i % 9)); git add . ; git commit -q -m "c $i"; done
    cd .. && git clone -q origin copy && cd copy
    git -c gc.auto=0 gc -q && git fsck --full
    git log --format=%H | head -n 3
    git rev-list --all --objects | wc -l
    git checkout -q missing || echo "status $?"
    cd .. && rm -rf origin copy
"""


def test_git(same):
    same(["sh", "job.sh"], write("job.sh", GIT_SCRIPT), extra_env=GIT_ENVIRONMENT)


LUA_SCRIPT = """
    local t = {}
    for i = 1, 300000 do t[i] = tostring(i * 7 % 1000) .. "x" end
    table.sort(t)
    print(#t, t[1], t[#t], #table.concat(t))
    for i = 1, 200 do local c = coroutine.wrap(function() coroutine.yield(i) end); c() end
    os.exit(12)
"""


def test_lua(same):
    profiled = same(["lua5.4", "job.lua"], write("job.lua", LUA_SCRIPT))
    assert profiled.returncode == 12
    assert any(name.startswith("lua") for name in profiled.instance("lua5.4").names())


def test_sort_with_threads(same):
    same(["sh", "-c", "seq 1 400000 | sort -r --parallel=2 -S 10M | md5sum"])


# --- a server, while it forks to save ---


def ask(port, *words):
    answer = subprocess.run(
        ["redis-cli", "-p", str(port), *words], stdout=subprocess.PIPE, check=True, timeout=120
    )
    return answer.stdout.decode().strip()


def until_saved(port):
    eventually(lambda: ask(port, "info", "persistence"), "the end of a save", holds=lambda text: "rdb_bgsave_in_progress:0" in text)


def save_at_last(port):
    """Starts one more save, of all that the load has left, and waits for its end."""
    until_saved(port)
    ask(port, "bgsave")
    until_saved(port)


def drive_redis(port):
    """Returns the files that a benchmark leaves, and the verdicts of its saves."""
    eventually(lambda: subprocess.run(["redis-cli", "-p", str(port), "ping"], capture_output=True).returncode == 0, "an answer of redis")
    load = subprocess.Popen(
        ["redis-benchmark", "-p", str(port), "-t", "set,get,lpush,lrange", "-n", "20000", "-q",
         "-r", "1000"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    saves = 0
    while load.poll() is None:
        saves += "started" in ask(port, "bgsave")
        time.sleep(0.3)
    assert load.returncode == 0 and saves > 0
    save_at_last(port)
    seen = [ask(port, "llen", "mylist")]
    seen += [line for line in ask(port, "info", "persistence").split() if "last_bgsave_status" in line]
    ask(port, "shutdown", "nosave")
    return seen


def test_redis_under_load_and_bgsave(start, tmp_path):
    seen = []
    for profiled in (False, True):
        port = reserved_port()
        folder = tmp_path / str(profiled)
        folder.mkdir()
        server = start(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
             str(folder)],
            profiled=profiled, cwd=folder,
        )
        answers = drive_redis(port)
        outcome = server.finish(timeout=120)
        assert (folder / "dump.rdb").stat().st_size > 10000
        seen.append((outcome.returncode, answers))
    assert seen[0] == seen[1]
    redis = outcome.instance("redis-")  # redis-server is a link to redis-check-rdb
    assert redis.cpu_total() > 1e8
    assert any(name.startswith("__libc_") for name in redis.names()), "Debian's redis is stripped"
