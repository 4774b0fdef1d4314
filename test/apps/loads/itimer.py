import os
import signal
import time

hits = []
signal.signal(signal.SIGPROF, lambda *_: hits.append(1))
signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))


burn(0.4)
fd = os.open("gate", os.O_RDONLY)
os.read(fd, 10)
burn(0.4)
print(signal.getitimer(signal.ITIMER_PROF)[1])
signal.setitimer(signal.ITIMER_PROF, 0)
# 80 signals are due; the tick of the kernel decides how many come
print("handled" if len(hits) > 30 else "lost")
signal.signal(signal.SIGPROF, signal.SIG_DFL)
print(signal.getsignal(signal.SIGPROF))
os.kill(os.getpid(), signal.SIGPROF)  # the default action ends the process
