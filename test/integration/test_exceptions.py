"""C++ exceptions and thread cancellation are handled by the C++ runtime alone."""

import re

import pytest

pytestmark = pytest.mark.system


def test_same_through_five_shared_objects(run, program):
    plain = run([program("throw_across"), "0"], profiled=False)
    assert "cancelled\n" in plain.stdout and "exited with 5\n" in plain.stdout
    profiled = run([program("throw_across"), "0"])
    assert profiled.stdout == plain.stdout
    assert profiled.returncode == plain.returncode == 0


def test_same_while_being_sampled(run, program):
    loops = "200000"
    profiled = run(
        [program("throw_across"), loops],
        env={"OTEL_PROFILER_CPU_FREQUENCY": "999", "OTEL_PROFILER_ALLOC_INTERVAL": "1024"},
        timeout=120,
    )
    assert profiled.returncode == 0
    assert profiled.stdout.endswith(f"{loops} more\n")
    measured = profiled.instance("throw_across")
    assert any(name.startswith("_Unwind_") for name in measured.names())
    assert measured.value_of("__cxa_allocate_exception", "alloc_objects") > 0


def test_unwinder_is_libgcc_s(run, program):
    """With our libraries loaded, every _Unwind_* of the process is still bound to libgcc_s."""
    profiled = run(
        [program("throw_across"), "100000"],
        env={"LD_DEBUG": "bindings", "LD_BIND_NOW": "1", "OTEL_PROFILER_MIN_LIFETIME": "0"},
        timeout=120,
    )
    bound = re.findall(
        r"binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `(_Unwind_\w+)'", profiled.stderr
    )
    assert {name for _, _, name in bound} >= {"_Unwind_RaiseException", "_Unwind_Resume"}
    for source, target, name in bound:
        assert "libgcc_s.so.1" in target, f"{name} of {source} is bound to {target}"
