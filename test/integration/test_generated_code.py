"""The walker follows code of a JIT compiler by the unwind tables that the compiler registers, and the C++ runtime
gets these tables as without the profiler."""

import re
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.system


def libllvm():
    """Returns the libLLVM that clang is linked to."""
    clang = shutil.which("clang")
    linked = subprocess.run(["ldd", clang], capture_output=True, text=True, check=False).stdout if clang else ""
    found = re.search(r"=> (\S*/libLLVM\S+)", linked)
    return found and found[1]


LLVM = libllvm()
needs_llvm = pytest.mark.skipif(not LLVM, reason="no libLLVM here")


def is_whole(stack):
    """Returns whether the stack goes from from_jit through the two functions, which have names where LLVM's debugger
    interface reported them."""
    inner, outer, *rest = stack[stack.index("from_jit") + 1:]
    return inner in ("jit_inner", "[anonymous]") and outer in ("jit_outer", "[anonymous]") and rest[:2] == ["run_jit", "main"]


@needs_llvm
def test_code_of_llvm_is_walked_by_its_tables(run, program):
    """The code uses the frame pointer for something else: without the tables no stack gets further."""
    done = run([program("llvm_jit"), LLVM, "1", "1500"])
    assert done.returncode == 0, done.stdout
    stacks = {stack: value for stack, value in done.instance("llvm_jit").stacks("samples").items() if "from_jit" in stack}
    assert sum(stacks.values()) > 50
    for stack in stacks:
        assert len(stack) > 4 and is_whole(stack), stack
    assert done.instance("llvm_jit").marked.get(("samples", "otelprof.stack.truncated"), 0) == 0


@needs_llvm
def test_functions_without_tables_beside_others_are_walked_by_their_instructions(run, program):
    """LLVM writes no tables for functions that cannot throw. The frame pointer there is no end of the stack, even if
    it is 0."""
    done = run([program("llvm_jit"), LLVM, "1", "1500", "bare"])
    assert done.returncode == 0, done.stdout
    measured = done.instance("llvm_jit")
    stacks = {stack: value for stack, value in measured.stacks("samples").items() if "from_jit" in stack}
    assert sum(stacks.values()) > 50
    for stack in stacks:
        assert len(stack) > 4 and is_whole(stack), stack
    assert measured.marked[("samples", "otelprof.stack.frame_pointers")] >= 0.9 * sum(stacks.values())


@needs_llvm
@pytest.mark.parametrize("env", [{}, {"OTEL_PROFILER_EXCLUDE": "llvm_jit"}], ids=["profiled", "excluded"])
def test_the_runtime_gets_the_tables_too(run, program, env):
    """The runtime's unwinder comes to the same frame through the code of each round, as without the profiler."""
    command = [program("llvm_jit"), LLVM, "20", "200"]
    alone = run(command, profiled=False)
    done = run(command, env=env)
    assert "-1" not in alone.stdout.split()
    assert (done.stdout, done.returncode) == (alone.stdout, 0)


@needs_llvm
def test_code_that_is_dropped_leaves_no_rules(run, program):
    """Each round reuses the addresses of the last; all rounds are sampled."""
    done = run([program("llvm_jit"), LLVM, "100", "2000"], env={"OTEL_PROFILER_CPU_FREQUENCY": "999"})
    assert done.returncode == 0, done.stdout
    for stack in done.instance("llvm_jit").stacks("samples"):
        if "from_jit" in stack and "_Unwind_Backtrace" not in stack:
            assert len(stack) > 4 and is_whole(stack), stack


def test_code_that_no_runtime_has_is_not_removed_from_one(run, program):
    """libgcc ends a program that removes tables which libgcc does not know."""
    for env in ({}, {"OTEL_PROFILER_EXCLUDE": "registers_before_runtime"}):
        done = run([program("registers_before_runtime")], env=env)
        assert (done.stdout, done.returncode) == ("nobody knew of it\n", 0), done.stderr


PLUGIN = r"""
#include <stdio.h>
void __register_frame(const void *begin) { (void)begin; puts(NAME " is told"); }
void __deregister_frame(const void *begin) { (void)begin; puts(NAME " is told of the end"); }
void use(void) {
    static const int empty[4];
    __register_frame(empty);
    __deregister_frame(empty);
}
"""
LOADER = r"""
#include <dlfcn.h>
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        void (*use)(void);
        *(void **)&use = dlsym(dlopen(argv[i], RTLD_NOW | RTLD_LOCAL), "use");
        use();
    }
    return 0;
}
"""


@pytest.mark.parametrize("linked", [[], ["-Wl,--no-as-needed", "-lgcc_s"]], ids=["alone", "beside_libgcc"])
def test_a_library_with_functions_of_its_own_is_reported_as_without_us(run, tmp_path, linked):
    """A plug-in's functions are its own, unless the program has libgcc's for all."""
    for name in ("first", "second"):
        subprocess.run(["gcc", "-x", "c", "-", "-O1", "-fPIC", "-shared", f'-DNAME="{name}"', "-o", tmp_path / f"{name}.so"],
                       input=PLUGIN, text=True, check=True)
    subprocess.run(["gcc", "-x", "c", "-", "-o", tmp_path / "loader", *linked], input=LOADER, text=True, check=True)
    command = [tmp_path / "loader", tmp_path / "first.so", tmp_path / "second.so"]
    alone = run(command, profiled=False)
    done = run(command)
    assert (done.stdout, done.returncode) == (alone.stdout, 0)
    assert alone.stdout.count("is told") == (0 if linked else 4)


def test_children_forked_while_tables_are_registered_may_load_libraries(run, program):
    """A registration that queries the loader takes a lock that no child gets anew; without the profiler there is no
    query."""
    done = run([program("forks_beside_tables"), "1000"], env={"OTEL_PROFILER_MIN_LIFETIME": "0"}, timeout=300)
    assert (done.stdout, done.returncode) == ("1000 children ended\n", 0), done.stderr
