"""Code of the vDSO, which is the kernel's and has no file, has names in every process."""

import hashlib
from pathlib import Path

import pytest

pytestmark = pytest.mark.timing


def image():
    """Returns the vDSO as it is mapped: equal in all processes."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("[vdso]"):
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            with open("/proc/self/mem", "rb") as memory:
                memory.seek(start)
                return memory.read(end - start)
    raise AssertionError("no process of this kernel has one")


def htlhash(file):
    """Computes the id that the eBPF profiler gives to a file: from its ends and its length."""
    return hashlib.sha256(file[:4096] + file[-4096:] + len(file).to_bytes(8, "big")).hexdigest()[:32]


def identities(outcome):
    for request in outcome.requests:
        dictionary = request.dictionary
        strings = dictionary.string_table
        for mapping in dictionary.mapping_table:
            if strings[mapping.filename_strindex] != "[vdso]":
                continue
            for index in mapping.attribute_indices:
                attribute = dictionary.attribute_table[index]
                if strings[attribute.key_strindex] == "process.executable.build_id.htlhash":
                    yield attribute.value.string_value


def test_the_vdso_has_names_and_the_identity_that_others_give_it(run, program):
    outcome = run([program("reads_clocks")])
    instance = outcome.instance("reads_clocks")
    inside = sum(instance.cpu_of(f"__vdso_{name}") for name in ("clock_gettime", "gettimeofday"))
    assert inside > 0.5 * instance.cpu_total()
    assert instance.cpu_of("__vdso_clock_gettime") > 0 and instance.cpu_of("__vdso_gettimeofday") > 0
    assert set(identities(outcome)) == {htlhash(image())}
