"""Installs programs of the catalogue that come from PyPI, in a virtual environment of their own below the build
folder. `pypi.py` makes it, or reports why it cannot; requirements.txt has the versions."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "apps-pypi"
PYTHON = FOLDER / "bin" / "python3"
WANTED = Path(__file__).with_name("requirements.txt")
INSTALLED = FOLDER / "installed.txt"  # the requirements that it was made from


def is_there():
    return INSTALLED.exists() and INSTALLED.read_text() == WANTED.read_text()


def install():
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", FOLDER], check=True)
    # only listed packages: chdb requires pandas and pyarrow, which its queries do not need
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                    "--only-binary", ":all:", "-r", WANTED], check=True)
    INSTALLED.write_text(WANTED.read_text())


def main():
    if is_there():
        return 0
    try:
        install()
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"pypi: {error}; the programs from PyPI are skipped", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
