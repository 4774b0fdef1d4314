"""The Makefile keeps its promises to packagers, and to developers who change one file. Most tests read what make
would do (`make -n`)."""

import os
import re
import subprocess

import pytest
from profiled import BUILD, ROOT

pytestmark = pytest.mark.system

INSTALLS = re.compile(r"\s*\S*(install-deps|apt-get|curl|wget|go|pip|collector/build)\b")
FORTIFY = re.compile(r"-D_FORTIFY_SOURCE=\d")


INHERITED = ("MAKE", "MFLAGS", "CI", "TESTS", "WERROR", "CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LIBDIR", "V")


def make(*arguments, build=None, env=None, returncode=0):
    """Returns the lines that make prints. In a new folder make runs as for a user: without the variables of the
    surrounding make and CI. In the built folder it runs with the settings of the build: nothing there needs to be
    built."""
    environment = dict(os.environ)
    if build:
        environment = {name: value for name, value in environment.items() if not name.startswith(INHERITED)} | (env or {})
    done = subprocess.run(
        ["make", "-C", ROOT, "--no-print-directory", f"BUILD={os.path.relpath(build or BUILD, ROOT)}", *arguments],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == returncode, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout.replace("\\\n", " ").splitlines()


def compiled(lines):
    return [line for line in lines if re.search(r" -c -o \S+\.o ", line)]


def linked(lines):
    return [line for line in lines if re.search(r" -o \S+/libotelprof\S*\.so ", line)]


# --- packagers ---


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """Returns what `make all` would do in a new folder, with flags given and without."""
    given = ["CPPFLAGS=-DGIVEN_CPP", "CFLAGS=-O3 -DGIVEN_C", "LDFLAGS=-Wl,-given"]
    folder = tmp_path_factory.mktemp("planned")
    return {"given": make("-n", "V=1", "all", *given, build=folder), "usual": make("-n", "V=1", "all", build=folder)}


def test_flags_that_are_given_reach_every_command(planned):
    objects, libraries = compiled(planned["given"]), linked(planned["given"])
    assert len(objects) > 100 and len(libraries) == 3
    for line in objects:
        assert all(flag in line for flag in (" -DGIVEN_CPP ", " -O3 ", " -DGIVEN_C ")), line
        assert " -O2 " not in line
    assert all(" -Wl,-given " in line for line in libraries)
    assert not any("GIVEN" in line or "-given" in line for line in planned["usual"])


@pytest.mark.parametrize("how", ["CPPFLAGS=-D_FORTIFY_SOURCE=3", "CFLAGS=-O2 -D_FORTIFY_SOURCE=3",
                                 "CC=cc -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3"])
def test_a_fortify_level_that_is_given_takes_the_place_of_ours(how, planned, tmp_path):
    assert all(FORTIFY.findall(line) == ["-D_FORTIFY_SOURCE=2"] for line in compiled(planned["usual"]))
    lines = make("V=1", f"{os.path.relpath(tmp_path, ROOT)}/obj/common/glob.o", how, build=tmp_path, env={"CI": "true"})
    (command,) = compiled(lines)
    assert " -Werror " in command
    assert FORTIFY.findall(command) == ["-D_FORTIFY_SOURCE=3"]


def test_warnings_are_errors_in_ci_and_check_alone(planned, tmp_path):
    def errors(lines):
        return {" -Werror " in line for line in compiled(lines) if "/proto/" not in line.split(" -c ")[1]}

    assert errors(planned["usual"]) == {False}
    assert errors(make("-n", "V=1", "all", build=tmp_path, env={"CI": "true"})) == {True}
    check = make("-n", "V=1", "check", build=tmp_path)
    assert errors(check) == {True}
    assert {re.match(r"(?:\S+=\S+ )*(\S+)", line)[1] for line in compiled(check)} == {"gcc", "clang"}


@pytest.mark.parametrize("target", ["all", "check", "install", "unit", "quick"])
def test_nothing_is_installed_nor_fetched(target, tmp_path):
    assert [line for line in make("-n", target, build=tmp_path) if INSTALLS.match(line)] == []


def test_deps_and_test_install_their_packages(tmp_path):
    assert any("install-deps build test check" in line for line in make("-n", "deps", build=tmp_path))
    assert make("-n", "test", build=tmp_path)[0] == "scripts/install-deps build test"
    assert make("-n", "test-all", build=tmp_path)[0] == "scripts/install-deps build test test-all"


@pytest.mark.parametrize("demo", ["demo", "demo-links", "demo-python", "demo-waits"])
def test_a_demo_only_lists_packages_if_nothing_may_be_installed(demo, tmp_path):
    lines = make("-n", "NO_INSTALL=1", demo, build=tmp_path)
    assert len(lines) == 1 and lines[0].startswith("scripts/install-deps build")
    assert make("-n", demo, build=tmp_path)[-1] == f"scripts/{demo}"


def test_a_quick_run_that_lacks_something_names_the_command_that_installs_it(tmp_path):
    (line,) = [line for line in make("-n", "quick", build=tmp_path) if "install-deps" in line]
    assert line.startswith("make ") and "NO_INSTALL=1 scripts/install-deps build test" in line and "make deps" in line
    done = subprocess.run([ROOT / "scripts" / "install-deps", "build"], env={"PATH": "/usr/bin:/bin", "NO_INSTALL": "1"},
                          capture_output=True, text=True, check=True)
    assert re.search("^install-deps: (missing packages: .*\ninstall-deps: nothing is installed|no package is missing)", done.stdout)


def test_continuous_integration_runs_every_tier(tmp_path):
    """CI runs README's command first; both commands together run what test/run runs by itself."""
    assert re.findall(r"^make (\S+)", (ROOT / ".ci/run").read_text(), re.M) == ["test", "test-rest"]
    tiers = [make("-n", target, build=tmp_path)[-1].removeprefix("test/run ").split() for target in ("test", "test-rest")]
    assert tiers == [["unit", "fast"], ["timing", "system", "load"]]
    assert make("-n", "test-all", build=tmp_path)[-1] == "test/run"


def test_the_deterministic_tests_need_no_other_language_nor_network(tmp_path):
    commands = "\n".join(make("-n", "test", build=tmp_path))
    assert "test-parts" not in commands and "/build/fuzz/" not in commands
    assert not re.search(r"collector/build|deploy/build|pprof/build|fetch-sources", commands)


def test_the_folder_of_libraries_is_a_setting(tmp_path):
    """The command finds the libraries that were installed there."""
    folders = [f"DESTDIR={tmp_path}", "PREFIX=/usr", "LIBDIR=/usr/lib/x86_64-linux-gnu"]
    make("all")
    lines = make("install", *folders)
    assert [line.split()[0] for line in lines] == ["INSTALL"] * 2, lines
    assert (tmp_path / "usr/lib/x86_64-linux-gnu/otelprof/libotelprof.so").exists()
    assert not (tmp_path / "usr/lib/otelprof").exists()
    done = subprocess.run([tmp_path / "usr/bin/otelprof", "run", "--output", tmp_path / "out", "--", "/bin/true"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "is not written" in done.stderr, done.stderr
    make("uninstall", *folders)
    assert [path for path in tmp_path.rglob("*") if not path.is_dir()] == []


# --- the bundle ---


def test_a_bundle_build_that_was_cut_off_leaves_make_as_it_was(tmp_path):
    """The libraries' sources are in the folder then, with files that look like lists of dependencies: Mbed TLS's is a
    folder."""
    (tmp_path / "bundle-build/libraries/work/mbedtls/ChangeLog.d").mkdir(parents=True)
    (tmp_path / "bundle-build/libraries/work/curl.d").write_text("not for make")
    assert make("-n", "clean", build=tmp_path)


def test_flags_that_are_given_are_not_for_the_bundles_libraries(tmp_path):
    """Without -fPIC, for example, zlib could not be linked into the exporter."""
    seen = tmp_path / "seen"
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\nenv >{seen}\nexit 1\n")
    compiler.chmod(0o755)
    rules = tmp_path / "Makefile"
    rules.write_text(f"bundle:\n\t{ROOT}/scripts/bundle/build-libraries {tmp_path} {ROOT}/scripts/bundle/sources {tmp_path}/out\n")
    given = ["CFLAGS=-DZZZ", "VERSION=ZZZ", "DESTDIR=/ZZZ"]
    subprocess.run(["make", "-f", rules, f"CC={compiler}", *given], capture_output=True, check=False)
    names = {line.split("=")[0] for line in seen.read_text().splitlines() if "ZZZ" in line}
    assert names == {"CFLAGS"}  # which the script sets itself before it builds


# --- what is rebuilt ---


def test_changed_flags_rebuild_and_the_same_do_not(tmp_path):
    target = f"{os.path.relpath(tmp_path, ROOT)}/obj/common/glob.o"

    def rebuilt(*flags, **options):
        return any("common/glob.c" in line for line in make(target, *flags, build=tmp_path, **options))

    assert rebuilt()
    assert not rebuilt()
    assert not rebuilt(env={"CI": "true"})  # no object depends on -Werror
    for flags in ("CFLAGS=-O1", "CPPFLAGS=-DIT='\"s\"'", "LDFLAGS=-Wl,-z,now", "CC=gcc"):
        assert rebuilt(flags), flags
        assert not rebuilt(flags), flags
    assert rebuilt()


def test_a_change_of_the_walker_builds_its_archive_and_tests_alone():
    """In the built folder one file is compiled."""
    source = "shim/capture/unwind/cfi.c"
    selected = ("unit", "TESTS=cfi unwind", "V=")
    make(*selected)
    lines = "\n".join(make("-n", "-W", source, *selected))
    done = re.findall(r"'  %-6s %s\\n' (\w+) (\S+);", lines)
    names = {"cfi", "slow_unwind", "unwind"}
    assert sorted((what, name.rsplit("/", 1)[-1]) for what, name in done) == sorted(
        [("CC", "cfi.c"), ("AR", "libcapture.a"), *(("LINK", f"test_{name}") for name in names)])


def test_quick_builds_two_programs_and_no_fuzzer(tmp_path):
    lines = "\n".join(make("-n", "quick", build=tmp_path))
    assert len(set(re.findall(r" -o (\S+/test/programs/\w+)", lines))) == 2
    assert "FUZZ" not in lines and "/torture/" not in lines
    assert lines.endswith("test/run unit smoke")


# --- selections ---


def run_selected(words, *rooms):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI"))}
    return subprocess.run([ROOT / "test/run", *rooms], env=environment | {"TESTS": words, "BUILD": str(BUILD)},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def test_a_selection_is_of_unit_tests_and_python_tests():
    done = run_selected("glob.c test/scripts/test_validator.py::bare_message test_otelprof.py::test_a_bare_message", "unit", "fast")
    assert done.returncode == 0, done.stdout
    assert re.findall(r"^unit (\w+): ok$", done.stdout, re.M) == ["test_glob"]
    assert re.search(r"^1 passed", done.stdout, re.M)


@pytest.mark.parametrize("words", ["no_such_test", "a(b", "not"])
def test_a_selection_that_matches_nothing_fails(words):
    assert run_selected(words, "unit").returncode == 1
    make("unit", f"TESTS={words}", returncode=2)


def test_the_page_about_tests_is_short_and_has_each_folder():
    page = (ROOT / "test/README.md").read_text()
    assert len(page.splitlines()) <= 65
    folders = {path.parent.relative_to(ROOT / "test").parts[0] for path in (ROOT / "test").glob("*/*")
               if path.is_file() and "__pycache__" not in path.parts}
    assert [folder for folder in sorted(folders) if f"`{folder}/" not in page] == []


def test_no_unit_test_compiles_a_source_of_ours_itself():
    """Each unit test links the objects that were built for the library, with the library's flags."""
    for source in (ROOT / "test/unit").glob("*.[ch]"):
        assert not re.search(r'#\s*include\s+"[^"]+\.c"', source.read_text()), source.name
