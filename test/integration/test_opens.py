"""Each open in the sources has the flags of common/open_flags.h, so that no file becomes a process's controlling terminal, keeps
the helper waiting, or is inherited by a program that the process starts."""

import re

import pytest
from profiled import ROOT

SOURCES = sorted(path for folder in ("common", "shim") for path in (ROOT / folder).rglob("*.[ch]"))
CALL = re.compile(r"(?<![\w.>])(?:open|openat|open64|openat64|open_at)\(|SYS_open(?:at2?)?\b,?|\b(?:creat|mkstemp|fopen64|freopen|tmpfile)\(|\bfopen\(")
SAFE = re.compile(r"\b(OPEN_SAFELY|OPEN_TO_READ|O_PATH|O_DIRECTORY)\b")
# names of flags that stand for one of these, and how each is defined
NAMED = {"read_flags": r"OPEN_TO_READ \|", "part_flags": r"O_PATH \|", "HOW": r"OPEN_SAFELY \|"}
# the call whose flags come from its callers, which are checked, and the names of parsed lists of calls
FORWARDS = {"shim/process/eligibility/host_files.c": "flags | LINK_OR_FOLDER"}


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.S)


def opens(text):
    """Lists each call that opens a file, with its arguments to the end of the statement."""
    text = without_comments(text)
    return [re.sub(r"\s+", " ", text[found.start():text.index(";", found.start())]) for found in CALL.finditer(text)]


def is_safe(call, path):
    """Allows fopen() of a file of /proc, for which it knows no O_NOCTTY."""
    if call.startswith("fopen("):
        return bool(re.match(r'fopen\("/proc/[^"]*", "re"\)', call))
    named = any(re.search(rf"\b{name}\b", call) for name in NAMED)
    return bool(SAFE.search(call)) or named or (path in FORWARDS and FORWARDS[path] in call) or bool(re.match(r"open_at\(int ", call))


def test_each_open_has_the_flags_of_all():
    found = {str(path.relative_to(ROOT)): opens(path.read_text()) for path in SOURCES}
    assert sum(map(len, found.values())) > 20
    unsafe = [(path, call) for path, calls in found.items() for call in calls if path != "shim/process/seccomp_filter.c" and not is_safe(call, path)]
    assert not unsafe, "\n".join(map(str, unsafe))


def test_each_name_for_flags_has_them():
    text = "\n".join(without_comments(path.read_text()) for path in SOURCES)
    for name, meaning in NAMED.items():
        (defined,) = re.findall(rf"\b{name} = ([^,;]*)[,;]", text)
        assert re.match(meaning, defined), (name, defined)


@pytest.mark.parametrize("call", ['open(path, O_RDONLY | O_CLOEXEC)', 'syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_NOCTTY)', 'fopen(path, "re")', 'creat(path, 0)'])
def test_an_open_without_them_is_found(call):
    (found,) = opens(f"f = {call};")
    assert not is_safe(found, "shim/start.c")
