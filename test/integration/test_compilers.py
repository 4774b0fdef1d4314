"""The profiler reads what each compiler writes about a function in a namespace: clang and rustc store it elsewhere
than gcc."""

import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.system

CXX = """\
#include <ctime>
namespace shop { namespace cart {
static inline __attribute__((always_inline)) long weighs(long i) {
    for (int turn = 0; turn < 100; turn++)
        __asm__ volatile("" : "+r"(i));
    return i;
}
__attribute__((noinline)) long adds(long count) {
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += weighs(i);
    return sum;
}
} }
int main() {
    while (clock() < CLOCKS_PER_SEC / 2)
        (void)shop::cart::adds(10000);
}
"""

RUST = """\
mod shop {
    pub mod cart {
        #[inline(always)]
        fn weighs(mut i: u64) -> u64 {
            for _ in 0..100 {
                i = unsafe { std::ptr::read_volatile(&i) };
            }
            i
        }
        #[inline(never)]
        pub fn adds(count: u64) -> u64 {
            (0..count).fold(0, |sum, i| sum + weighs(i))
        }
    }
}
fn main() {
    let start = std::time::Instant::now();
    while start.elapsed().as_millis() < 500 {
        shop::cart::adds(10000);
    }
}
"""


def lines_of(request):
    """Returns (function, file, line) for each location, the innermost first."""
    dictionary = request.dictionary
    strings, functions = dictionary.string_table, dictionary.function_table
    for location in dictionary.location_table:
        yield [
            (re.sub(r"(?<=\w)\(.*", "", strings[functions[line.function_index].name_strindex]),
             strings[functions[line.function_index].filename_strindex], line.line)
            for line in location.lines
        ]


def body_of(name, text):
    """Returns the line numbers from the function's definition to the end of its braces."""
    first = next(i for i, line in enumerate(text) if re.search(rf"(long|fn) {name}\(", line))
    last = next(i for i in range(first, len(text)) if text[i].strip() == "}"
                and "\n".join(text[first:i + 1]).count("{") == "\n".join(text[first:i + 1]).count("}"))
    return range(first + 1, last + 2)


def expect_inlined(outcome, source):
    """Asserts that `weighs` is inlined into `adds`, each with its file and a line of its own."""
    text = source.read_text().splitlines()
    found = []
    for request in outcome.requests:
        for lines in lines_of(request):
            # gcc gives an inlined static function only its own name
            places = {name.split("::")[-1]: (file, line) for name, file, line in lines}
            if "weighs" in places:
                found.append(places)
    assert found
    for places in found:
        for function in ("weighs", "adds"):
            file, line = places[function]
            assert file.endswith(source.name)
            assert line in body_of(function, text) or line == 0, places
    assert any(places["weighs"][1] for places in found)


@pytest.mark.parametrize("command", ["g++ -g", "clang++ -g", "clang++ -gdwarf-4", "rustc -g -C opt-level=2"])
def test_functions_in_namespaces(run, tmp_path, command):
    compiler = command.split()[0]
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is missing")
    rust = compiler == "rustc"
    source = tmp_path / ("shop.rs" if rust else "shop.cpp")
    source.write_text(RUST if rust else CXX)
    optimised = [] if rust else ["-O2"]
    subprocess.run([*command.split(), *optimised, source, "-o", tmp_path / "shop"], check=True)
    outcome = run([tmp_path / "shop"])
    assert outcome.returncode == 0
    expect_inlined(outcome, source)


LOCAL = """\
#include <ctime>
namespace shop { namespace {
__attribute__((noinline)) long hides(long count) {
    for (long i = 0; i < count; i++)
        __asm__ volatile("" : "+r"(i));
    return count;
}
} long shows(long count) { return hides(count) + 1; } }
int main() {
    while (clock() < CLOCKS_PER_SEC / 2)
        (void)shop::shows(100000);
}
"""


@pytest.mark.parametrize("command", ["g++ -g", "g++ -g1", "g++ -g -gsplit-dwarf", "clang++ -g", "clang++ -g1", "clang++ -g -gsplit-dwarf"])
def test_a_function_that_the_debug_information_names_in_short_or_not_at_all(run, tmp_path, command):
    """No compiler writes a local function's linkage name, clang's -g1 leaves functions out, and split debug
    information is in another file: still the symbol has the name, and the line is known."""
    if not shutil.which(command.split()[0]):
        pytest.skip(f"{command} is missing")
    source = tmp_path / "shop.cpp"
    source.write_text(LOCAL)
    subprocess.run([*command.split(), "-O2", source, "-o", tmp_path / "shop"], cwd=tmp_path, check=True)
    outcome = run([tmp_path / "shop"])
    assert outcome.returncode == 0
    found = [lines[-1] for request in outcome.requests for lines in lines_of(request)
             if lines and lines[-1][0].endswith("hides")]
    assert found
    body = body_of("hides", source.read_text().splitlines())
    for name, file, line in found:
        assert name == "shop::(anonymous namespace)::hides"
        assert line == 0 or (file.endswith("shop.cpp") and line in body)
    assert any(line for _, _, line in found)
