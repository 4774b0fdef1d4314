"""Has types of arguments that several commands use."""

import argparse

from .kinds import ALL, SOURCES, TYPES


def positive(text):
    value = int(text)
    if value <= 0:
        raise ValueError
    return value


positive.__name__ = "positive number"  # argparse shows this name


def _between(least, most, name):
    def number(text):
        value = int(text)
        if not least <= value <= most:
            raise ValueError
        return value

    number.__name__ = name
    return number


port = _between(0, 65535, "port number")
seconds = _between(1, 3600, "number of seconds from 1 to 3600")  # that a process's response may cover


def types(text):
    """Refuses before anything runs what libotelprof would only warn about."""
    if text.lower() == ALL:
        return text
    names = [name.strip() for name in text.split(",")]
    if ALL in names:
        raise argparse.ArgumentTypeError(f"{ALL} stands alone")
    unknown = [name for name in names if name not in TYPES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{','.join(unknown) or text!r} is none of {','.join((ALL, *TYPES))}")
    for source, kinds in SOURCES.items():
        if source in names and not set(kinds) & set(names):
            raise argparse.ArgumentTypeError(f"{source} needs {' or '.join(kinds)}, which it adds to")
    return text
