"""Forks again and again while the profiler's helper thread may be loading its libraries; each child
opens libraries of its own, works, and ends. Prints how many ended as they should."""

import os
import sys
import time

fine = 0
children = []
for number in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        import ctypes

        for name in ("libz.so.1", "libexpat.so.1", "libssl.so.3"):
            try:
                ctypes.CDLL(name)
            except OSError:
                pass
        end = time.process_time() + 0.01
        while time.process_time() < end:
            pass
        os._exit(number % 100)
    children.append((pid, number % 100))
    time.sleep(0.002)
for pid, status in children:
    fine += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status
print(fine)
