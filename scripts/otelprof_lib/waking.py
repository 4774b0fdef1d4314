"""Has waits of the main thread that end for every signal.

Python runs the handler of a signal in the main thread, between two of its steps. A call that blocks delays the handler unless
the kernel interrupts that very call: it does not if the signal comes just before the call, or if another thread takes the
signal. A wait here is for a byte in a pipe. Python's C code writes a byte as soon as a signal with a handler comes, in whatever
thread.
"""

import contextlib
import os
import select
import signal
import threading


class Waking:
    """Is a context of the main thread, in which it waits."""

    def __init__(self):
        self._lock = threading.Lock()
        self._is_open = False

    def __enter__(self):
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._is_open = True
        self._before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_):
        signal.set_wakeup_fd(self._before)
        with self._lock:  # another thread may be about to wake this one
            self._is_open = False
            os.close(self._read)
            os.close(self._write)

    def wake(self):
        """Makes wait() check again whether it is over. From any thread, at any time."""
        with self._lock, contextlib.suppress(BlockingIOError):  # the pipe is full: that wakes as well
            if self._is_open:
                os.write(self._write, b"\0")

    def wait(self, is_over):
        """Returns once is_over() is true, which is checked again after each signal, whose handler has run by then, and each
        wake()."""
        ready = select.poll()
        ready.register(self._read, select.POLLIN)
        while not is_over():
            ready.poll()
            with contextlib.suppress(BlockingIOError):
                os.read(self._read, 4096)


def wait_for(child):
    """Returns the status of a program that was started here. Handlers of signals run at once meanwhile."""
    has_ended = threading.Event()
    with Waking() as waking:

        def watch():
            with contextlib.suppress(ChildProcessError):  # a handler has waited for it
                os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            has_ended.set()
            waking.wake()

        threading.Thread(target=watch, daemon=True).start()
        waking.wait(has_ended.is_set)
    return child.wait()


@contextlib.contextmanager
def ended_by_ctrl_c():
    """Has the kernel end this command at Ctrl-C, while the main thread waits for another process and has nothing to clean up.

    A command that ignores Ctrl-C, as a job in the background does, goes on ignoring it.
    """
    if signal.getsignal(signal.SIGINT) != signal.default_int_handler:
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:  # Python forgets a signal whose handler changes before it has run
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
