"""Signal stacks of ours keep the kernel from writing a frame where the stack pointer happens to point, and no program
can notice them."""

import pytest
from profiled import BUILD, EXACT_CPU, LIBRARY

pytestmark = pytest.mark.fast

FASTEST = {"OTEL_PROFILER_CPU_FREQUENCY": "4000"}


@pytest.mark.parametrize("environment", [EXACT_CPU, FASTEST], ids=["exact", "fastest"])
def test_no_frame_is_written_where_the_stack_pointer_points(run, program, environment):
    outcome = run([program("stack_in_heap")], env=environment)
    places = ("main", "thread", "handler", "handler by signal()", "fibre", "child")
    assert outcome.stdout == "".join(f"{place}: 0 changed, disabled\n" for place in places), outcome.stderr
    assert outcome.returncode == 0


def test_time_with_a_foreign_stack_pointer_is_counted(run, program):
    """Of three samples, one is taken while the stack pointer leads nowhere: its time counts, not that of the others."""
    outcome = run([program("foreign_stack_time")], env=EXACT_CPU)
    measured = outcome.instance("foreign_stack_time")
    assert measured.dropped["foreign_stack"] == 1
    assert measured.foreign_stack_ns == pytest.approx(int(outcome.stdout), abs=2e6)


@pytest.mark.parametrize("environment", [{}, FASTEST], ids=["default", "fastest"])
def test_handlers_and_alternate_stacks_are_as_without_us(run, program, environment):
    plain = run([program("handlers_on_stacks")], profiled=False)
    assert plain.returncode == 0 and "left by a jump" in plain.stdout
    profiled = run([program("handlers_on_stacks")], env=environment)
    assert (profiled.stdout, profiled.returncode) == (plain.stdout, 0), profiled.stderr


@pytest.mark.parametrize("environment", [{}, FASTEST], ids=["default", "fastest"])
def test_a_stack_that_is_set_in_a_handler_ends_with_it_as_without_us(run, program, environment):
    """Handlers run with and without SA_ONSTACK, one within the other, are left by jumps, and use SS_AUTODISARM."""
    plain = run([program("stacks_in_handlers")], profiled=False)
    assert plain.returncode == 0 and plain.stdout.count("sequence") == 800
    profiled = run([program("stacks_in_handlers")], env=environment)
    assert profiled.returncode == 0, profiled.stderr
    assert profiled.stdout.splitlines() == plain.stdout.splitlines()


@pytest.mark.parametrize("way", ["no room", "unmapped", "unmapped, handled", "overflow"])
def test_a_handler_without_room_ends_the_process_as_without_us(run, program, way):
    plain = run([program("handler_without_room"), way], profiled=False)
    profiled = run([program("handler_without_room"), way])
    assert plain.returncode == -11
    assert (profiled.stdout, profiled.returncode) == (plain.stdout, plain.returncode), profiled.stderr


def test_a_handler_on_an_alternate_stack_survives_the_end_of_the_stack(run, program):
    """The run-time libraries of Rust, Java and sbcl do so: they report the overflow, or throw an exception."""
    plain = run([program("handler_without_room"), "caught"], profiled=False)
    profiled = run([program("handler_without_room"), "caught"])
    assert (profiled.stdout, profiled.returncode) == (plain.stdout, 0), profiled.stderr
    assert plain.stdout == "overflow caught\n" * 4


def test_a_runtime_that_finds_our_stack_by_itself_may_keep_it(run, program):
    """Go's, with cgo, ends the process if its handler runs on another stack."""
    plain = run([program("gos_handler")], profiled=False)
    profiled = run([program("gos_handler")])
    assert plain.stdout == "main: on its signal stack\nthread: on its signal stack\n"
    assert (profiled.stdout, profiled.returncode) == (plain.stdout, 0), profiled.stderr


@pytest.mark.parametrize("way, seen", [
    ("fortified", "jumped\n" * 3), ("masked waits", "sigsuspend: -1, pending 0 0\n"),
    ("plain masked waits", "sigsuspend: -1, pending 0 0\n"), ("chained", "second: 1234\n"),
    ("replaced", "base " * 10 + "\n"), ("rearmed", "rearmed 1 80000000\n" * 3 + "on it 3 times\n"),
    ("forked", "child: 2, 0 bytes\nparent: 2, 0 bytes\n"),
    ("stepped", "stepped, as set 1 80000000\n"), ("vfork", "parent ran 1, as set 1 80000000\n"), ("dispatched", "answered 10\n"),
])
def test_corners_of_handlers_are_as_without_us(run, program, way, seen):
    plain = run([program("handler_corners"), way], profiled=False)
    if plain.stdout == "not here\n":
        pytest.skip("this kernel dispatches no system calls to the program")
    assert plain.returncode == 0 and seen in plain.stdout, plain.stdout
    profiled = run([program("handler_corners"), way])
    assert (profiled.stdout, profiled.returncode) == (plain.stdout, 0), profiled.stderr


@pytest.mark.parametrize("way, seen", [
    ("bounds", "begins 512: 1 1 0\n"), ("coroutine", "kept 1024\n" * 2), ("blocked", "the program's 1\n")])
def test_odd_uses_of_alternate_stacks_are_as_without_us(run, program, way, seen):
    plain = run([program("odd_stacks"), way], profiled=False)
    assert plain.returncode == 0 and seen in plain.stdout, plain.stdout
    profiled = run([program("odd_stacks"), way])
    assert (profiled.stdout, profiled.returncode) == (plain.stdout, 0), profiled.stderr


def test_a_checked_jump_to_a_dead_frame_ends_the_process_as_without_us(run, program):
    plain = run([program("handler_corners"), "dead frame"], profiled=False)
    profiled = run([program("handler_corners"), "dead frame"])
    assert (plain.returncode, plain.stdout) == (-6, "") and "longjmp causes uninitialized stack frame" in plain.stderr
    assert (profiled.returncode, profiled.stdout) == (-6, ""), profiled.stderr
    assert plain.stderr in profiled.stderr


@pytest.mark.parametrize("environment", [{}, {"OTEL_PROFILER_TYPES": "alloc"}, {"OTEL_PROFILER_EXCLUDE": "*"}],
                         ids=["default", "without CPU time", "excluded"])
def test_a_handler_that_a_constructor_has_set_begins_with_the_mask_of_a_wait(run, program, environment):
    """Until it is known whether threads get signal stacks, handlers have entries of ours."""
    preloads = {"LD_PRELOAD": f"{LIBRARY}:{BUILD / 'test/programs/early_handler.so'}"}
    outcome = run([program("handler_corners"), "early"], env={**environment, **preloads})
    assert (outcome.stdout, outcome.returncode) == ("open\n", 0), outcome.stderr


def test_a_handler_from_before_us_has_a_stack_of_ours(run, program):
    """A constructor has set it, and then a stack that the kernel disables for each handler."""
    preloads = {"LD_PRELOAD": f"{LIBRARY}:{BUILD / 'test/programs/early_stack.so'}"}
    outcome = run([program("handler_corners"), "early"], env=preloads)
    assert (outcome.stdout, outcome.returncode) == ("a stack\n", 0), outcome.stderr


@pytest.mark.parametrize("way", ["plain", "on stack"])
def test_a_handler_that_ends_on_another_thread_leaves_that_thread_its_stack(run, program, way):
    """Otherwise two threads would take samples on one stack."""
    plain = run([program("moved_handler"), way], profiled=False)
    profiled = run([program("moved_handler"), way])
    assert plain.stdout == "kept 1\n"
    assert (profiled.stdout, profiled.returncode) == (plain.stdout, 0), profiled.stderr
