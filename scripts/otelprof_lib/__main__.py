"""The command, as scripts/otelprof starts it: by this folder's path."""

import os
import sys

sys.dont_write_bytecode = True
sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # instead of this folder, with names like `run`

from otelprof_lib.cli import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
