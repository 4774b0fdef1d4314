"""Exports of stacks that are deep, and that share parts: the tables have each part once, and cost little more than they hold."""

import io
import json
import random
import resource
import subprocess
from array import array

import pytest
from captured import OTELPROF
from otelprof_lib.aggregate import Frame, Profile, Stack
from otelprof_lib.capture_file import append_message
from otelprof_lib.firefox import write_firefox
from otelprof_lib.json_stream import ROWS, write_json
from waiting import TIMEOUT_S

DEPTH, STACKS = 50_000, 100
MEMORY = 512 << 20  # bytes of address space; a row as an object took 858 MB


def of_stacks(stacks):
    frames = [Frame(f"f{number}", "module") for number in range(300)]
    return Profile("CPU time", "count", {(Stack(frames[number] for number in stack), ()): 1 + place for place, stack in enumerate(stacks)})


def read_back(written):
    """{stack of names, leaf first: weight}, and how many rows there are."""
    shared = written["shared"]
    table, names = shared["stackTable"], shared["stringArray"]
    found = {}
    for thread in written["threads"]:
        for at, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            stack = []
            while True:
                stack.append(names[shared["funcTable"]["name"][shared["frameTable"]["func"][table["frame"][at]]]])
                if not table["prefixOffset"][at]:
                    break
                at -= table["prefixOffset"][at]
            found[tuple(stack)] = weight
    assert table["length"] == len(table["frame"]) == len(table["prefixOffset"])
    return found, table["length"]


def test_each_stack_is_read_back_from_the_rows_that_it_shares():
    chance = random.Random(1)
    stacks = list({tuple(chance.randrange(300 if chance.random() < 0.1 else 3) for _ in range(chance.randint(1, 12))) for _ in range(3000)})
    file = io.StringIO()
    write_firefox(file, "title", of_stacks(stacks))
    found, rows = read_back(json.loads(file.getvalue()))
    assert found == {tuple(f"f{number}" for number in stack): 1 + place for place, stack in enumerate(stacks)}
    assert rows == len({stack[begin:] for stack in stacks for begin in range(len(stack))})  # each part from the root once


@pytest.mark.parametrize("value", [
    {}, [], {"a": [], "b": {}, "c": [{}, {"d": None}]}, list(range(2 * ROWS + 1)), [[1, 2], [], [3]], "text\n\u202e", array("i", range(ROWS)),
    [None] * ROWS, [{"a": array("i", [1])}], 1.5, True,
], ids=lambda value: type(value).__name__)
def test_what_is_written_piece_by_piece_is_the_same_json(value):
    file = io.StringIO()
    write_json(file, value)
    assert file.getvalue() == json.dumps(value, separators=(",", ":"), default=list)


@pytest.mark.parametrize("form", ["firefox", "speedscope"])
def test_deep_stacks_take_little_memory(message, tmp_path, form):
    export = message().profile("samples", "count", 10_000_000, {})
    for number in range(2000):
        export.location(f"function {number}")
    for number in range(STACKS):
        export.dictionary.stack_table.add(location_indices=[1 + (7 * place + 13 * number) % 2000 for place in range(DEPTH)])
        export.scope.profiles[0].samples.add(stack_index=1 + number, values=[1 + number])
    with open(tmp_path / "file", "wb") as file:
        append_message(file, export.bytes())
    done = subprocess.run([OTELPROF, "export", "--format", form, "file", "-o", "out"], cwd=tmp_path, capture_output=True, text=True, check=False,
                          timeout=TIMEOUT_S, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
    assert done.returncode == 0, done.stderr
    assert sum(1 for _ in open(tmp_path / "out", encoding="utf-8")) == 1
