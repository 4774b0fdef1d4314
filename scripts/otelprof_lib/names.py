"""Shortens names for tables on a terminal, as scripts/flamegraph/names.js does for the page."""

import re
import shutil
import sys

MOST_IN_BRACKETS = 40  # letters of template arguments, or of a function's, that are written out
SHORT_NAME = 40  # letters: a name that is no longer is left as it is
LEAST_COLUMN = 24  # letters that a name has in a narrow terminal
INLINE_NAMESPACES = re.compile(r"\bstd::(?:__cxx11|__1|__ndk1)::")
DEFAULTS = tuple(f", std::{name}<" for name in ("allocator", "less", "hash", "equal_to", "default_delete", "char_traits"))
OF_LETTERS = re.compile(r"\bstd::basic_(\w+)<(char|wchar_t)>", re.ASCII)
OPERATOR = re.compile(r"operator *[<(-]*$")
CLOSING = {"<": ">", "(": ")"}
BRACKET = re.compile("[<>()]")
ELLIPSIS = "\u2026"


def _closings(text):
    """Returns the place of the closing bracket by that of the opening one. One pass: a stranger's name may be brackets
    alone."""
    opened = {closing: [] for closing in CLOSING.values()}
    closings = {}
    for match in BRACKET.finditer(text):
        at, letter = match.start(), match[0]
        if letter in CLOSING:
            opened[CLOSING[letter]].append(at)
        elif text[at - 1 : at] not in ("-", "=") and opened[letter]:
            closings[opened[letter].pop()] = at
    return closings


def _without_argument(text, begin):
    if begin not in text:
        return text
    pieces, start, closings = [], 0, _closings(text)
    while (at := text.find(begin, start)) >= 0 and (end := closings.get(at + len(begin) - 1, -1)) >= 0:
        pieces.append(text[start:at])
        start = end + 1
    return "".join(pieces) + text[start:]


def _folded(text, most):
    """Folds the outermost brackets that hold more than `most` letters: wrapper<…>::apply."""
    pieces, start, begin = [], 0, 0
    for at, end in sorted(_closings(text).items()):
        if at < begin or OPERATOR.search(text[max(0, at - 12) : at]):
            continue
        if end - at - 1 > most:
            pieces += text[start : at + 1], ELLIPSIS
            start = end
        begin = end
    return "".join(pieces) + text[start:]


def short_name(name):
    if len(name) <= SHORT_NAME and "std::__" not in name:
        return name
    text = INLINE_NAMESPACES.sub("std::", name)
    for begin in DEFAULTS:
        text = _without_argument(text, begin)
    text = OF_LETTERS.sub(lambda found: f"std::{'' if found[2] == 'char' else 'w'}{found[1]}", re.sub(" +>", ">", text))
    return _folded(text, MOST_IN_BRACKETS)


def cut(text, most):
    """Cuts a text in the middle: the end of a name says more."""
    if len(text) <= most:
        return text
    head = (most - 1) * 2 // 5
    return f"{text[:head]}{ELLIPSIS}{text[len(text) - (most - 1 - head):]}"


def width_of(stream):
    """Returns the letters in a line of a terminal; 0: the stream is none, and what reads it gets whole names."""
    return shutil.get_terminal_size().columns if stream.isatty() else 0


def fit_lines(text, width):
    """Returns lines of a table that keep to the width. A line's last column is a name, and alone is cut."""
    if not width:
        return text

    def fit(line):
        if len(line) <= width:
            return line
        head, gap, name = line.rpartition("  ")
        if not gap:  # a sentence, which a terminal breaks
            return line
        short = short_name(name)
        return head + gap + cut(short, max(LEAST_COLUMN, width - len(head) - len(gap)))

    return "\n".join(map(fit, text.split("\n")))


def print_table(text, stream=None):
    """Prints tables: on a terminal in its width."""
    stream = stream or sys.stdout
    print(fit_lines(text, width_of(stream)), file=stream)
