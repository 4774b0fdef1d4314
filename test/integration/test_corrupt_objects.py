"""Objects with damaged tables run under the profiler: no other code in the process reads these tables."""

import shutil
import struct
import subprocess

import pytest

pytestmark = [pytest.mark.fast, pytest.mark.hard]

PT_LOAD, PT_NOTE, PT_GNU_EH_FRAME = 1, 4, 0x6474E550
GAP = 1 << 21  # between segments, on x86-64's largest page size

SOURCE = """
#include <stdlib.h>
#include <time.h>
static void *volatile kept;
static volatile long sink;
__attribute__((noinline)) void inner(void) {
    for (int i = 0; i < 10000; i++)
        sink += i;
    free(kept);
    kept = malloc(100);
    sink++;
}
__attribute__((noinline)) void works(double seconds) {
    struct timespec t;
    do {
        inner();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    } while (t.tv_sec + t.tv_nsec / 1e9 < seconds);
    sink++;
}
"""

PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
void works(double seconds);
int main(int argc, char **argv) {
    const double seconds = argc > 2 ? atof(argv[2]) : 0;
#ifdef LOADS
    void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    void (*work)(double);
    void *symbol = library ? dlsym(library, "works") : NULL;
    if (!symbol)
        return 3;
    memcpy(&work, &symbol, sizeof work);
    work(seconds);
    dlclose(library);
#else
    works(seconds);
#endif
    puts("ran");
    return 0;
}
"""


class Object:
    """Is an ELF file that a test damages."""

    def __init__(self, path):
        self.bytes = bytearray(path.read_bytes())
        self.headers_at, = struct.unpack_from("<Q", self.bytes, 32)
        self.count, = struct.unpack_from("<H", self.bytes, 56)

    def header_at(self, kind):
        for i in range(self.count):
            at = self.headers_at + 56 * i
            if struct.unpack_from("<I", self.bytes, at)[0] == kind:
                yield at

    def set_address(self, kind, address):
        for at in self.header_at(kind):
            struct.pack_into("<Q", self.bytes, at + 16, address)

    def loads(self):
        return [struct.unpack_from("<QQ", self.bytes, at + 16)[0] + struct.unpack_from("<Q", self.bytes, at + 40)[0]
                for at in self.header_at(PT_LOAD)]

    def gap(self):
        """Returns an address between the first segment and the second."""
        return self.loads()[0] + (GAP >> 1)

    def entries(self):
        """Returns offsets of the pairs (function, entry) of .eh_frame_hdr, and its address."""
        at = next(self.header_at(PT_GNU_EH_FRAME))
        offset, address = struct.unpack_from("<QQ", self.bytes, at + 8)
        count, = struct.unpack_from("<I", self.bytes, offset + 8)
        return [(offset + 12 + 8 * i) for i in range(count)], address


def entries_into_a_gap(object_):
    places, header = object_.entries()
    for place in places:
        struct.pack_into("<i", object_.bytes, place + 4, object_.gap() - header)


def entries_behind_the_object(object_):
    places, header = object_.entries()
    for place in places:
        struct.pack_into("<i", object_.bytes, place + 4, object_.loads()[-1] + 64 * GAP - header)


def entries_of_another_encoding(object_):
    places, _ = object_.entries()
    for place in places:
        struct.pack_into("<i", object_.bytes, place + 4, -(1 << 31))


def count_without_measure(object_):
    places, _ = object_.entries()
    struct.pack_into("<I", object_.bytes, places[0] - 4, 0x7FFFFFF)


def header_in_a_gap(object_):
    object_.set_address(PT_GNU_EH_FRAME, object_.gap())


def header_at_the_end_of_a_segment(object_):
    object_.set_address(PT_GNU_EH_FRAME, object_.loads()[0] - 3)


def note_in_a_gap(object_):
    object_.set_address(PT_NOTE, object_.gap())


def note_behind_the_object(object_):
    object_.set_address(PT_NOTE, object_.loads()[-1] + 64 * GAP)


def note_beyond_the_end_of_a_segment(object_):
    for at in object_.header_at(PT_NOTE):
        struct.pack_into("<Q", object_.bytes, at + 40, 8 * GAP)


DAMAGES = [entries_into_a_gap, entries_behind_the_object, entries_of_another_encoding, count_without_measure,
           header_in_a_gap, header_at_the_end_of_a_segment, note_in_a_gap, note_behind_the_object,
           note_beyond_the_end_of_a_segment]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    (folder / "library.c").write_text(SOURCE)
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-fomit-frame-pointer", "-Wl,-z,separate-code", "-Wl,--build-id",
                    f"-Wl,-z,max-page-size={GAP},-z,common-page-size={GAP}", "-o", folder / "liblibrary.so",
                    folder / "library.c"], check=True)
    subprocess.run(["gcc", "-O1", "-DLOADS", "-o", folder / "loads", folder / "program.c", "-ldl"], check=True)
    subprocess.run(["gcc", "-O1", "-o", folder / "links", folder / "program.c", f"-L{folder}", "-llibrary",
                    "-Wl,-rpath,$ORIGIN"], check=True)
    return folder


@pytest.mark.parametrize("how", ["loads", "links"])
@pytest.mark.parametrize("damage", [None, *DAMAGES], ids=lambda damage: damage.__name__ if damage else "whole")
def test_an_object_that_runs_alone_runs_beside_us(run, built, tmp_path, damage, how):
    shutil.copy(built / how, tmp_path / how)
    library = tmp_path / "liblibrary.so"
    object_ = Object(built / "liblibrary.so")
    if damage:
        damage(object_)
    library.write_bytes(object_.bytes)
    command = [tmp_path / how, library]
    alone = run([*command, "0"], profiled=False)
    assert (alone.returncode, alone.stdout) == (0, "ran\n"), "or the test shows nothing"
    beside = run([*command, "0.3"], env={"OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_PROFILE_EXPORT_INTERVAL": "100",
                               "OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_CPU_FREQUENCY": "1000"})
    assert (beside.returncode, beside.stdout) == (0, "ran\n"), beside.stderr
    instance = beside.instance(how)
    assert instance.cpu_of("inner") > 0.1e9
    if not damage or damage.__name__.startswith("note"):  # its unwind tables are whole
        assert instance.cpu_of("main") > 0.1e9


