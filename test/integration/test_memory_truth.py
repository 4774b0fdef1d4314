"""Allocation and live-heap profiles against what the programs counted of themselves."""

import json

import pytest

from sampling_theory import Comparison, standard_error

KIB = 1024
MIB = 1024 * KIB


def compare(profiled, name, interval):
    """Every site of the program, four values each."""
    truth = json.loads(profiled.stdout.splitlines()[-1])
    measured = profiled.instance(name)
    # objects and bytes of a site are one draw scaled by its size: judged once, both shown
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
    # at 512 KiB 157 MB a site are 300 samples: near enough to the normal law for five deviations
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


@pytest.mark.parametrize("interval, bytes_per_site", [(1, 200_000), (512 * KIB, 150 * MIB)])
def test_every_operator_new(run, program, interval, bytes_per_site):
    profiled = run(
        [program("new_delete"), str(bytes_per_site)],
        env={
            "OTEL_PROFILER_ALLOC_INTERVAL": str(interval),
            "OTEL_PROFILER_MIN_LIFETIME": "0",
        },
        timeout=120,
    )
    compare(profiled, "new_delete", interval)


def test_harvests_in_between_lose_nothing(run, program):
    """Exports every 50 ms: allocations are the sum of all, the live heap is the last."""
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
