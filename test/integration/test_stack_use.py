"""The deepest chain of calls from the handler fits on the stack that one sample is given, by the compiler's own
account of every frame."""

import re
import subprocess

import pytest
from profiled import ARCH, LIBRARY, ROOT

# Lists generous bounds for foreign functions, all of them leaf calls without signals.
OUTSIDE = {
    "clock_gettime": 512,  # from the vDSO, or a system call
    "_dl_find_object": 512,  # called through a pointer, see modules.c
}
LEAF = 128
ROOM_FOR_CHECK = 1024  # ARCH_ENTRY_ROOM_BYTES
# Lists functions that are also called through a pointer: unwind.c requests frames of an interpreter.
BY_POINTER = "list_group"
FLAGS = [
    "-std=gnu11", "-D_GNU_SOURCE", "-fPIC", "-O2", "-fvisibility=hidden", "-ftls-model=initial-exec",
    "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-fstack-clash-protection", "-fcf-protection",
    '-DOTELPROF_VERSION="0"', f"-I{ROOT}/common", f"-I{ROOT}/common/arch/{ARCH}",
    f"-I{ROOT}/shim/capture", f"-I{ROOT}/shim/capture/arch/{ARCH}",
    "-include", f"{ROOT}/shim/weak_glibc.h",
]
NODE = re.compile(r'node: \{ title: "([^"]+)" label: "([^"]*)"')
EDGE = re.compile(r'edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')


@pytest.fixture(scope="module")
def call_graph(tmp_path_factory):
    """Returns (function -> bytes of its frame, function -> what it calls), of all capture sources."""
    folder = tmp_path_factory.mktemp("graph")
    frames, calls = {}, {}
    for source in sorted((ROOT / "shim/capture").rglob("*.c")):
        if "arch" in source.parts and ARCH not in source.parts:
            continue
        output = folder / f"{source.stem}.o"
        subprocess.run(
            ["gcc", *FLAGS, "-fcallgraph-info=su", "-c", source, "-o", output],
            check=True, cwd=folder,
        )
        text = output.with_suffix(".ci").read_text()
        for title, label in NODE.findall(text):
            size = re.search(r"(\d+) bytes \((\w+)", label)
            if size:
                assert size[2] == "static" or "bounded" in label, f"{title}: a frame of any size"
                frames[title] = int(size[1])
        for caller, callee in EDGE.findall(text):
            calls.setdefault(caller, set()).add(callee)
    return frames, calls


def deepest(frames, calls, function, path=()):
    """Returns the bytes of the deepest chain from `function`, return addresses included, and the chain."""
    assert function not in path, f"recursion: {path + (function,)}"
    name = function.rsplit(":", 1)[-1]
    if name == "__indirect_call":
        listing = next(title for title in frames if title.rsplit(":", 1)[-1] == BY_POINTER)
        found = (OUTSIDE["_dl_find_object"] + 8, ("_dl_find_object",))
        return found if listing in path else max(found, deepest(frames, calls, listing, path + (function,)))
    if function not in frames:
        return OUTSIDE.get(name, LEAF) + 8, (name,)
    below = [
        deepest(frames, calls, callee, path + (function,)) for callee in calls.get(function, ())
    ]
    size, chain = max(below, default=(0, ()))
    return frames[function] + 8 + size, (name, *chain)


def constant(name, header="thread_table.h"):
    text = (ROOT / "shim/capture/record" / header).read_text()
    return int(re.search(name + r" = (\d+)", text)[1])


def test_a_sample_fits_on_its_stack(call_graph):
    frames, calls = call_graph
    size, chain = deepest(frames, calls, "sampler_on_signal")
    print(f"{size} bytes: {' > '.join(chain)}")
    assert "cfi_entry_rule" in chain, "the deepest chain computes a rule"
    assert size < 0.9 * constant("SAMPLE_STACK_BYTES")


def test_the_entry_uses_nothing_of_another_stack(tmp_path):
    """The entry moves to the thread's signal stack before its first push or call, except for one call where there is
    room."""
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "--disassemble=signal_entry", LIBRARY],
        capture_output=True, text=True, check=True,
    ).stdout
    instructions = [line.split("\t")[-1] for line in text.splitlines() if "\t" in line]
    switch = next(i for i, text in enumerate(instructions) if re.match(r"mov +%rcx,%rsp", text))
    (call,) = [i for i, text in enumerate(instructions[:switch]) if re.match(r"push|call|sub .*,%rsp", text)]
    assert "signal_thread_is_libcs" in instructions[call]
    checked = next(i for i, text in enumerate(instructions) if re.match(rf"cmp +\${ROOM_FOR_CHECK:#x},%rax", text))
    assert checked < call and instructions[checked + 1].startswith("jb")
    assert any(text.startswith("call") for text in instructions[switch:])


def test_the_check_of_the_thread_fits_in_its_room(call_graph):
    size, chain = deepest(*call_graph, "signal_thread_is_libcs")
    print(f"{size} bytes: {' > '.join(chain)}")
    assert size < ROOM_FOR_CHECK


@pytest.mark.parametrize("function", ["heap_sample", "contention.c:record_contention", "thread_is_calm"])
def test_work_on_the_programs_stack_needs_no_more_than_it_checks(call_graph, function):
    frames, calls = call_graph
    (title,) = [title for title in frames if title.endswith(function)]
    size, chain = deepest(frames, calls, title)
    print(f"{size} bytes: {' > '.join(chain)}")
    assert size < constant("WORK_STACK_BYTES", "stack_room.h")
