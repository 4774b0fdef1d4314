"""Reads a list of common/*.def, as the C preprocessor would: `MACRO(column, "column", ...)`, each at the start
of a line."""

import re

STRING = r'"((?:[^"\\]|\\.)*)"'


def entries(text, macro):
    """Returns the columns of each `macro(...)` in the text of a list: strings are joined and lose their quotes."""
    for call in re.findall(rf"^{macro}\(((?:{STRING}|[^()\"])*)\)", text, re.M):
        columns = re.findall(rf"((?:{STRING}|[^,\"])+)", call[0])
        yield [("".join(re.findall(STRING, column)) if '"' in column else column).strip() for column, _ in columns]
