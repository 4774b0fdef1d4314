"""Sends profiles to a receiver that fails in some way, and asserts what must hold then."""

import re

from profiled import Outcome, check_conformance, decode

IN_TIME = 300  # seconds; a test that waits in vain takes longer
BURNT_MS = 800
SECRET = "Bearer%20sEcReT"


def sender(burn):
    """send(server) -> the profiler's log while a program burnt 200 ms, or `burnt_ms` if `often`.

    The first export comes with the program's end, or, if `often`, every 100 ms."""

    def burn_for(server, often=False, command=None, url=None, burnt_ms=BURNT_MS, **environment):
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": url or server.url,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={SECRET}",
            "OTEL_PROFILE_EXPORT_INTERVAL": "100" if often else "86400000",
            **environment,
        }
        lines = burn(environment, burnt_ms if often else 200, command, IN_TIME)
        assert "sEcReT" not in "\n".join(lines)
        return lines

    return burn_for


def message_of(call):
    return decode(call.body, call.fields["content-type"])


def cpu_profile(message):
    return message.resource_profiles[0].scope_profiles[0].profiles[0]


def assert_taken_once_and_in_order(server):
    """Asserts that no accepted export came twice, and that each interval begins where the one before ended."""
    taken = [call for call in server.calls if call.taken]
    bodies = [call.body for call in taken]
    assert len(set(bodies)) == len(bodies) >= 2
    end = 0
    for call in taken:
        message = message_of(call)
        check_conformance(message)
        profile = cpu_profile(message)
        assert profile.time_unix_nano >= end, "in order, and no interval overlaps another"
        end = profile.time_unix_nano + profile.duration_nano
    outcome = Outcome(0, "", "", [message_of(call) for call in taken])
    assert outcome.instance("burn").cpu_total() > 0.9 * BURNT_MS * 1e6, "all of it arrived"


def assert_survived(server, said, why):
    """Asserts that the log says once that the receiver was away and once that it is back, and that the first export
    came again."""
    assert_taken_once_and_in_order(server)
    first = server.calls[0].body  # the part that was read
    assert server.taken()[0].startswith(first), "the oldest comes first"
    away = [line for line in said if "cannot be sent" in line]
    assert len(away) == 1 and re.search(why, away[0]), said
    assert len(said) == 2 and "being sent again" in said[1], said


def assert_dropped(server, said, why):
    assert len(server.calls) == 1
    assert len(said) == 1 and "they are dropped" in said[0] and why in said[0], said
