"""What a core file holds of us: our tables are left out, and the program's memory is not."""

import re
from pathlib import Path

from endpoint import Process
from waiting import TIMEOUT_S

MOST_OF_OURS = 256 << 10  # the helper's stack, and a page or two for each thread and library: 100 KiB
LEAST_OF_TABLES = 256 << 10  # some MiB


def anonymous_memory(pid):
    """(bytes that a core file has, bytes that it leaves out) of memory that belongs to no file. The static data of the
    library, which the loader maps behind its file, counts as the library's file does."""
    dumped = left_out = 0
    file_before = ""
    for mapping in re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", Path(f"/proc/{pid}/smaps").read_text())[1:]:
        head, size = mapping.split("\n", 1)[0].split(), int(re.search(r"Anonymous: +(\d+)", mapping)[1]) << 10
        is_static = len(head) == 5 and "/libotelprof" in file_before
        file_before = head[-1] if len(head) > 5 else ""
        if file_before:
            continue
        if " dd" in re.search(r"VmFlags:(.*)", mapping)[1]:
            left_out += size
        elif not is_static:
            dumped += size
    return dumped, left_out


def test_a_core_file_leaves_our_tables_out(start, program, tmp_path):
    plain = start([program("works_and_waits"), tmp_path / "stop"], profiled=False)
    profiled = start([program("works_and_waits"), tmp_path / "stop"],
                     env={"OTEL_PROFILER_TYPES": "all", "OTEL_PROFILER_LISTEN": f"unix:{tmp_path}/socket"})
    process = Process(tmp_path / "socket")
    process.until_it_answers()
    assert process.profile("profile?seconds=1").value_of("burns_cpu", "cpu") > 0
    without, none_left_out = anonymous_memory(plain.process.pid)
    dumped, left_out = anonymous_memory(profiled.process.pid)
    (tmp_path / "stop").touch()
    plain.finish(TIMEOUT_S), profiled.finish(TIMEOUT_S)
    assert none_left_out == 0 and left_out > LEAST_OF_TABLES
    assert dumped < without + MOST_OF_OURS, (dumped, without, left_out)
    assert dumped > without / 2
