"""Makes what each fuzzer begins with: small valid inputs, and some that are wrong on purpose."""

import base64
import lzma
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

from profiled import BUILD  # noqa: E402  (and the generated modules below)

import common_pb2  # noqa: E402
import profiles_service_pb2  # noqa: E402
import resource_pb2  # noqa: E402
import rpc_status_pb2  # noqa: E402

PT_GNU_EH_FRAME = 0x6474E550


def response(rejected=2, message="too old: \u20ac\n"):
    answer = profiles_service_pb2.ExportProfilesServiceResponse()
    answer.partial_success.rejected_profiles = rejected
    answer.partial_success.error_message = message
    return answer.SerializeToString()


def config():
    environments = [
        ["OTEL_SERVICE_NAME=a", "OTEL_RESOURCE_ATTRIBUTES=k=v,x=%20", "OTEL_LOG_LEVEL=debug"],
        ["OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=[::1]:4317",
         "OTEL_EXPORTER_OTLP_INSECURE=true"],
        ["OTEL_EXPORTER_OTLP_ENDPOINT=unix:///run/otel.sock", "OTEL_EXPORTER_OTLP_COMPRESSION=zstd"],
        ["OTEL_EXPORTER_OTLP_ENDPOINT=htp://u:secret@h", "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=https://h/x"],
        ["OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20t", "OTEL_EXPORTER_OTLP_TIMEOUT=-1"],
        ["OTEL_PROFILES_EXPORTER=otlp, console", "OTEL_PROFILER_FILE_FORMAT=protobuf"],
        ["OTEL_PROFILER_TYPES=cpu,heap", "OTEL_PROFILER_SIGNAL=SIGRTMIN+3", "OTEL_PROFILER_CPU_FREQUENCY=4001"],
        ["OTEL_PROFILER_SHUTDOWN_TIMEOUT=99999999999999999999", "OTEL_CONFIG_FILE=x", "OTEL_PROFILER_SYMBOLS=all"],
    ]
    for environment in environments:
        text = "\0".join(environment).encode()
        yield b"\xff" + text
        yield b"\x04" + text
    values = ["", "true", "0", "1", "4000", "16777217", "1099511627776", "none", "http://a b", "h:1", "\n", "x" * 300,
              "cpu>80%, rss>1GiB"]
    for value in values:  # values of every variable, in both forms
        yield b"\xff" + b"".join(bytes([code]) + value.encode() + b"\0"
                                 for form in (0, 0x80) for code in range(form + 1, form + 65))


def config_file():
    files = [
        "# c\n; c\n\nOTEL_SERVICE_NAME = a b \r\nOTEL_EXPORTER_OTLP_PROFILES_HEADERS='a=b'\n",
        'OTEL_LOG_LEVEL="a # b" \nOTEL_LOG_LEVEL="a" b\nOTEL_LOG_LEVEL="a\nOTEL_LOG_LEVEL=a\\\n',
        "OTEL_NONE=1\n=\nOTEL_SERVICE_NAME\nOTEL_SERVICE_NAME=a\0b\n" + 9 * "x\n",
        "OTEL_SERVICE_NAME=" + 4100 * "x", "OTEL_SERVICE_NAME=a\nOTEL_CONFIG_FILE=\n", "",
    ]
    for file in files:
        for most in (0, 1, 255):
            yield bytes([most]) + file.encode()


def control():
    texts = [
        "# c\n\nOTEL_PROFILER_START=off\r\n OTEL_LOG_LEVEL = debug\nOTEL_PROFILER_START=", "x\n=\nOTEL_SERVICE_NAME=a\n",
        "OTEL_PROFILER_TYPES=all\nOTEL_PROFILER_CPU_FREQUENCY=4000", "OTEL_PROFILER_TYPES=heap, mmap\nOTEL_PROFILER_TYPES=lock",
        "OTEL_PROFILER_ALLOC_INTERVAL=1\nOTEL_PROFILER_LOCK_INTERVAL=1", "OTEL_PROFILER_WAIT_FREQUENCY=0\0",
        "OTEL_PROFILER_MAX_STACK_DEPTH=201", "OTEL_PROFILER_MAX_STACK_DEPTH=" + 200 * "1", "",
    ]
    for types in (0, 7, 255):
        for lines in texts:
            yield bytes([types]) + lines.encode()


def endpoint():
    tcp, unix, trusted, abandoned, gone = b"\0", b"\1", b"\3", b"\7", b"\x0b"
    right = b"Host: localhost:6060\nAuthorization: Bearer s3cret\n"
    gets = ["/", "/debug/pprof", "/status", "/metrics", "/otlp", "/otlp?seconds=2", "/none", "/debug/pprof/", "/debug/pprof/profile?seconds=1",
            "/debug/pprof/heap?seconds=3600&debug=1", "/debug/pprof/goroutine?debug=2", "/debug/pprof/goroutine?debug=1&seconds=1",
            "/debug/pprof/mutex?debug", "/debug/pprof/profile?OTEL_PROFILER_CPU_FREQUENCY=999&seconds=0", "/otlp?OTEL_=\x1b"]
    posts = [("/control", "OTEL_PROFILER_CPU_FREQUENCY=10\nOTEL_LOG_LEVEL=debug\n"), ("/control", "x\n\x1b[2J"), ("/control", 4097 * "#"),
             ("/flush", ""), ("/debug/pprof/symbol", "0x1000+0x2000"), ("/status", "")]
    wanted = [f"{method} {path}\n".encode() + b"%s\n" for path in gets for method in ("GET", "HEAD", "POST")]
    wanted += [f"POST {path}\n".encode() + b"%s\n" + body.encode() for path, body in posts]
    for request in wanted:
        for flags in (b"\0", b"\3", b"\7"):
            yield flags + trusted + request % b""
            yield flags + tcp + request % right
    heads = [b"", b"Host: evil.example\n", b"Host: localhost\nhost: localhost\n", b"host: [::1]\norigin: http://[::1]\n", b"Host: 127.0.0.1\nOrigin: null\n",
             b"Host: localhost\nSec-Fetch-Site: cross-site\n", b"Host: localhost\nAuthorization: Bearer s3cre\n",
             b"Host: localhost\nAuthorization: Bearer s3creT\n"]
    for head in heads:
        yield b"\3" + tcp + b"POST /control\n" + head + b"\nOTEL_PROFILER_START=off"
    yield b"\2" + b"\xff".join(flags + b"GET /otlp?seconds=9\n\n" for flags in (trusted, abandoned, gone, unix))


def text():
    texts = [
        "a=b", " k = v , , x=%41%20", "a=%00", "=b", "a", "http://localhost:4318", "HTTPS://u:p@h/base/?q#f",
        "unix:/run/x", "unix:///" + "x" * 106, "unix:///" + "x" * 107, "h:4317", "[::1]:1", "[::1]", "http://h b",
    ]
    for value in texts:
        for bits in range(16):
            yield bytes([bits, 200]) + value.encode()


def json_response():
    yield b"{}"
    yield b'{"partialSuccess":{"rejectedProfiles":"2","errorMessage":"a\\u20ac\\ud83d\\ude00\\n"}}'
    yield b' {"partial_success" : {"rejected_profiles" : -7, "error_message" : null, "x": [1.5e-3, {}]}} '
    yield b'{"errorMessage":"\xe2\x82\xac\xff","x":[true,false,null,[],"\\"\\\\\\/\\b\\f\\r\\t"]}'
    yield b'{"partialSuccess":{"errorMessage":"' + b"\xe2\x82\xac" * 100 + b'"}}'
    yield b"[" * 32 + b"]" * 32
    yield b"[" * 33 + b"]" * 33


def retry_info():
    info = rpc_status_pb2.RetryInfo()
    info.retry_delay.seconds = 3
    status = rpc_status_pb2.RpcStatus(code=8, message="full")
    status.details.add(type_url="type.googleapis.com/google.rpc.RetryInfo", value=info.SerializeToString())
    return status.SerializeToString()


def grpc_response():
    details = base64.b64encode(retry_info())
    head = b"HTTP/2 200\r\ncontent-type: application/grpc\r\n\r\n"
    lines = [
        head + b"grpc-status: 0\r\n\r\n",
        b"HTTP/2 103\r\ngrpc-status: 3\r\n\r\n" + head + b"grpc-status: 14\ngrpc-message: a%20b%e2%82%ac%0a%\n\n",
        head + b"grpc-status: 8\r\ngrpc-status-details-bin: " + details + b"\r\n\r\n",
        b"HTTP/2 200\r\ngrpc-status-details-bin:" + details.rstrip(b"=") + b"\r\ngrpc-status:8\r\n\r\n",
        b"HTTP/2 503\r\ngrpc-status: 4294967310\r\n",
    ]
    yield head + b"grpc-status: 8\r\ngrpc-status-details-bin: " + b"A" * 9000 + b"\r\n\r\n"
    for line in lines:
        yield line + b"\0" + struct.pack(">BI", 0, len(response())) + response()
    yield b"\0" + response(-1, "x" * 300)
    yield b"\0" + response(1 << 62, "\u20ac" * 85)
    yield b"\0" + struct.pack(">BI", 1, 3) + b"abc"


def eh_frame_of(path):
    """Returns .eh_frame_hdr and what the file has behind it, and where code begins, relative to that."""
    data = path.read_bytes()
    offset, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    for index in range(count):
        kind, _, start, _, _, size = struct.unpack_from("<IIQQQQ", data, offset + 56 * index)
        if kind == PT_GNU_EH_FRAME:
            functions = struct.unpack_from("<I", data, start + 8)[0]
            first = struct.unpack_from("<i", data, start + 12)[0]
            yield first, data[start:start + size + 64 * functions]


def uleb(value):
    more = value >> 7
    return bytes([value & 127 | (128 if more else 0)]) + (uleb(more) if more else b"")


def entry(body):
    return struct.pack("<I", len(body)) + body


def one_function(data_align, code, pointer_format=0x1B):
    """Makes tables of one function at 64, in front of them, with `code` as its instructions. A format of two bytes
    for the pointer in the header moves the search table to where it is not aligned."""
    cie = entry(b"\0" * 4 + b"\1zR\0\1" + data_align + b"\x10" + b"\1\x1b" + b"\x0c\7\x08\x90\1")
    head = bytes([1, pointer_format, 3, 0x3B]) + b"\0" * (4 if pointer_format == 0x1B else 2)
    place = len(head) + 4 + 8
    fde_place = place + len(cie)
    fde = entry(struct.pack("<Iii", fde_place + 4 - place, -64 - (fde_place + 8), 64) + b"\0" + code)
    pc = struct.pack("<i", -60)
    return pc + head + struct.pack("<Iii", 1, -64, fde_place) + cie + fde


def cfi():
    minus_eight, least = b"\x78", b"\x80" * 9 + b"\x7f"
    expression = bytes([0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22])  # as PLTs have it
    far = bytes([0x77]) + b"\xff" * 8 + b"\0" + b"\x23" + b"\xff" * 9 + b"\1"
    for code in (b"\x0e\x10\x86\2", b"\x0f" + uleb(len(expression)) + expression, b"\x0f" + uleb(len(far)) + far):
        yield one_function(minus_eight, code)
        yield one_function(minus_eight, code, pointer_format=0x0A)
    yield one_function(minus_eight, b"\x0f\x0a" + b"\x31" * 9 + b"\x22")
    for code in (b"\x05\x10" + b"\xff" * 8 + b"\x7f", b"\x11\6" + least, b"\x12\7" + least, b"\x86\2", b"\x0a" * 9 + b"\x0b" * 9):
        yield one_function(least, code)
    names = ["test/programs/alloc_sites", "test/programs/throw_1.so", "test/torture/recursion", "test/programs/burn"]
    for name in names:
        for first, tables in eh_frame_of(BUILD / name):
            for pc in (first, first + 4, first + 4096):
                yield struct.pack("<i", pc) + tables[:4000]


def code():
    """Makes functions: with frame records, without, of a switch, of calls that do not return."""
    for function in (
        "f30f1efa554889e5534883ec0890488b5df8c9c3", "5385ff7405e8000000005bc3e800000000cc", "4883ec18e800000000554889e55dc3",
        "4883c4085dffe0", "3effe0", "4829c4488d65f85b5dc3", "f30f1efaff2500000000", "ebfe", "0f8400000000ebf8", "5589e5c9c3",
        "488d6c2410488b6c24104883c418c3", "62f1fe486f4601c5f877c4e37d0fc001c3",
    ):
        for start in (0, 1, 4):
            yield bytes([start]) + bytes.fromhex(function)


def registered():
    """Makes sections as LLVM writes them, with addresses that are absolute or relative; one entry alone has its CIE
    after it."""
    for encoding, form in ((b"\0", "<QQ"), (b"\x1b", "<iI")):
        cie = entry(b"\0" * 4 + b"\1zR\0\1\x78\x10\1" + encoding + b"\x0c\7\x08\x90\1")
        section = cie
        for start, code in ((0x20000, b"\x41\x0e\x10\x86\2"), (0x10000, b"\x0e\x40"), (0x7000000, b"\x01\0\0\0\0\0\0\0\0")):
            section += entry(struct.pack("<I", len(section) + 4) + struct.pack(form, start, 0x1000) + b"\0" + code)
        for more in (b"\0", b"\1"):
            yield more + section + b"\0" * 4
            yield more + section
            yield more + section[len(cie):]


def nested(depth):
    value = common_pb2.AnyValue(string_value="leaf")
    for level in range(depth):
        outer = common_pb2.AnyValue()
        if level % 2:
            outer.array_value.values.append(value)
        else:
            outer.kvlist_value.values.add(key="k", value=value)
        value = outer
    return value


def otlp_json():
    request = profiles_service_pb2.ExportProfilesServiceRequest()
    profiles = request.resource_profiles.add(schema_url='"\\\n\x01\x7f')
    values = [
        dict(double_value=float("nan")), dict(double_value=-0.0), dict(double_value=1e-300), dict(bool_value=False),
        dict(int_value=-1 << 63), dict(bytes_value=b"\0\xff\x80ab"), dict(string_value=""), dict(double_value=0.1),
    ]
    for value in values:
        profiles.resource.attributes.add(key="k").value.CopyFrom(common_pb2.AnyValue(**value))
    profile = profiles.scope_profiles.add().profiles.add(profile_id=b"0123456789abcdef", period=1 << 40)
    profile.samples.add(stack_index=1, values=[1, -2, 3], timestamps_unix_nano=[1, 2])
    request.dictionary.string_table.extend(["", "a\u20ac"])
    request.dictionary.link_table.add(trace_id=b"\1" * 16, span_id=b"\2" * 8)
    yield b"\0" + request.SerializeToString()
    yield b"\0" + request.SerializeToString().replace("a\u20ac".encode(), b"\xff\xc0\x80\xed")
    yield b"\1" + response()
    yield b"\2" + resource_pb2.Resource(attributes=[common_pb2.KeyValue(key="a", value=nested(3))]).SerializeToString()
    for depth in (1, 20, 38, 39, 40, 41, 60):  # the bound is among these
        yield b"\3" + nested(depth).SerializeToString()
    yield b"\4" + retry_info()


def published(*attributes):
    """ProcessContext {1: Resource}."""
    data = resource_pb2.Resource(attributes=attributes).SerializeToString()
    return b"\x0a" + uleb(len(data)) + data


def names_of_keys(schema, names):
    """ProcessContext {2: KeyValue}."""
    texts = [common_pb2.AnyValue(string_value=name) for name in names] + [common_pb2.AnyValue(int_value=1)]
    values = {
        "threadlocal.schema_version": common_pb2.AnyValue(string_value=schema),
        "threadlocal.attribute_key_map": common_pb2.AnyValue(array_value=common_pb2.ArrayValue(values=texts)),
    }
    pairs = [common_pb2.KeyValue(key=key, value=value).SerializeToString() for key, value in values.items()]
    return b"".join(b"\x12" + uleb(len(data)) + data for data in pairs)


def contexts_of_threads():
    """Makes a span's ids, then entries."""
    def entry(key, value):
        return bytes([len(key), len(value)]) + key + value

    def indexed(index, value):
        return bytes([0, len(value), index]) + value

    ids = bytes(range(24))
    yield ids + entry(b"route", b"/pay") + entry(b"user", b"a\0b") + entry(b"thread.id", b"1")
    yield bytes(24) + indexed(0, b"x") + indexed(7, b"secret") + entry(b"a.b", b"1") + entry(b"a_b", b"2")
    yield ids + entry(b"a\n", b"\xff") + entry(b"trace_id", b"") + entry(b"otelprof.x", b"1") + b"\5"
    yield ids + b"".join(entry(bytes([97 + i]), b"v") for i in range(20))


def context():
    front = b"7f12a000-7f12b000 rw-s 00000000 00:01 2051    "
    values = [
        dict(string_value="shop"), dict(int_value=-1), dict(double_value=float("nan")), dict(bool_value=True),
        dict(bytes_value=b"\0\xff"), dict(string_value="\u20ac\n"), dict(string_value=""),
    ]
    pairs = [common_pb2.KeyValue(key=f"k{i}", value=common_pb2.AnyValue(**v)) for i, v in enumerate(values)]
    whole = published(*pairs)
    for name in (b"/memfd:OTEL_CTX (deleted)", b"[anon_shmem:OTEL_CTX]", b"[anon:OTEL_CTX]", b"[heap]", b""):
        yield front + name + b"\0" + whole
    yield b"\0" + published(pairs[0], common_pb2.KeyValue(key="k0"), pairs[0])
    yield b"\0" + published(*(common_pb2.KeyValue(key=f"k{i}", value=pairs[0].value) for i in range(70)))
    yield b"\0" + published(common_pb2.KeyValue(key="a\n", value=nested(40)))
    yield b"\0" + published(common_pb2.KeyValue(key="k" * 257, value=pairs[0].value))
    yield b"\0" + published(common_pb2.KeyValue(key="k", value=common_pb2.AnyValue(string_value="x" * 2049)))
    yield b"\0" + whole[:-3]
    yield from (b"\0" + entries for entries in contexts_of_threads())
    for schema in ("tlsdesc_v1_dev", "tls_v1", "other"):
        yield b"\0" + whole + names_of_keys(schema, ["route", "", "a\n", "k" * 257, *(f"k{i}" for i in range(300))])


PROGRAM = """
volatile int sink;
static inline __attribute__((always_inline)) void inlined(int n) { sink = sink * n; }
struct shop { int cart; };
__attribute__((noinline)) void add(struct shop *s, int n) { sink = n; inlined(3); s->cart += n; if (n > 3) inlined(n); }
static __attribute__((noinline, used)) void hidden(void) { sink = 5; }
void enter(struct shop *s) { add(s, 3); hidden(); sink++; }
"""


def objects(*flags):
    """Builds small objects with debug information of several compilers and versions, and with `flags`."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "a.c", Path(folder) / "a.so"
        source.write_text(PROGRAM)
        for compiler in ("gcc", "clang"):
            for version in ("-gdwarf-4", "-gdwarf-5"):
                subprocess.run([compiler, "-O1", version, *flags, "-nostdlib", "-shared", "-fPIC", "-Wl,--build-id",
                                "-Wl,-z,noseparate-code", "-o", made, source], check=True, capture_output=True, cwd=folder)
                yield made.read_bytes()


def dwarf():
    yield from objects()
    yield from objects("-gsplit-dwarf")
    yield from objects("-ffunction-sections", "-fdebug-types-section")


def elf():
    yield from objects("-Wl,--compress-debug-sections=zlib")
    yield from objects("-s")
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "packed.so"
        for form, plain in ((form, plain) for form in ("zstd", "zlib-gnu") for plain in objects()):
            packed.write_bytes(plain)
            subprocess.run(["objcopy", f"--compress-debug-sections={form}", packed], check=True)
            yield packed.read_bytes()
        endless = bytearray(next(objects("-g0")))
        for at in range(0, len(endless) - 24, 8):  # the sizes of functions' symbols
            if endless[at + 4:at + 6] == b"\x12\0" and 0 < int.from_bytes(endless[at + 16:at + 24], "little") < 4096:
                endless[at + 16:at + 24] = b"\xff" * 8
        yield bytes(endless)
        made, table = Path(folder) / "a.so", Path(folder) / "table"
        made.write_bytes(next(objects("-g0")))
        table.write_bytes(lzma.compress(made.read_bytes()))
        subprocess.run(["objcopy", f"--add-section=.gnu_debugdata={table}", f"--add-gnu-debuglink={table}", made], check=True)
        yield made.read_bytes()


def demangle():
    yield from (name.encode() for name in (
        "_ZN4shop4Cart3addEi", "_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZZ4mainENKUlvE_clEv", "_ZN1aIJLi1ELi2EEE1bEv",
        "_Z1fIJiiiEEvDpT_", "_Z1fIiEDTcl1gfp_EET_", "_ZN12_GLOBAL__N_11fEv", "_ZTV1a", "_ZThn8_N1a1bEv",
        "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "_RNvC7mycrate4main", "_RINvNtC3std3mem8align_ofdE",
        "_RNCNvC7mycrate4main0", "_ZSt4moveIRSsEONSt16remove_referenceIT_E4typeEOS2_", "_ZplRK1aS1_.cold",
        "_Z" + "N" * 100, "_Z1fI" * 50, "_ZN1aC1I" + "S_" * 100 + "E",
        "_Z1f" + "DpT_" * 30, "_R" + "INvC1a1b" * 20,
        "_D3std5stdio__T7writelnTAyaZQnFNfQjZv", "_D4main3runFZ5innerMFNaiC6object6ObjectZi", "_D1a" + "MFC1a" * 40,
        "_D4main__T3powVii3VAyaa2_6162VHiiA1i1i2TB2iaS1bZ3powFNaNbiZi", "_D1a__T1b" + "TAHPG3" * 60,
        "camlStdlib__List__map_273", "camlMain__$2b$2e_81", "base_GHCziTuple_Z3T_con_info", "Main_z20Uzq_info",
    ))


def declaration():
    head = 'file_format: "1.0"\n'
    parts = [
        "disabled: ${OFF:-true}\nlog_level: trace3\n",
        "resource:\n  attributes_list: a=b,c=%20\n  schema_url: x\n  colour: red\n",
        "resource: {attributes: [{name: a, value: 0x1f, type: int}, {name: b, value: 1.5e3, type: double}]}\n",
        "resource: {attributes: [{name: a, value: [x], type: string_array}, {name: , value: ~}, text]}\n",
        "distribution:\n  otelprof:\n    types: [cpu, heap]\n    headers: a=b\n    log_file: x\n    redact: {a: b}\n",
        "x: &x [*x, *x]\nresource: *x\ndistribution: &d {otelprof: *d}\n",
        "distribution: {otelprof: {endpoint: \"${env:URL}$$x\", max_samples: ${A:?b}}}\n",
        "a: |\n  text\nb: >-\n  more\n? [k]\n: v\n---\nc: d\n...\n",
        '"\\0": "\\x00\\u20ac"\n',
    ]
    for part in parts:
        yield (head + part).encode()
    yield (head + "".join(parts[:5])).encode("utf-16")
    yield from (b"", b"file_format: 2\n", b"- a\n", b"[" * 900, b"a: " + b"&a *a " * 9)
    yield from (b"$$${A}${AB:-x}", b"${env:-x}${env:A:-${B}}", b"${}${", b"${sys:x}")


def thread_record():
    def record(entries=b"", valid=1, ids=bytes(range(1, 25)), size=None):
        return b"\0" + ids + struct.pack("<BBH", valid, 0, len(entries) if size is None else size) + entries

    def entry(index, value):
        return bytes([index, len(value)]) + value

    yield record(entry(0, b"0123456789abcdef") + entry(7, b""))
    yield record(entry(1, b"a") + entry(2, b"b") + entry(1, b"c" * 250) + entry(3, b"d" * 250))
    yield record(b"".join(entry(i, b"value") for i in range(20)))
    yield record(entry(255, b"cut")[:-1])
    yield record(size=0xFFFF)
    yield record(b"x" * 3000)
    for valid in (0, 2, 255):
        yield record(valid=valid)
    yield record(ids=bytes(24))
    yield record()[:20]
    yield b"\1\3" + b"\5\1routeA" + b"\0\1B" + b"\5\1routeC"
    yield b"\1\x14" + b"".join(b"\1\1%cv" % (97 + i) for i in range(20))
    yield b"\1\2\1\xffk\xff\1v"


def perf_map():
    lines = [
        "1000 10 JS:*fib /app/n.js:2:13", "0x1008 0x10 int W.fib(int)", "1000 5 py::A.b:/app/a.py",
        "2000 100 void [Shop] Shop.Bank::Pay(int32)[Tier1]", "2040 8 Lshop/Bank;::pay(J)V", "2f00 1000 $lists:map/2",
        "3000 10 TRACE-9$/app/f.php$4", "3000 20 JIT$$assign_cv", "4000 8 Eval:~ /a b.js:1", "ffffffffffffffff 1 x",
        "5000 0 nothing", "6000 ffffffffff large", "7000 10 \xff\xfe", "half", "8000", "8000 8 \0",
    ]
    for part in (0, 77, 200, 255):
        yield bytes([part]) + "\n".join(lines).encode("latin-1") + b"\n"
        yield bytes([part]) + b"".join(b"%x %x n%d\n" % (i * 37 % 256, i % 9 * 16, i) for i in range(300))
    yield b"\x80" + b"1000 10 " + b"x" * 70000 + b"\n2000 10 y\n"


def jitdump():
    head = struct.pack("<IIIIIIQQ", 0x4A695444, 1, 40, 62, 0, 1, 0, 0)

    def record(number, body, size=None):
        return struct.pack("<IIQ", number, 16 + len(body) if size is None else size, 0) + body

    def load(address, size, name):
        return record(0, struct.pack("<IIQQQQ", 1, 1, address, address, size, 0) + name + b"\0" + b"\xc3" * 8)

    def move(old, new, size):
        return record(1, struct.pack("<IIQQQQQ", 1, 1, new, old, new, size, 0))

    def lines(address, *entries):
        body = b"".join(struct.pack("<QII", *entry[:2], 0) + entry[2] + b"\0" for entry in entries)
        return record(2, struct.pack("<QQ", address, len(entries)) + body)

    some = [load(0x1000, 64, b"JS:*fib /app/n.js:2:13"), lines(0x2000, (0x2000, 5, b"/a.c"), (0x2008, 6, b"\xff")),
            load(0x2000, 64, b"_Z1fv"), load(0x1020, 16, b"over"), move(0x2000, 0x3000, 64), record(4, b"12345678")]
    for part in (0, 60, 130, 255):
        yield bytes([part]) + head + b"".join(some)
        yield bytes([part]) + head + b"".join(reversed(some)) + record(3, b"") + load(0x9000, 8, b"late")
    yield b"\x80" + head + record(0, b"", 3) + some[0]
    yield b"\x80" + head + some[0][:-4] + record(0, b"x" * 8, 1 << 31)
    yield b"\x80" + head[:8] + struct.pack("<I", 1 << 30) + head[12:]


SEEDS = {f.__name__: f for f in (thread_record, config, config_file, control, endpoint, declaration, text, json_response, grpc_response, cfi, code, registered, otlp_json, context, elf, dwarf, demangle, perf_map, jitdump)}


def write_seeds(name, folder: Path):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for number, seed in enumerate(SEEDS[name]()):
        (folder / f"{number:03}").write_bytes(seed)
