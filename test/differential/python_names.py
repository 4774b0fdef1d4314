"""Compares every function of Python's library as the profiler names it with what Python itself reports: name, file,
first line, and the line of each instruction. Run by the interpreter in question.

python_names.py LIBRARY SHARE: one in SHARE of the files of the standard library."""

import array
import ctypes
import sys
import sysconfig
import warnings
from pathlib import Path

CHARACTERS = 255  # python_functions.h: the most of a name and of a file
TABLE = 8192  # bytes that are kept of a table
CUT = 800  # this many instructions surely fit into it

ours = ctypes.CDLL(sys.argv[1])
ours.names_function.restype = ours.names_file.restype = ctypes.c_char_p
ours.names_number.argtypes = ctypes.c_void_p, ctypes.c_bool


def codes_in(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            yield from codes_in(constant)


def lines_of(code):
    lines = array.array("i", bytes(4 * (len(code.co_code) // 2)))
    for start, end, line in code.co_lines():
        for i in range(start // 2, end // 2):
            lines[i] = line or 0
    return lines


def text(raw):
    return raw.decode("utf-8", "strict")


def wanted(string):
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" or c == "\0" else c for c in string)


def differences(code, of_another=False):
    """Returns what differs for a code object, and how many positions were compared."""
    number = ours.names_number(id(code), of_another)
    if not number or not ours.names_find(number, 0):
        return ["unknown"], 0
    wrong = []
    if text(ours.names_function()) != wanted(code.co_qualname[:CHARACTERS]):
        wrong.append(f"function {text(ours.names_function())}")
    if text(ours.names_file()) != wanted(code.co_filename[-CHARACTERS:]):
        wrong.append(f"file {text(ours.names_file())}")
    if ours.names_start_line() != code.co_firstlineno:
        wrong.append(f"first line {ours.names_start_line()}")
    lines = lines_of(code)
    is_whole = len(code.co_linetable) <= TABLE
    address, count = lines.buffer_info()
    count = count if is_whole else CUT
    different = ours.names_wrong_lines(number, ctypes.c_void_p(address), count, is_whole)
    if different:
        wrong.append(f"{different} of {count} lines")
    return wrong, count


def strange_codes():
    """Makes names of each width of characters, cut and whole, and tables that are too long."""
    model = compile("x = 1\ny = 2\n", "file", "exec")
    for name in ("é", "函数", "f\U0001d6d1", "\udc80", "a\0b", "n" * 300, "é" * 300, "函" * 300, "\U0001d6d1" * 300, ""):
        yield model.replace(co_qualname=name)
        yield model.replace(co_filename="/start/" + name + "/end.py")
    yield compile("x = (1,\n 2)\n" * 4000, "long", "exec")
    yield compile("\n" * 100000 + "def f():\n  return [g(x) for x in\n\n y if x\n or z]\n", "far", "exec")


def reused_addresses():
    """Makes and drops code objects, so that others get their addresses."""
    wrong, met = [], set()
    again = 0
    for i in range(20000):
        code = compile(f"def f{i % 97:02}():\n{chr(10) * (i % 13)}  return {i % 7}\n", f"file{i % 31:02}", "exec").co_consts[0]
        again += id(code) in met
        met.add(id(code))
        wrong += [f"reused: {what}" for what in differences(code)[0]]
    if again < 1000:
        wrong.append(f"only {again} addresses were used again")
    return wrong


def main():
    warnings.simplefilter("ignore")
    if not ours.names_start():
        sys.exit("this interpreter is not known")
    wrong, functions, positions = [], 0, 0
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py"))[:: int(sys.argv[2])]:
        try:
            module = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            continue
        for code in codes_in(module):
            found, count = differences(code, of_another=functions % 16 == 0)
            functions += 1
            positions += count
            wrong += [f"{path}:{code.co_firstlineno} {code.co_qualname}: {what}" for what in found]
    for module in strange_codes():
        for code in codes_in(module):
            wrong += [f"{code.co_qualname[:20]!a} {what}" for what in differences(code)[0]]
    wrong += reused_addresses()
    print(f"{sys.version.split()[0]}: {functions} functions, {positions} positions, {len(wrong)} wrong")
    print("\n".join(wrong[:20]), end="\n" if wrong else "")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
