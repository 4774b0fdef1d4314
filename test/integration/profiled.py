"""Runs a program under the preload with a receiver on loopback, and gives access to the profiles that came: the tests
of truth and harmlessness are written with it.

An Instance is one process (service.instance.id). It sums its exports up: CPU and allocations over all of them, the
live heap from the last.
"""

import gzip
import os
import platform
import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
sys.path.insert(0, str(BUILD / "python"))
sys.path.insert(0, str(ROOT / "test" / "lib"))

sys.path.insert(0, str(ROOT / "scripts"))

import profiles_service_pb2  # noqa: E402
from otelprof_lib.listening import HELPERS  # noqa: E402, F401
from otelprof_lib.capture_file import decode_json  # noqa: E402
from otelprof_lib.kinds import KINDS  # noqa: E402
from otlp_sink import OtlpSink  # noqa: E402
from validator import problems  # noqa: E402

LIBRARY = BUILD / "libotelprof.so"
ARCH = platform.machine()
SNAPSHOTS = tuple(value.type for kind in KINDS.values() if kind.is_snapshot for value in kind.values)
NOT_WHOLE = ("otelprof.stack.truncated", "otelprof.stack.depth_cut", "otelprof.stack.unsampled")

# With these variables, a program whose functions end by TAKE_CPU_SAMPLE() (programs/cpu_sample.h) has the CPU time of each
# function in its profile, exact to the period of 1 ms and to the work between two samples: page faults, a thread's start,
# taking the sample. START_NS is four times the most of that work, 5 ms of 62 places, that a machine with a load of 65 has
# shown; the loader's time is no part of it.
EXACT_CPU = {"OTEL_PROFILER_CPU_FREQUENCY": "1000", "OTEL_PROFILER_MIN_LIFETIME": "0"}
START_NS = 20e6
# Python takes its samples by this library, loaded by ctypes.PyDLL: take_cpu_sample() and hold_cpu_samples().
TAKES_CPU_SAMPLE = BUILD / "test" / "programs" / "takes_cpu_sample.so"
# With these variables, and a working directory of its own, a program may wait for an export
# (programs/awaits_export.h).
AWAITED = {"OTEL_PROFILES_EXPORTER": "otlp,otlp_file", "OTEL_PROFILE_EXPORT_INTERVAL": "50", "OTEL_PROFILER_MIN_LIFETIME": "0"}

# Begins a Python program whose os.fork() makes children that are profiled, as programs/forked.h does.
FORKS = """
import ctypes, os
def fork_profiled(fork=os.fork, read=ctypes.PyDLL(None).otelprof_counters_read):
    is_profiled = lambda: read((ctypes.c_size_t * 2)(16)) == 1
    while is_profiled():
        ends = os.pipe()
        if not (child := fork()):
            is_profiled() or os._exit(0)
            os.write(ends[1], b"p")
        os.close(ends[1])
        is_kept = not child or os.read(ends[0], 1)
        os.close(ends[0])
        if is_kept:
            return child
        os.waitpid(child, 0)
    return fork()
os.fork = fork_profiled
"""

PROFCHECK = BUILD / "collector" / "profcheck"


def check_conformance(request):
    """Checks every export of every test: by our validator, and by OpenTelemetry's checker where it is built."""
    found = problems(request)
    assert not found, "\n".join(found[:20])
    if PROFCHECK.exists():
        done = subprocess.run(
            [PROFCHECK, "-check-dupes", "-check-orphans", "/dev/stdin"],
            input=request.SerializeToString(), capture_output=True, check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr).decode()


def decode(body, content_type):
    """Decodes a request's body. The header alone distinguishes protobuf from JSON."""
    assert content_type in ("application/x-protobuf", "application/json")
    if content_type == "application/json":
        body = decode_json(body).SerializeToString()
    return profiles_service_pb2.ExportProfilesServiceRequest.FromString(body)


class Receiver(OtlpSink):
    """Receives exports and keeps every request."""

    def __init__(self, port=0):
        self.requests = []
        self.bodies = []  # decompressed
        super().__init__(self._keep, port)

    def _keep(self, body, headers):
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.requests.append(decode(body, headers["Content-Type"]))
        self.bodies.append(body)


def attributes_of(resource):
    return {attribute.key: value_of(attribute.value) for attribute in resource.attributes}


def value_of(any_value):
    """Returns an attribute's value as a text; a list of texts is joined by `;`."""
    kind = any_value.WhichOneof("value") or "string_value"
    if kind == "array_value":
        return ";".join(value_of(part) for part in any_value.array_value.values)
    return getattr(any_value, kind)


class Instance:
    """Holds one process' profiles. A stack is a tuple of names, leaf first."""

    def __init__(self, attributes):
        self.pid = attributes["process.pid"]
        self.executable = attributes["process.executable.name"]
        self.instance_id = attributes["service.instance.id"]
        self.sums = {}  # type -> {stack: value}
        self.period = 0  # period of CPU time: the latest
        self.cpu_ns = 0  # CPU time of samples, by each export's own period
        self.snapshot_times = {}
        self.periods = {}  # periods by type: the latest
        self.attributes = {}  # attributes of samples: key -> set of values
        self.marked = {}  # (type, attribute that is true) -> value
        self.thread_names = set()
        self.own_cpu_ns = 0  # CPU time of the profiler's helper thread
        self.shed_ns = 0  # time without sampling because processors were busy
        self.foreign_stack_ns = 0  # CPU time of samples whose stack ends on a foreign one
        self.short_child_ns = 0  # CPU time of children that ended without an export
        self.finished_stacks = 0  # count of stacks that libunwind finished
        self.dropped = {}  # reason -> count of lost samples, of the whole process

    def add(self, dictionary, profile):
        strings = dictionary.string_table
        kind = strings[profile.sample_type.type_strindex]
        sums = self.sums.setdefault(kind, {})
        if kind in SNAPSHOTS and self.snapshot_times.get(kind) != profile.time_unix_nano:
            sums.clear()  # profiles of one time are parts of one snapshot
            self.snapshot_times[kind] = profile.time_unix_nano
        for index in profile.attribute_indices:
            attribute = dictionary.attribute_table[index]
            key = strings[attribute.key_strindex]
            if key == "otelprof.self.cpu_time":
                self.own_cpu_ns = attribute.value.int_value
            elif key == "otelprof.shed.time":
                self.shed_ns = attribute.value.int_value
            elif key == "otelprof.foreign_stack.cpu_time":
                self.foreign_stack_ns = attribute.value.int_value
            elif key == "otelprof.short_child.cpu_time":
                self.short_child_ns = attribute.value.int_value
            elif key == "otelprof.stacks.finished_by_libunwind":
                self.finished_stacks = attribute.value.int_value
            elif key.startswith("otelprof.dropped."):
                self.dropped[key.rsplit(".", 1)[1]] = attribute.value.int_value
        self.periods[kind] = profile.period
        if kind == "samples":
            self.period = profile.period
        for sample in profile.samples:
            if not sample.values[0]:  # an empty snapshot has this zero alone
                continue
            stack = names_of(dictionary, sample.stack_index)
            sums[stack] = sums.get(stack, 0) + sample.values[0]
            if kind == "samples":
                self.cpu_ns += sample.values[0] * profile.period
            for index in sample.attribute_indices:
                attribute = dictionary.attribute_table[index]
                key, value = strings[attribute.key_strindex], attribute.value
                self.attributes.setdefault(key, set()).add(value_of(value))
                if value.bool_value:
                    self.marked[kind, key] = self.marked.get((kind, key), 0) + sample.values[0]
                if key == "thread.name":
                    self.thread_names.add(value.string_value)

    def stacks(self, kind):
        return self.sums.get(kind, {})

    def names(self):
        return {name for sums in self.sums.values() for stack in sums for name in stack}

    def threads(self):
        return self.thread_names

    def total(self, kind):
        return sum(self.stacks(kind).values())

    def value_of(self, name, kind):
        """Returns the sum over the stacks with the function `name` anywhere in them."""
        return sum(value for stack, value in self.stacks(kind).items() if name in stack)

    def cpu_total(self):
        return self.cpu_ns

    def mean_gap(self):
        """Returns how many periods a CPU sample is worth on average: some expiries are merged into a later one."""
        expiries = self.total("samples")
        return expiries / max(1, expiries - self.dropped.get("overrun", 0))

    def whole_share(self):
        """Returns the share of the CPU time in stacks whose outermost frame has no caller
        (shim/capture/unwind/stack_end.h)."""
        samples = self.total("samples")
        lacking = sum(self.marked.get(("samples", mark), 0) for mark in NOT_WHOLE)
        return 1 - (lacking + self.stacks("samples").get(("[unknown]",), 0)) / samples if samples else 0.0

    def cpu_of(self, name):
        return self.value_of(name, "samples") * self.period


def names_of(dictionary, stack_index):
    strings = dictionary.string_table
    names = []
    for index in dictionary.stack_table[stack_index].location_indices:
        for line in dictionary.location_table[index].lines:
            name = strings[dictionary.function_table[line.function_index].name_strindex]
            names.append(re.sub(r"\(.*", "", name))
    return tuple(names)


class Outcome:
    def __init__(self, returncode, stdout, stderr, requests, bodies=()):
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr
        self.requests = requests
        self.bodies = bodies

    def instances(self):
        found = {}
        for request in self.requests:
            for resource_profiles in request.resource_profiles:
                attributes = attributes_of(resource_profiles.resource)
                key = attributes["service.instance.id"]
                instance = found.setdefault(key, Instance(attributes))
                for scope in resource_profiles.scope_profiles:
                    for profile in scope.profiles:
                        instance.add(request.dictionary, profile)
        return list(found.values())

    def instance(self, executable):
        """Returns the process of that executable that used most CPU."""
        candidates = [i for i in self.instances() if i.executable.startswith(executable)]
        assert candidates, (
            f"no profile of {executable} arrived, only of {[i.executable for i in self.instances()]}"
        )
        return max(candidates, key=lambda instance: instance.cpu_total())


LAUNCH = """
import os, sys
policy, priority, one_processor, *command = sys.argv[1:]
if one_processor == "True":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.sched_setscheduler(0, int(policy), os.sched_param(int(priority)))
os.execv(command[0], command)
"""
WITHOUT_LAUNCHER = {"OTEL_PROFILER_EXCLUDE": "python3*"}


def under_policy(policy, priority, command, one_processor=False):
    """Returns the words that start a command under that policy, as root may: exec keeps the policy. Run it
    WITHOUT_LAUNCHER."""
    return ["/usr/bin/python3", "-c", LAUNCH, policy, priority, one_processor, *command]


def checked_command(command, environment):
    """The command under test/faults/inject.c, which reports calls that are not listed (`make check-calls`)."""
    preload = environment.pop("LD_PRELOAD")
    settings = os.environ["OTELPROF_CHECK_CALLS"].split()
    report = Path(settings[0]) / f"{os.getpid()}-{len(os.listdir(settings[0]))}"
    own_filter = []
    if len(settings) > 1:
        preload = f"{BUILD}/test/faults/sandbox.so {preload}"
        own_filter = ["SANDBOX_ALLOW=0", "SANDBOX_ACTION=allow", f"SANDBOX_THREADS={settings[1]}"]
    return [BUILD / "test/faults/inject", "check", report, "/usr/bin/env", f"LD_PRELOAD={preload}", *own_filter, *command]


class Run:
    """A started program."""

    def __init__(self, command, profiled, cwd, stdin, env, limits, log_to_stderr, scratch):
        self.receiver = Receiver() if profiled else None
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "LD_PRELOAD"))
        }
        # Python 3.12 counts the process's threads at os.fork, the profiler's too, and warns of them
        environment["PYTHONWARNINGS"] = "ignore:This process"
        if profiled:
            environment["LD_PRELOAD"] = str(LIBRARY)
            environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = self.receiver.url
            environment["OTEL_PROFILER_SHUTDOWN_TIMEOUT"] = "20000"
            # the tests' programs are short and many are shells: all of them are to be profiled
            environment["OTEL_PROFILER_MIN_LIFETIME"] = "100"
            environment["OTEL_PROFILER_EXCLUDE"] = "none"
            # rates must stay as the tests set them: test_max_overhead.py tests lowered rates
            environment["OTEL_PROFILER_MAX_OVERHEAD"] = "none"
            if not log_to_stderr:
                environment["OTEL_PROFILER_LOG_FILE"] = str(scratch / "otelprof.log")
                environment["OTEL_LOG_LEVEL"] = "info"  # lines that stderr would get
        environment.update(env)
        if "OTELPROF_CHECK_CALLS" in os.environ and profiled:
            command = checked_command(command, environment)

        def limit():
            import resource

            for what, values in limits.items():
                resource.setrlimit(what, values)

        self.out = open(scratch / "stdout", "w+b")
        self.err = open(scratch / "stderr", "w+b")
        self.process = subprocess.Popen(
            [str(part) for part in command], cwd=cwd, env=environment, stdin=subprocess.PIPE,
            stdout=self.out, stderr=self.err, preexec_fn=limit if limits else None,
        )
        try:
            self.process.stdin.write(stdin.encode())
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    def finish(self, timeout):
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            raise
        finally:
            if self.receiver:
                self.receiver.close()
        texts = []
        for file in (self.out, self.err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        requests = self.receiver.requests if self.receiver else []
        for request in requests:
            check_conformance(request)
        bodies = self.receiver.bodies if self.receiver else []
        return Outcome(self.process.returncode, *texts, requests, bodies)
