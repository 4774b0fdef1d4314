"""Allocation and live-heap profiles agree with what the programs counted of themselves."""

import json

import pytest

import allocators
from sampling_theory import Comparison, bound, standard_error

pytestmark = pytest.mark.system

KIB = 1024
MIB = 1024 * KIB


def compare(profiled, name, interval):
    """Compares every site of the program, by four values each."""
    truth = json.loads(profiled.stdout.splitlines()[-1])
    measured = profiled.instance(name)
    # objects and bytes of a site are one random draw, scaled by its size: judged once, both shown
    drawn = {"allocated": Comparison(), "live": Comparison()}
    for site, t in truth.items():
        error = standard_error(t["objects"], t["size"], interval)
        live_error = standard_error(t["live_objects"], t["size"], interval)
        for comparison, objects, size, e, kinds in (
            (drawn["allocated"], t["objects"], t["bytes"], error, ("alloc_objects", "alloc_space")),
            (drawn["live"], t["live_objects"], t["live_bytes"], live_error,
             ("inuse_objects", "inuse_space")),
        ):
            rounding = 0 if interval == 1 else 2
            comparison.add(f"{site} {kinds[0]}", measured.value_of(site, kinds[0]), objects, e, rounding)
            in_bytes = measured.value_of(site, kinds[1])
            in_objects = measured.value_of(site, kinds[0])
            assert in_bytes == pytest.approx(
                in_objects * t["size"], abs=0 if interval == 1 else max(2, t["size"]) * 2
            ), f"{site}: {kinds[1]} is {kinds[0]} times the size"
            if interval == 1:
                assert in_bytes == size, f"{site} {kinds[1]}"
    for comparison in drawn.values():
        comparison.verdict()
    return truth, measured


@pytest.mark.parametrize(
    "interval, bytes_per_site",
    # at 512 KiB 157 MB a site are 300 samples: near enough to the normal distribution for six deviations
    [(1, 200_000), (64 * KIB, 150 * MIB), (512 * KIB, 150 * MIB)],
)
def test_every_function_of_malloc(run, program, interval, bytes_per_site):
    profiled = run(
        [program("alloc_sites"), str(bytes_per_site)],
        env={
            "OTEL_PROFILER_ALLOC_INTERVAL": str(interval),
            "OTEL_PROFILER_TYPES": "alloc,heap",
            "OTEL_PROFILER_MIN_LIFETIME": "0",
        },
        timeout=180,
    )
    assert profiled.returncode == 0
    compare(profiled, "alloc_sites", interval)


ALLOCATORS = {"libc": "", **allocators.PATHS}


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize(
    "interval, bytes_per_site, bind_now",
    [(1, 200_000, ""), (1, 200_000, "1"), (512 * KIB, 150 * MIB, "")],
)
def test_every_operator_new(run, program, library, interval, bytes_per_site, allocator, bind_now):
    """Each allocation counts once, whether operator new is the allocator's own or calls malloc."""
    profiled = run(
        [program("new_delete"), str(bytes_per_site)],
        env={
            "LD_PRELOAD": f"{library}:{ALLOCATORS[allocator]}",
            "LD_BIND_NOW": bind_now,
            "OTEL_PROFILER_ALLOC_INTERVAL": str(interval),
            "OTEL_PROFILER_MIN_LIFETIME": "0",
        },
        timeout=120,
    )
    compare(profiled, "new_delete", interval)


@pytest.mark.parametrize("max_live", [64, 1000])
def test_too_many_live_objects_make_the_interval_grow(run, program, max_live):
    """No object is forgotten: those that are kept stand for more, and the sums are as good as if the interval had
    been the last one from the start."""
    profiled = run(
        [program("alloc_sites"), str(20 * MIB), "1"],
        env={
            "OTEL_PROFILER_ALLOC_INTERVAL": "256",
            "OTEL_PROFILER_HEAP_MAX_LIVE": str(max_live),
            "OTEL_PROFILER_MIN_LIFETIME": "0",
            "OTEL_LOG_LEVEL": "debug",
        },
        timeout=120,
        log_to_stderr=True,
    )
    period = profiled.instance("alloc_sites").periods["inuse_space"]
    assert period > 256
    assert f"one sample now stands for {period} bytes" in profiled.stderr
    # each site has too few samples then for the normal distribution; all of them together have enough
    truth, measured = json.loads(profiled.stdout), profiled.instance("alloc_sites")
    for kind, counted in (("alloc_space", "objects"), ("inuse_space", "live_objects")):
        expected = sum(t[counted] * t["size"] for t in truth.values())
        variance = sum(
            (standard_error(t[counted], t["size"], period) * t["size"]) ** 2 for t in truth.values()
        )
        found = sum(measured.value_of(site, kind) for site in truth)
        assert abs(found - expected) <= bound(2) * variance**0.5, (kind, found, expected, variance**0.5)


def test_live_objects_have_their_age(run, program):
    profiled = run(
        [program("alloc_sites"), "200000", "1"],
        env={"OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_MIN_LIFETIME": "0",
             "OTEL_PROFILER_HEAP_AGE": "true"},
    )
    _, measured = compare(profiled, "alloc_sites", 1)
    assert measured.attributes["otelprof.heap.age"] == {"<10s"}


def test_harvests_in_between_lose_nothing(run, program):
    """With exports every 50 ms, allocations are the sum of all exports, the live heap is the last."""
    profiled = run(
        [program("alloc_sites"), str(20 * MIB), "1"],
        env={
            "OTEL_PROFILER_ALLOC_INTERVAL": "1024",
            "OTEL_PROFILE_EXPORT_INTERVAL": "50",
            "OTEL_PROFILER_MIN_LIFETIME": "0",
        },
        timeout=120,
    )
    assert profiled.returncode == 0
    truth = json.loads(profiled.stdout)
    measured = profiled.instance("alloc_sites")
    comparison = Comparison()
    for site, t in truth.items():
        error = standard_error(t["objects"], t["size"], 1024)
        comparison.add(site, measured.value_of(site, "alloc_objects"), t["objects"], error, 60)
    comparison.verdict()


def test_size_zero_is_no_allocation(run, program):
    measured = run(
        [program("alloc_sites"), "1000"],
        env={"OTEL_PROFILER_ALLOC_INTERVAL": "1", "OTEL_PROFILER_MIN_LIFETIME": "0"},
    ).instance("alloc_sites")
    assert measured.value_of("site_failed_realloc", "alloc_objects") == 0
    assert measured.value_of("site_grow_after", "alloc_objects") > 0


@pytest.mark.parametrize("profiled", [False, True])
def test_operators_that_are_not_needed_are_withdrawn(run, program, profiled):
    outcome = run([program("finds_operators")], profiled=profiled)
    assert outcome.stdout == "none\n" * 4 + "allocates\n200 calls of its own\n"


@pytest.mark.parametrize("allocator", ["libc", "jemalloc"])
def test_mappings_of_the_program(run, program, library, allocator):
    """Exact where requested; mappings that the allocator makes for itself are not counted twice."""
    env = {"LD_PRELOAD": f"{library}:{ALLOCATORS[allocator]}", "OTEL_PROFILER_ALLOC_INTERVAL": "1",
           "OTEL_PROFILER_MIN_LIFETIME": "0"}
    outcome = run([program("maps_memory")], env={**env, "OTEL_PROFILER_TYPES": "alloc,heap,mmap"})
    truth = json.loads(outcome.stdout)
    measured = outcome.instance("maps_memory")

    def of_mappings(kind):  # tmpfile() allocates below this function
        return sum(value for stack, value in measured.stacks(kind).items() if stack[0] == "anonymous")

    assert of_mappings("alloc_space") == truth["allocated"]
    assert of_mappings("inuse_space") == truth["live"]
    assert of_mappings("inuse_objects") == truth["objects"]
    assert measured.total("alloc_space") < truth["allocated"] + (1 << 20)

    unasked = run([program("maps_memory")], env=env)
    assert "anonymous" not in {stack[0] for stack in unasked.instance("maps_memory").stacks("alloc_space")}


@pytest.mark.parametrize("name", ["own_malloc", "wraps_malloc"])
def test_the_next_functions_of_a_program_with_its_own_malloc(run, program, name):
    """The functions are libc's, as without the profiler: a function that the program lacks once led back to our hook,
    for ever."""
    outcome = run([program(name)])
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr


def test_an_allocator_that_was_not_made_for_threads_is_left_alone(run, program):
    """The helper's libraries would call the allocator beside the program."""
    outcome = run([program("unthreaded_malloc")], env={"OTEL_PROFILE_EXPORT_INTERVAL": "100",
                                                       "OTEL_PROFILER_MIN_LIFETIME": "0", "OTEL_LOG_LEVEL": "debug"},
                  log_to_stderr=True)
    assert (outcome.stdout, outcome.returncode) == ("one at a time\n", 0), outcome.stderr
    assert "is not linked to use threads" in outcome.stderr


@pytest.mark.parametrize(
    "name, lifetime, within", [("fork_small_objects", "1000", 1), ("failing_sites", "0", 0.12)]
)
def test_only_allocations_that_the_gap_ends_at_are_sampled(run, program, name, lifetime, within):
    """Not sampled are the first allocation after a CPU sample of a child without a helper, and the allocation after
    one that failed in place of a sample. There are some 50 samples, and some 4,600."""
    outcome = run([program(name)], env={"OTEL_PROFILER_ALLOC_INTERVAL": "65536",
                                        "OTEL_PROFILER_MIN_LIFETIME": lifetime})
    allocated = int(outcome.stdout)
    told = sum(i.value_of("allocates", "alloc_space") for i in outcome.instances())
    assert told == pytest.approx(allocated, rel=within)


@pytest.mark.parametrize("what", ["flags", "traps"])
@pytest.mark.parametrize("interval", ["1", "524288"])
def test_our_arithmetic_is_not_the_programs(run, program, what, interval):
    outcome = run([program("float_traps"), what],
                  env={"OTEL_PROFILER_ALLOC_INTERVAL": interval, "OTEL_PROFILER_MIN_LIFETIME": "0"})
    assert (outcome.stdout, outcome.returncode) == ("ok\n", 0), outcome.stderr
