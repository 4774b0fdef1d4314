"""Writes speedscope's file format: https://www.speedscope.app/file-format-schema.json"""

from .foreign import printable
from .formats import exact
from .json_stream import write_json

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
UNITS = {"seconds": "nanoseconds", "duration": "nanoseconds", "bytes": "bytes"}  # all other kinds: none


def _sampled(profile, place):
    rows = list(profile.stacks.items())
    weights = [exact(profile.unit, value) for _, value in rows]
    return {
        "type": "sampled",
        "name": profile.title,
        "unit": UNITS.get(profile.unit, "none"),
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[place(frame) for frame in reversed(stack)] for stack, _ in rows],
        "weights": weights,
    }


def write_speedscope(file, title, profiles):
    """Writes all of the profiles, one after the other."""
    places = {}
    sampled = [_sampled(profile, lambda frame: places.setdefault(frame, len(places))) for profile in profiles.values()]
    frames = [
        {"name": printable(frame.name), **({"file": printable(frame.module)} if frame.module else {})}
        for frame in places
    ]
    write_json(
        file,
        {
            "$schema": SCHEMA,
            "exporter": "otelprof",
            "name": title,
            "activeProfileIndex": 0,
            "shared": {"frames": frames},
            "profiles": sampled,
        },
    )
    file.write("\n")
