"""What the application publishes about itself (OTEP 4719) is in the resource for as long as it is published, and no
content or writer, however wrong, does harm."""

import itertools

import pytest

from profiled import attributes_of
from waiting import TIMEOUT_S, eventually

import common_pb2
import resource_pb2

pytestmark = pytest.mark.system


def payload(**attributes):
    """Returns ProcessContext {1: Resource}, as hexadecimal digits."""
    resource = resource_pb2.Resource()
    for key, value in attributes.items():
        kind = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}[type(value)]
        resource.attributes.add(key=key.replace("__", "."), value=common_pb2.AnyValue(**{kind: value}))
    data = resource.SerializeToString()
    size = len(data)
    return (b"\x0a" + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + data).hex()


class Program:
    def __init__(self, running, folder):
        self.running = running
        self.folder = folder
        self.requests = running.receiver.requests

    def do(self, line):
        """Returns when the program has done it."""
        new = self.folder / "new"
        new.write_text(line + "\n")
        new.rename(self.folder / "do")
        self.wait_for((self.folder / "done").exists, line)
        (self.folder / "done").unlink()

    def wait_for(self, condition, what, **options):
        return eventually(condition, what, unless=self.running.process.poll, **options)

    def resource(self):
        return attributes_of(self.requests[-1].resource_profiles[0].resource) if self.requests else {}

    def wait_for_resource(self, **attributes):
        """Waits until an export has these attributes; None: has no attribute of that name."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        self.wait_for(lambda: self.requests and self.resource(), f"a resource with {wanted}",
                      holds=lambda found: found and all(found.get(key) == value for key, value in wanted.items()))

    def wait_for_exports(self, count):
        before = len(self.requests)
        self.wait_for(lambda: len(self.requests) >= before + count, f"{count} exports")

    def end(self):
        (self.folder / "do").write_text("end\n")
        outcome = self.running.finish(TIMEOUT_S)
        assert (outcome.returncode, outcome.stdout) == (0, "")
        return outcome


@pytest.fixture
def begin(start, program, tmp_path):
    numbers = itertools.count()

    def start_in_a_folder(**environment):
        folder = tmp_path / f"commands{next(numbers)}"
        folder.mkdir()
        environment = {
            "OTEL_PROFILE_EXPORT_INTERVAL": "50", "OTEL_PROFILER_CPU_FREQUENCY": "999",
            "OTEL_PROFILER_TYPES": "cpu", **environment,
        }
        command = [program("publishes_context"), folder]
        return Program(start(command, env=environment, log_to_stderr=True), folder)

    return start_in_a_folder


def names_anonymous_memory():
    """Returns whether the kernel has CONFIG_ANON_VMA_NAME, which Linux has since 5.17; for shared memory since 6.2."""
    import ctypes
    import mmap

    libc = ctypes.CDLL(None, use_errno=True)
    found = {}
    for kind, flags in (("anon", mmap.MAP_PRIVATE), ("shmem", mmap.MAP_SHARED)):
        memory = mmap.mmap(-1, mmap.PAGESIZE, flags=flags | mmap.MAP_ANONYMOUS)
        address = ctypes.c_ulong(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
        libc.prctl(0x53564D41, ctypes.c_ulong(0), address, ctypes.c_ulong(mmap.PAGESIZE), b"probe")
        with open("/proc/self/maps") as maps:
            found[kind] = ":probe]" in maps.read()
        libc.prctl(0x53564D41, ctypes.c_ulong(0), address, ctypes.c_ulong(mmap.PAGESIZE), None)
    return found


KINDS = ["memfd", *(kind for kind, named in names_anonymous_memory().items() if named)]


@pytest.mark.parametrize("kind", KINDS)
def test_published_changed_and_withdrawn(begin, kind):
    program = begin()
    program.wait_for_resource(service__name="unknown_service:publishes_context", deployment=None)
    own_id = program.resource()["service.instance.id"]
    program.do(f"publish {kind} " + payload(
        service__name="shop", service__instance__id="7", deployment="blue", flag=True, ratio=0.5, count=-3,
    ))
    program.wait_for_resource(
        service__name="shop", service__instance__id="7", deployment="blue", flag=True, ratio=0.5, count=-3,
    )
    program.do(f"publish {kind} " + payload(service__name="shop2"))
    program.wait_for_resource(service__name="shop2", deployment=None, service__instance__id=own_id)
    program.do("withdraw")
    program.wait_for_resource(service__name="unknown_service:publishes_context")
    program.do(f"publish {kind} " + payload(service__name="back"))
    program.wait_for_resource(service__name="back")
    assert program.end().stderr == ""


def test_the_operator_wins(begin):
    program = begin(OTEL_SERVICE_NAME="mine", OTEL_RESOURCE_ATTRIBUTES="deployment=green")
    program.do("publish memfd " + payload(
        service__name="shop", deployment="blue", host__name="theirs", telemetry__sdk__name="opentelemetry",
        process__command_line="program --password=x", extra="e",
    ))
    program.wait_for_resource(extra="e", host__name="theirs")
    resource = program.resource()
    assert (resource["service.name"], resource["deployment"]) == ("mine", "green")
    assert resource["telemetry.sdk.name"] == "libotelprof"
    outcome = program.end()
    assert outcome.stderr == ""
    assert not any(b"password" in body for body in outcome.bodies)


GARBAGE = {
    "no message": "publish memfd ffffff",
    "no pointer": "header 2 100 77 0",
    "a pointer to nothing": "header 2 100 77 4096",
    "a pointer outside": "header 2 100 77 18446744073709551615",
    "too large": "header 2 4294967295 77 4096",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage(begin, kind):
    """A debug line reports it once; exports go on without the context, and a valid context is used again."""
    program = begin(OTEL_LOG_LEVEL="debug")
    program.do("publish memfd " + payload(deployment="blue"))
    program.wait_for_resource(deployment="blue")
    program.do(GARBAGE[kind])
    program.wait_for_resource(deployment=None)
    program.wait_for_exports(3)
    program.do("publish memfd " + payload(deployment="green"))
    program.wait_for_resource(deployment="green")
    text = "(OTEL_CTX) cannot be read; going on without its attributes"
    assert [text in line for line in program.end().stderr.splitlines() if "debug: the process context" in line] == [True]


@pytest.mark.parametrize("header", ["header 1 0 77 0", "header 3 0 77 0"])
def test_another_version_is_none_of_ours(begin, header):
    program = begin()
    program.do("publish memfd " + payload(deployment="blue"))
    program.wait_for_resource(deployment="blue")
    program.do(header)
    program.wait_for_resource(deployment=None)
    assert program.end().stderr == ""
