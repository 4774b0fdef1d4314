import multiprocessing
import os
import subprocess
import sys


def square(x):
    total = 0
    for i in range(60000):
        total += i * x
    return total


def main():
    for method in ("spawn", "fork"):
        context = multiprocessing.get_context(method)
        with context.Pool(3) as pool:
            print(method, sum(pool.map(square, range(40))))
            if method == "fork":
                open("gate").read()
                print(method, sum(pool.map(square, range(40))))
    print(subprocess.run(["sh", "-c", "echo out; exit 9"], capture_output=True))
    died = subprocess.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"])
    print("died of", -died.returncode)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os._exit(4)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    read, write = os.pipe()
    os.posix_spawn("/bin/sh", ["sh", "-c", "echo spawned"], os.environ,
                   file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)])
    print(os.read(read, 100), os.waitstatus_to_exitcode(os.wait()[1]))


if __name__ == "__main__":
    main()
