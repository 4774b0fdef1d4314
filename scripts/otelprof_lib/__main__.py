"""Starts the command; scripts/otelprof runs this folder by its path."""

import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # replaces this folder, which has names like `run`
interrupted = signal.getsignal(signal.SIGINT)  # a job in the background ignores the signal
if interrupted != signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing needs cleaning up yet

from otelprof_lib.cli import main  # noqa: E402

signal.signal(signal.SIGINT, interrupted)
sys.exit(main(sys.argv[1:]))
