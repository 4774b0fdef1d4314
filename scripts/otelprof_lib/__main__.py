"""The command, as scripts/otelprof starts it: by this folder's path."""

import os
import signal
import sys

sys.dont_write_bytecode = True
sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # instead of this folder, with names like `run`
interrupted = signal.getsignal(signal.SIGINT)  # a job in the background ignores it
if interrupted != signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # there is nothing yet to put in order, nor who could

from otelprof_lib.cli import main  # noqa: E402

signal.signal(signal.SIGINT, interrupted)
sys.exit(main(sys.argv[1:]))
