"""A folder is a module with a layer rule: includes and symbols show which modules it may know."""

import re
import subprocess
from pathlib import Path

import pytest
from profiled import ARCH, BUILD, ROOT

SHIM = ROOT / "shim"
COMMON = ROOT / "common"

# Each module and those that it may know, beside itself and common/. An arrow that is not here is a fault.
BOTTOM = {"capture/kernel"}
SYMBOLS = BOTTOM | {"capture/symbols"}
ALLOCATOR = SYMBOLS | {"capture/allocator"}
UNWIND = SYMBOLS | {"capture/arch", "capture/unwind"}
CONTEXT = UNWIND | {"capture/context"}
FRAMES = UNWIND | {"capture/frames"}
RECORD = CONTEXT | FRAMES | {"capture/record"}
HELPER_HEAP = RECORD | ALLOCATOR | {"capture/helper_heap"}
HEAP = HELPER_HEAP | {"capture/heap"}
CPU = HELPER_HEAP | {"capture/cpu"}
WAIT = HELPER_HEAP | {"capture/wait"}
BINDING = CPU | {"capture/binding"}
CAPTURE = HEAP | CPU | WAIT | BINDING | {"capture"}
PROCESS = CAPTURE | {"process/eligibility", "process"}
MAY_KNOW = {
    "capture/kernel": BOTTOM,
    "capture/arch": BOTTOM,
    "capture/symbols": SYMBOLS,
    "capture/allocator": ALLOCATOR,
    "capture/unwind": UNWIND,
    "capture/context": CONTEXT,
    "capture/frames": FRAMES,
    "capture/record": RECORD,
    "capture/helper_heap": HELPER_HEAP,
    "capture/heap": HEAP,
    "capture/cpu": CPU,
    "capture/wait": WAIT,
    "capture/binding": BINDING,
    "capture": CAPTURE,
    "process/eligibility": SYMBOLS,
    "process": PROCESS,
    "program": PROCESS | {"program"},
    "hooks": PROCESS | {"hooks"},
    "start": PROCESS | {"hooks", "start"},
    "cpp_context": set(),
    "flush/files": set(),
    "flush/libraries": {"flush/files"},
    "flush/symbolize": {"flush/files"},
    "flush/encode": {"flush/files", "flush/symbolize"},
    "flush/export": {"flush/files", "flush/libraries", "flush/symbolize", "flush/encode"},
    "flush/declare": {"flush/files", "flush/encode"},
    "flush/control": {"flush/files", "flush/declare", "flush/encode"},
    "flush/serve": {"flush/files", "flush/encode", "flush/export", "flush/control"},
    "flush": {"flush/files", "flush/libraries", "flush/symbolize", "flush/encode", "flush/export", "flush/declare", "flush/control", "flush/serve"},
}
# The creation of a thread by another library's constructor starts the profiler: this call goes up for good.
STARTS = {
    "hooks/thread.c includes start.h",
    "hooks/thread.c uses start_before_constructor",
}

# Files that use each other in a circle, each a set within one room. No set may be added to or made larger; flush has none.
CIRCLES = {frozenset(f"{room}/{name}.c" for name in names.split()) for room, names in (
    ("capture", "capture change_settings thread_life"),
    ("capture/cpu", "libc_signal masked_threads sampler sampler_signal signal_entry signal_thread"),
    ("capture/record", "kernel_workers unknown_threads"),
    ("capture/wait", "holder_stack wait_observe wait_sampler"),
    ("hooks", "clone namespaces syscall"),
    ("process", "child_ledger cpp_programs helper helper_control helper_load helper_rights helper_table helper_wait main_watch "
                "quiesce_lock wanted_export"),
    ("process", "lifecycle quiesce"),
)}


def module_of(path):
    """Returns 'capture/unwind' for shim/capture/unwind/cfi.c, 'start' for start.c; other files of shim/ belong to
    none."""
    folder = "/".join(path.relative_to(SHIM).parts[:-1][:2])
    return folder or (path.stem if path.stem == "start" else "")


def resolve(path, name):
    world = path.relative_to(SHIM).parts[0]
    for folder in (path.parent, SHIM / world, SHIM / "capture", SHIM / "capture/arch" / ARCH, SHIM):
        if (folder / name).is_file():
            return (folder / name).resolve()
    return None


def included():
    """Returns (module, module, what) for each include that leaves a module."""
    arrows = set()
    for path in sorted(SHIM.rglob("*.[ch]")):
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M):
            found = resolve(path, name)
            if name.endswith(".def"):  # facts, which every module may read: they hold no code
                continue
            if found and module_of(path) and module_of(found) and module_of(path) != module_of(found):
                arrows.add((module_of(path), module_of(found), f"{path.relative_to(SHIM)} includes {name}"))
    return arrows


def symbols(paths):
    """Returns (path, kind, name) of each symbol."""
    text = subprocess.run(["nm", "-A", *paths], capture_output=True, text=True, check=True).stdout
    found = []
    for line in text.splitlines():
        path, _, rest = line.partition(":")
        *_, kind, name = rest.split()
        found.append((Path(path), kind, name))
    return found


def exported():
    """Lists the functions that the profiler replaces: a call of one counts as libc's, whichever module makes it."""
    text = subprocess.run(["nm", "-D", "--defined-only", BUILD / "libotelprof.so"],
                          capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}


def file_arrows():
    """Returns (file, file, symbol) for each symbol that a file takes of another file."""
    objects = sorted((BUILD / "obj/shim").rglob("*.o"))
    sources = {path: SHIM / path.relative_to(BUILD / "obj/shim").with_suffix(".c") for path in objects}
    objects = [path for path in objects if sources[path].exists()]
    assert len(objects) > 100
    objects = [path for path in objects if path.stem != "libc_strings"]  # it defines names of libc's, which every module uses
    preloaded = [path for path in objects if "flush" not in module_of(sources[path])]
    arrows = set()
    ours = exported()
    for group in (preloaded, [path for path in objects if path not in preloaded]):
        found = symbols(group)
        home = {name: path for path, kind, name in found if kind in "TDBRVWCGS"}
        for path, kind, name in found:
            there = home.get(name) if kind == "U" and name not in ours else None
            if there:
                arrows.add((sources[path], sources[there], name))
    return arrows


def used():
    """Returns (module, module, what) for each symbol of another module."""
    return {(module_of(here), module_of(there), f"{here.relative_to(SHIM)} uses {name}")
            for here, there, name in file_arrows() if module_of(here) and module_of(here) != module_of(there)}


def upward(arrows):
    return {what for here, there, what in arrows if there not in MAY_KNOW[here]}


def circles(uses):
    """Returns the largest sets of files that use each other in a circle: what a file reaches that also reaches it."""
    reached = {path: set(there) for path, there in uses.items()}
    grew = True
    while grew:
        grew = False
        for there in reached.values():
            more = set().union(*(reached.get(path, set()) for path in there)) - there
            grew |= bool(more)
            there |= more
    return {frozenset(other for other in there if path in reached.get(other, set()))
            for path, there in reached.items() if path in there}


def test_every_module_has_its_rule():
    modules = {module_of(path) for path in SHIM.rglob("*.c")} - {""}
    assert modules | {"capture/arch", "capture/kernel"} == set(MAY_KNOW)  # these have headers alone


def test_no_arrow_between_modules_goes_up():
    assert upward(included() | used()) == STARTS


def test_no_files_of_a_room_use_each_other_in_a_circle():
    uses = {}
    for here, there, _ in file_arrows():
        if here != there:
            uses.setdefault(str(here.relative_to(SHIM)), set()).add(str(there.relative_to(SHIM)))
    assert circles(uses) == CIRCLES


def test_a_circle_is_found():
    """Two circles that share a file are one; a chain is none."""
    uses = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"c", "e"}, "e": {"f"}, "x": {"y"}, "y": {"x"}}
    assert circles(uses) == {frozenset("abcd"), frozenset("xy")}


@pytest.mark.parametrize("folder, header", [
    ("shim/capture", "flush/symbolize/elf_file.h"), ("shim/capture", "symbolize/elf_file.h"),
    ("shim/capture", "process/helper.h"), ("shim/flush", "capture/capture.h"), ("shim/flush", "capture.h"),
])
def test_a_world_does_not_find_the_headers_of_another(folder, header, tmp_path):
    """The test uses the command by which the Makefile compiles the folder's files."""
    place = ROOT / folder / "foreign.c"
    planned = subprocess.run(
        ["make", "-n", "V=1", "--no-print-directory", "--eval", f"{place.relative_to(ROOT)}:;",
         f"{BUILD}/obj/{folder}/foreign.o", f"BUILD={BUILD}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout
    command = next(line for line in planned.splitlines() if "foreign.c" in line).split()
    for text, works in ((f'#include "{header}"\n', False), ('#include "harvest.h"\n', True)):
        source = tmp_path / "foreign.c"
        source.write_text(text)
        call = " ".join(command).replace(str(place.relative_to(ROOT)), str(source))
        call = call.replace(f"{BUILD}/obj/{folder}/foreign.o", str(tmp_path / "foreign.o"))
        done = subprocess.run(["sh", "-c", call], cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == works, done.stderr


def test_a_file_is_one_idea_of_at_most_600_lines():
    """A program under test may be longer: it is one file, so that it can be compiled and passed on by itself."""
    programs = {ROOT / "test" / folder for folder in ("programs", "faults")}
    paths = [path for folder, kind in (("shim", "*.[ch]"), ("common", "*.[ch]"), ("test", "*.[ch]"), ("test", "*.py"))
             for path in (ROOT / folder).rglob(kind) if path.parent not in programs]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in paths}
    assert {path: length for path, length in lengths.items() if length > 600} == {}


def world_of(path):
    """Returns 'flush', 'cpp_context' or 'capture', to which the process, the hooks and the start belong."""
    world = path.relative_to(SHIM).parts[0]
    return world if world in ("flush", "cpp_context") else "capture"


def worlds_of_common():
    """Returns the worlds that use each header of common/, also through other files of common/."""
    texts = {path: re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M)
             for path in [*SHIM.rglob("*.[ch]"), *COMMON.glob("*.[ch]")]}
    headers = {path.name for path in texts if path.parent == COMMON and path.suffix == ".h"}
    worlds = {name: set() for name in headers}
    changed = True
    while changed:
        before = sum(map(len, worlds.values()))
        for path, names in texts.items():
            users = worlds[path.with_suffix(".h").name] if path.parent == COMMON else {world_of(path)}
            for name in headers.intersection(names):
                worlds[name] |= users
        changed = sum(map(len, worlds.values())) != before
    return worlds


def test_common_holds_what_two_worlds_use():
    assert {name: worlds for name, worlds in worlds_of_common().items() if len(worlds) < 2} == {}
