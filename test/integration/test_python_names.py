"""Functions of Python have the names, files and lines that the interpreter itself has: compared for code objects of
its library in the memory of each installed interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest
from profiled import BUILD, ROOT

pytestmark = pytest.mark.fast

OTHERS = sorted(Path.home().glob(".pyenv/versions/3.1[1-9].*/bin/python3"))
SHARE = 60  # of the library's files, one in that many is compared


@pytest.mark.parametrize("python", [sys.executable, *OTHERS], ids=str)
def test_functions_are_named_as_python_names_them(python):
    command = [python, "-B", ROOT / "test/differential/python_names.py", BUILD / "test/differential/python_names.so",
               str(SHARE)]
    ran = subprocess.run(command, capture_output=True, text=True)
    print(ran.stdout, ran.stderr)
    assert ran.returncode == 0
