"""`otelprof run` states why a program left no profile, and writes no empty file and no page then."""

import os
import struct

import pytest
from captured import otelprof
from otelprof_lib.absence import reason

PT_LOAD, PT_INTERP = 1, 3
HEADER, PROGRAM_HEADER = 64, 56


def elf(loader=None, bits=64):
    """Returns the first bytes of an executable: the headers, with two program headers."""
    head = b"\x7fELF" + bytes((bits // 32, 1, 1)) + bytes(9) + struct.pack("<HHIQQQIHHH", 2, 62, 1, 0, HEADER, 0, 0, HEADER, PROGRAM_HEADER, 2)
    name = (loader or "").encode() + b"\0"
    at = HEADER + 2 * PROGRAM_HEADER
    first = struct.pack("<IIQQQQQQ", PT_LOAD, 5, 0, 0, 0, at, at, 4096)
    second = struct.pack("<IIQQQQQQ", PT_INTERP if loader else PT_LOAD, 4, at, 0, 0, len(name), len(name), 1)
    return (head.ljust(HEADER, b"\0") + first + second + name).ljust(512, b"\0")


GLIBC = "/lib64/ld-linux-x86-64.so.2"


@pytest.fixture
def app(tmp_path):
    return tmp_path / "app"


@pytest.mark.parametrize("image, expected", [
    (elf(), "statically linked"), (elf(bits=32), "32-bit"), (elf("/lib/ld-musl-x86_64.so.1"), "musl"),
    (elf(GLIBC), "OTEL_LOG_LEVEL=debug"), (b"#!/srv/no-such-program\n", "OTEL_LOG_LEVEL=debug"), (b"", "OTEL_LOG_LEVEL=debug"),
    (elf(GLIBC)[:20], "OTEL_LOG_LEVEL=debug"), (elf()[:100], "OTEL_LOG_LEVEL=debug"),
])
def test_the_reason_is_read_from_the_program(app, image, expected):
    app.write_bytes(image)
    assert expected in reason(str(app), 5.0, {}, 1, 1)


def test_the_interpreter_of_a_script_is_judged(tmp_path):
    (tmp_path / "shell").write_bytes(elf())
    (tmp_path / "script").write_text(f"#!{tmp_path / 'shell'} -e\n")
    assert reason(str(tmp_path / "script"), 5.0, {}, 1, 1).startswith("shell is statically linked")


def test_a_program_with_the_rights_of_another_user_is_named(app):
    app.write_bytes(elf(GLIBC))
    facts = app.stat()
    for mode, user, group in ((0o4755, facts.st_uid + 1, facts.st_gid), (0o2755, facts.st_uid, facts.st_gid + 1)):
        app.chmod(mode)
        assert "ignores LD_PRELOAD" in reason(str(app), 5.0, {}, user, group)
        assert "ignores LD_PRELOAD" not in reason(str(app), 5.0, {}, facts.st_uid, facts.st_gid)


def test_little_cpu_time_and_a_profiler_that_is_off_are_named(app):
    app.write_bytes(elf(GLIBC))
    assert "0.012 s of CPU time" in reason(str(app), 0.012, {}, 1, 1)
    assert "OTEL_SDK_DISABLED=true" in reason(str(app), 5.0, {"OTEL_SDK_DISABLED": "True"}, 1, 1)


def test_a_run_without_a_profile_writes_nothing(tmp_path):
    (tmp_path / "a.otlp").write_text("of another run")
    done = otelprof("run", "-o", "a.otlp", "--flamegraph", "a.html", "--", "/bin/true", cwd=tmp_path,
                    env={**os.environ, "OTEL_SDK_DISABLED": "true"})
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "otelprof: no profile arrived: OTEL_SDK_DISABLED=true turns the profiler off; a.otlp and a.html are not written\n"
    assert (tmp_path / "a.otlp").read_text() == "of another run"
    assert [path.name for path in tmp_path.iterdir()] == ["a.otlp"]
