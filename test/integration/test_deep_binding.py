"""Libraries that search for functions among their own dependencies first (RTLD_DEEPBIND), or have a C library of
their own (dlmopen): PHP loads its extensions so, and chdb (ClickHouse) loads itself so."""

import subprocess

import pytest
from profiled import EXACT_CPU, START_NS

SETTINGS = {"OTEL_LOG_LEVEL": "debug", "OTEL_PROFILER_ALLOC_INTERVAL": "1", **EXACT_CPU}
BOUND = "calls of libraries that were loaded with RTLD_DEEPBIND lead here so far"


def load(run, program, how, *functions, env=None, **options):
    command = [program("loads_deep"), how, program("bound_past.so"), *functions]
    return run(command, log_to_stderr=True, env={**SETTINGS, **(env or {})}, **options)


def compiled(folder, name, source, *flags):
    folder.mkdir(exist_ok=True, parents=True)
    text = folder / (name + ".c")
    text.write_text(source)
    subprocess.run(["cc", "-fPIC", "-shared", "-o", folder / name, text, *flags], check=True)
    return folder / name


@pytest.mark.parametrize("how", ["now", "lazy"])
def test_threads_and_memory_of_a_library_bound_past_us_are_profiled(run, program, how):
    outcome = load(run, program, how, "deep_run")
    assert outcome.returncode == 0, outcome.stderr
    assert BOUND in outcome.stderr
    instance = outcome.instance("loads_deep")
    assert instance.cpu_of("deep_burns") == pytest.approx(30e6, abs=START_NS), instance.stacks("samples")
    assert instance.value_of("deep_allocates", "alloc_space") == 40 << 20
    assert instance.value_of("deep_allocates", "inuse_space") == 0


def test_a_library_is_bound_though_another_thread_was_in_the_loader(run, program, tmp_path):
    """That thread is in the loader when dlopen() ends, as our helper may be; the library's first thread is profiled."""
    library = compiled(
        tmp_path, "libcreates.so",
        "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
        "void deep_creates(void *(*in_thread)(void *)) {\n"
        "    pthread_t id;\n    pthread_create(&id, NULL, in_thread, NULL);\n    pthread_join(id, NULL);\n}\n"
        "__attribute__((constructor)) static void begin(void) {\n"
        "    void (*enter)(void);\n    sscanf(getenv(\"ENTER_LOADER\"), \"%p\", (void **)&enter);\n    enter();\n}\n",
    )
    outcome = run([program("deep_beside_loader"), library], log_to_stderr=True, env=SETTINGS)
    assert outcome.returncode == 0, outcome.stderr
    instance = outcome.instance("deep_beside_loader")
    assert instance.cpu_of("deep_burns") == pytest.approx(30e6, abs=START_NS), instance.stacks("samples")


@pytest.mark.parametrize("how", ["now", "lazy", "dlmopen"])
@pytest.mark.parametrize("where", ["constructor", "call"])
def test_it_takes_our_signal_without_harm(run, program, how, where):
    """The library's signal(SIGPROF, SIG_DFL) must not let a timer of ours end the process."""
    env = {"TAKES_SIGNAL": "yes"} if where == "constructor" else None
    outcome = load(run, program, how, "deep_takes_signal", env=env)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.instance("loads_deep").cpu_of("main_burns") == pytest.approx(40e6, abs=START_NS)


@pytest.mark.parametrize("how", ["now", "lazy"])
def test_it_finds_all_as_it_is_without_us(run, program, how):
    """A function has one address, in code and in data, and memory that was read-only is so again."""
    plain = load(run, program, how, "deep_pointers_agree", "deep_run", "deep_pointers_agree", profiled=False)
    profiled = load(run, program, how, "deep_pointers_agree", "deep_run", "deep_pointers_agree")
    assert "deep_pointers_agree 1\n" in plain.stdout and "r--p\n" in plain.stdout
    assert (profiled.returncode, profiled.stdout) == (plain.returncode, plain.stdout)
    assert BOUND in profiled.stderr


@pytest.mark.parametrize("how", ["now", "lazy"])
def test_a_library_that_brings_an_allocator_keeps_it(run, program, how, tmp_path):
    allocator = compiled(
        tmp_path, "liballocator.so",
        "static char memory[4096]; void *malloc(unsigned long size) { (void)size; return memory; }\n"
        "void free(void *object) { (void)object; }\n"
        "int is_mine(const char *p) { return p >= memory && p < memory + sizeof memory; }\n",
        "-fno-builtin", "-Wl,-soname,liballocator.so",
    )
    library = compiled(
        tmp_path, "libuser.so",
        "void *malloc(unsigned long); void free(void *); int is_mine(const char *);\n"
        "int uses_its_own(void) { void *p = malloc(10); int mine = is_mine(p); free(p); return mine; }\n",
        "-fno-builtin", "-Wl,-z,lazy", "-Wl,--no-as-needed", allocator, f"-Wl,-rpath,{tmp_path}",
    )
    outcome = run([program("loads_deep"), how, library, "uses_its_own"], log_to_stderr=True, env=SETTINGS)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.startswith("uses_its_own 1\n")


@pytest.mark.parametrize("tag", ["--enable-new-dtags", "--disable-new-dtags"])
@pytest.mark.parametrize("name", ["libplug.so", "$ORIGIN/inner/libplug.so", "FOLDER/inner/libplug.so"])
def test_a_library_is_found_where_its_caller_would_find_it(run, program, tmp_path, tag, name):
    """The loader searches the RUNPATH or RPATH of the caller of dlopen, and the caller's folder: our library must not
    count."""
    name = name.replace("FOLDER", str(tmp_path))
    compiled(tmp_path / "inner", "libdeep.so", "int depth(void) { return 1; }\n", "-Wl,-soname,libdeep.so")
    compiled(tmp_path / "inner", "libplug.so", "int depth(void); int plugged(void) { return depth(); }\n",
             tmp_path / "inner" / "libdeep.so", "-Wl,-rpath,$ORIGIN")
    caller = compiled(
        tmp_path, "libcaller.so",
        "#define _GNU_SOURCE\n#include <dlfcn.h>\n"
        f"int finds_it(void) {{ void *p = dlopen(\"{name}\", RTLD_NOW | RTLD_DEEPBIND);\n"
        "int (*f)(void) = p ? (int (*)(void))dlsym(p, \"plugged\") : 0; return f && f(); }\n",
        f"-Wl,{tag}", "-Wl,-rpath,$ORIGIN/inner",
    )
    outcome = run([program("loads_deep"), "now", caller, "finds_it"], log_to_stderr=True, env=SETTINGS)
    assert outcome.stdout.startswith("finds_it 1\n"), outcome.stderr


def test_a_library_with_a_libc_of_its_own_is_reported_once(run, program):
    outcome = load(run, program, "dlmopen", "deep_run", env={"OTEL_PROFILE_EXPORT_INTERVAL": "100"})
    assert outcome.returncode == 0
    assert outcome.stderr.count("a library was loaded by dlmopen, with a C library of its own") == 1
    assert outcome.instance("loads_deep").cpu_of("main_burns") == pytest.approx(40e6, abs=START_NS)
