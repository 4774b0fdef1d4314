"""The otelprof command reads files, sums up, prints tables, receives, and runs a program."""

import json
import os
import re
import signal
import struct
import subprocess
from argparse import Namespace

import pytest
from captured import OTELPROF, otelprof
from conftest import BUILD, ROOT, as_json, cpu
from otelprof_lib.aggregate import Frame, aggregate, by_function
from otelprof_lib.capture_file import BadFile, append_message, read_messages
from otelprof_lib.kinds import KINDS, TYPES
from otelprof_lib.formats import readable
from otelprof_lib.report import report
from otelprof_lib.run import Termination, _show, program_name, program_of


# --- files ---


def test_messages_with_lengths(tmp_path, message):
    path = tmp_path / "a.otlp"
    with open(path, "wb") as file:
        for _ in range(3):
            append_message(file, cpu(message).bytes())
    assert len(read_messages(path)) == 3
    assert path.read_bytes()[:4] == struct.pack(">I", len(cpu(message).bytes()))


def test_a_bare_message(tmp_path, message):
    path = tmp_path / "a.pb"
    path.write_bytes(cpu(message).bytes())
    assert aggregate(read_messages(path))["cpu"].total == pytest.approx(0.5)


def test_json_lines_with_hex_ids(tmp_path, message):
    export = cpu(message)
    export.scope.profiles[0].profile_id = bytes(range(16))
    path = tmp_path / "a.jsonl"
    path.write_text(f"{as_json(export)}\n{as_json(export)}\n")
    messages = read_messages(path)
    assert len(messages) == 2
    assert messages[0].resource_profiles[0].scope_profiles[0].profiles[0].profile_id == bytes(range(16))


def test_a_line_that_was_cut_is_left_out(tmp_path, message, capsys):
    line = as_json(cpu(message))
    path = tmp_path / "a.jsonl"
    path.write_text(f"{line}\n{line[:-30]}\n{line}\n{line[:90]}")
    assert aggregate(read_messages(path))["cpu"].total == pytest.approx(1)
    assert "line 2, 4 is broken" in capsys.readouterr().err


def test_json_over_several_lines(tmp_path, message):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(json.loads(as_json(cpu(message))), indent=2))
    assert len(read_messages(path)) == 1


@pytest.mark.parametrize("content", [b"", b"\x00\x00\x00\x05abc", b"{not json", b"\xff" * 40, b'{"resourceProfiles": 3}'])
def test_files_that_are_none(tmp_path, content):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(BadFile):
        read_messages(path)


# --- sums ---


def test_cpu_and_allocations_add_up_and_the_heap_is_the_last(message):
    def export(instance, heap):
        return (
            cpu(message, instance)
            .profile("alloc_space", "bytes", 1, {("leaf", "main"): 100})
            .profile("inuse_space", "bytes", 1, {("leaf", "main"): heap})
            .request
        )

    profiles = aggregate([export("a", 10), export("a", 20), export("b", 5)])
    assert profiles["cpu"].total == pytest.approx(1.5)
    assert profiles["alloc"].total == 300
    assert profiles["heap"].total == 25


def test_recursion_counts_once(message):
    request = message().profile("samples", "count", 10**9, {("f", "f", "main"): 3}).request
    rows = by_function(aggregate([request])["cpu"])
    assert rows == [(Frame("f"), 3, 3), (Frame("main"), 0, 3)]


def test_a_kind_that_a_file_lacks_is_not_taken_for_no_samples(message, tmp_path):
    """The other commands do likewise; of a part of a file nothing may be left."""
    (tmp_path / "a.otlp").write_bytes(cpu(message).bytes())
    done = otelprof("top", "a.otlp", "--kind", "heap", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "otelprof: a.otlp has no profile of kind heap; it has cpu\n")
    done = otelprof("top", "a.otlp", "--kind", "heap", "--hide-idle", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "no samples\n")


def test_report(message):
    text = report(aggregate([cpu(message).request]), 10)
    assert "CPU time: 0.500 s" in text
    assert "100.0%      0.500 s  100.0%  leaf" in text
    assert report({}, 10) == "no samples"
    assert readable("bytes", 1536) == "1.5 KiB"


def test_the_parts_of_a_heap_add_up_and_duplicates_count_once(message):
    def part(number, heap):
        export = message().profile("inuse_space", "bytes", 1, {("leaf", "main"): heap})
        export.scope.profiles[0].time_unix_nano = 100
        export.scope.profiles[0].profile_id = bytes([number] * 16)
        return export.request

    assert aggregate([part(1, 10), part(2, 20), part(1, 10)])["heap"].total == 30


def test_the_latest_heap_wins_whatever_the_order(message):
    def at(time, heap):
        export = message().profile("inuse_space", "bytes", 1, {("leaf", "main"): heap})
        export.scope.profiles[0].time_unix_nano = time
        return export.request

    assert aggregate([at(2, 20), at(1, 10)])["heap"].total == 20


def test_objects_are_shown_beside_bytes(message):
    request = (
        message()
        .profile("alloc_objects", "count", 512, {("leaf", "main"): 12345})
        .profile("alloc_space", "bytes", 512, {("leaf", "main"): 1 << 20})
        .request
    )
    text = report(aggregate([request]), 10)
    assert "allocated: 1.0 MiB in 12.3k objects" in text
    assert text.splitlines()[2].split() == [
        "1.0", "MiB", "100.0%", "1.0", "MiB", "100.0%", "12.3k", "12.3k", "leaf",
    ]


def test_code_without_a_name_is_one_row_of_its_module(message):
    stacks = {("libz.so.1!", "main"): 1, ("/usr/lib/libz.so.1!", "main"): 2, ("!", "main"): 4, ("[vdso]!", "main"): 5}
    request = message().profile("samples", "count", 10**9, stacks).request
    rows = {row.split(None, 6)[-1]: row.split()[0] for row in report(aggregate([request]), 9).split("\n\n")[0].splitlines()[2:]}
    assert rows == {"[libz.so.1]": "3.000", "[unknown]": "4.000", "[vdso]": "5.000", "main": "0.000"}


def test_code_without_a_name_is_distinguished_by_address(message):
    export = message().profile("samples", "count", 10**9, {("f",): 1})
    location = export.dictionary.location_table[-1]
    del location.lines[:]
    location.address = 0x1234
    assert list(aggregate([export.request], addresses=True)["cpu"].stacks) == [(Frame("0x1234"),)]
    location.mapping_index = export.mapping("/usr/lib/libz.so.1")
    assert list(aggregate([export.request], addresses=True)["cpu"].stacks) == [
        (Frame("libz.so.1+0x1234", "libz.so.1"),)
    ]


def test_lines_of_a_function_are_told_apart(message):
    export = message().profile("samples", "count", 10**9, {("a!f", "a!main"): 1, ("a!g", "a!main"): 2})
    f, main, g = (location.lines[0] for location in export.dictionary.location_table[1:4])
    for function in export.dictionary.function_table[1:]:
        function.filename_strindex = export.string("/src/server.cpp")
    g.function_index, g.line = f.function_index, 9
    main.line = 0
    assert set(aggregate([export.request], lines=True)["cpu"].stacks) == {
        (Frame("f server.cpp:3", "a"), Frame("main", "a")), (Frame("f server.cpp:9", "a"), Frame("main server.cpp:3", "a"))}
    assert {stack[0] for stack in aggregate([export.request])["cpu"].stacks} == {Frame("f", "a")}


def test_functions_of_one_name_are_told_apart_by_their_module(message):
    request = message().profile("samples", "count", 10**9, {("a!f", "a!main"): 1, ("b!f", "b!main"): 2}).request
    assert by_function(aggregate([request])["cpu"])[:2] == [(Frame("f", "b"), 2, 2), (Frame("f", "a"), 1, 1)]


def test_stacks_that_lack_their_callers_are_marked(message):
    export = message().profile("samples", "count", 10**9, {("leaf", "middle"): 3, ("leaf", "main"): 1})
    for key in ("otelprof.stack.truncated", "otelprof.stack.depth_cut"):
        attribute = export.dictionary.attribute_table.add(key_strindex=export.string(key))
        attribute.value.bool_value = True
        del export.scope.profiles[0].samples[0].attribute_indices[:]
        export.scope.profiles[0].samples[0].attribute_indices.append(len(export.dictionary.attribute_table) - 1)
        rows = {frame.name: (own, total) for frame, own, total in by_function(aggregate([export.request])["cpu"])}
        assert rows["[truncated]"] == (0, 3) and rows["main"] == (0, 1)


def test_values_below_one_are_no_observations(message):
    request = message().profile("samples", "count", 10**9, {("f",): -5, ("g",): 0, ("h",): 2}).request
    assert aggregate([request])["cpu"].stacks == {(Frame("h"),): 2}


def test_inlined_functions_come_before_their_callers(message):
    export = message().profile("samples", "count", 10**9, {("outer", "main"): 1})
    location = export.dictionary.location_table[1]
    export.location("inlined")
    location.lines.insert(0, export.dictionary.location_table[-1].lines[0])
    assert list(aggregate([export.request])["cpu"].stacks) == [(Frame("inlined"), Frame("outer"), Frame("main"))]


def test_samples_with_timestamps_instead_of_values(message):
    export = message().profile("samples", "count", 10**9, {("f",): 1})
    sample = export.scope.profiles[0].samples[0]
    del sample.values[:]
    sample.timestamps_unix_nano.extend([5, 6, 7])
    assert aggregate([export.request])["cpu"].total == 3


@pytest.mark.parametrize("index", [-1, 99])
def test_indices_that_point_nowhere(message, index):
    export = message().profile("samples", "count", 10**9, {("f",): 1, ("g",): 1, ("h",): 1})
    dictionary = export.dictionary
    export.scope.profiles[0].samples[0].stack_index = index
    dictionary.stack_table[2].location_indices[0] = index
    dictionary.location_table[3].lines[0].function_index = index
    assert aggregate([export.request])["cpu"].stacks == {(Frame("[unknown]"),): 3}


def test_names_cannot_steer_the_terminal(message):
    request = message().profile("samples", "count", 10**9, {("\x1b[2J",): 1}).request
    assert "\x1b" not in report(aggregate([request]), 10)


# --- running a program ---


def burner():
    return str(BUILD / "test" / "programs" / "cpu_shares")


def test_run_shows_and_writes(tmp_path):
    done = otelprof("run", "-o", "a.otlp", "--flamegraph", "a.html", "--", burner(), "1", "2",
                    cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith('{"functions"'), "the program's own output, nothing of ours"
    assert "CPU time" in done.stderr and "burn_40" in done.stderr
    assert "burn_40" in (tmp_path / "a.html").read_text()
    top = otelprof("top", "a.otlp", "--kind", "cpu", cwd=tmp_path)
    assert top.returncode == 0 and "burn_40" in top.stdout


def test_run_passes_everything_through(tmp_path):
    done = otelprof(
        "run", "--quiet", "--", "sh", "-c", "cat; echo err >&2; exit 7", cwd=tmp_path, input="in"
    )
    assert done.returncode == 7
    assert done.stdout == "in"
    assert done.stderr.splitlines()[0] == "err"


def test_run_dies_of_the_same_signal(tmp_path):
    done = otelprof("run", "--quiet", "--", "sh", "-c", "kill -TERM $$", cwd=tmp_path)
    assert done.returncode == -signal.SIGTERM


def test_run_forwards_termination(tmp_path):
    running = subprocess.Popen(
        [OTELPROF, "run", "--quiet", "--", "sh", "-c",
         "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )
    assert running.stdout.readline() == b"ready\n"
    running.terminate()
    assert running.wait(30) == 9


def test_a_termination_before_the_program_runs_is_passed_on():
    had = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    program = subprocess.Popen(["sleep", "3600"])
    try:
        termination = Termination()
        os.kill(os.getpid(), signal.SIGTERM)
        termination.goes_to(program)
        assert program.wait(30) == -signal.SIGTERM
    finally:
        program.kill()
        for number, handler in had.items():
            signal.signal(number, handler)


def test_a_program_that_ends_its_parent_at_once_gets_that_signal(tmp_path):
    done = otelprof("run", "--quiet", "--", "sh", "-c",
                    "trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.05; done", cwd=tmp_path)
    assert done.returncode == 9


def test_run_keeps_the_status_when_the_report_fails(tmp_path):
    for end, status in (("exit 3", 3), ("kill -KILL $$", -signal.SIGKILL)):
        (tmp_path / "folder").mkdir()
        done = otelprof("run", "--quiet", "--flamegraph", "folder/a.html", "--",
                        "sh", "-c", f"rmdir folder; {burner()} 1 1; {end}", cwd=tmp_path)
        assert done.returncode == status and "folder/a.html" in done.stderr


def test_run_refuses_a_page_without_a_folder_before_the_program_runs(tmp_path):
    done = otelprof("run", "--flamegraph", "no/folder.html", "--", "touch", "ran", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "otelprof: no/folder.html: No such file or directory\n")
    assert list(tmp_path.iterdir()) == []


def test_run_leaves_descriptors_and_signals_alone(tmp_path):
    with open(tmp_path / "third", "w") as third:
        done = otelprof(
            "run", "--quiet", "--", "sh", "-c",
            f"echo hello >/proc/self/fd/{third.fileno()}; grep -E 'Sig(Blk|Ign)' /proc/self/status",
            cwd=tmp_path, pass_fds=[third.fileno()],
        )
    assert (tmp_path / "third").read_text() == "hello\n"
    bare = subprocess.run(["sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status"],
                          capture_output=True, text=True, check=True)
    assert done.stdout == bare.stdout


def test_ctrl_c_is_the_programs(tmp_path):
    running = subprocess.Popen(
        [OTELPROF, "run", "--quiet", "--", "sh", "-c",
         "trap 'exit 5' INT; echo ready; while :; do sleep 0.05; done"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )
    assert running.stdout.readline() == b"ready\n"
    os.killpg(running.pid, signal.SIGINT)  # as the terminal does
    assert running.wait(30) == 5
    running.stdout.close()


def test_the_preload_of_the_user_stays(tmp_path):
    done = otelprof("run", "--quiet", "--", "sh", "-c", "echo $LD_PRELOAD $OTEL_PROFILE_EXPORT_INTERVAL",
                    cwd=tmp_path, env=dict(os.environ, LD_PRELOAD="libm.so.6",
                                           OTEL_PROFILE_EXPORT_INTERVAL="123"))
    preload, interval = done.stdout.split()
    assert preload.split(":")[0].endswith("/libotelprof.so") and preload.endswith(":libm.so.6")
    assert interval == "123"


def profiled_programs(folder, *command, env=None):
    done = otelprof("run", "--quiet", "-o", "a.otlp", "--", *command, cwd=folder,
                    env=dict(os.environ, **(env or {})))
    assert done.returncode == 0, done.stderr
    return {
        attribute.value.string_value
        for message in read_messages(folder / "a.otlp")
        for resource_profiles in message.resource_profiles
        for attribute in resource_profiles.resource.attributes
        if attribute.key == "process.executable.name"
    }


LOOP = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
NUMBERS = "seq 1 200000 | sort -r | md5sum >/dev/null"


def test_run_profiles_programs_that_the_default_excludes(tmp_path):
    assert "bash" in profiled_programs(tmp_path, "bash", "-c", f"{LOOP}; {NUMBERS}")
    assert "sort" in profiled_programs(tmp_path, "sh", "-c", NUMBERS), "what it starts, too"


def test_run_profiles_its_command_whatever_is_excluded(tmp_path):
    env = {"OTEL_PROFILER_EXCLUDE": "*"}
    assert profiled_programs(tmp_path, "bash", "-c", f"{LOOP}; {NUMBERS}", env=env) == {"bash"}
    script = tmp_path / "de[pl*oy, now"
    script.write_text(f"#!/bin/bash\n{LOOP}\n{NUMBERS}\n")
    script.chmod(0o755)
    assert profiled_programs(tmp_path, str(script), env=env) == {"bash"}, "a script by its name"
    env["OTEL_PROFILER_INCLUDE"] = "sort"
    assert profiled_programs(tmp_path, str(script), env=env) == {"bash", "sort"}


def test_run_takes_every_type_that_the_library_takes(tmp_path):
    command = ("--alloc-interval", "1", "--", str(BUILD / "test" / "programs" / "maps_memory"))
    env = {**os.environ, "OTEL_PROFILER_SHUTDOWN_TIMEOUT": "50000"}
    for types in (*KINDS, ",".join(TYPES), "all", "cpu,alloc,mmap"):
        done = otelprof("run", "--types", types, "-o", types, *command, cwd=tmp_path, env=env)
        assert done.returncode == 0 and "none of" not in done.stderr, done.stderr
    profiles = aggregate(read_messages(tmp_path / "cpu,alloc,mmap"))
    assert "alloc" in profiles and "heap" not in profiles
    mapped = sum(value for stack, value in profiles["alloc"].stacks.items() if stack[0].name == "anonymous")
    assert mapped == json.loads(done.stdout)["allocated"]


@pytest.mark.parametrize("option", [("-n", "0"), ("--frequency", "x"), ("--types", "cpu,gpu"), ("--types", "cpu,mmap")])
def test_options_that_make_no_sense(tmp_path, option):
    done = otelprof("run", *option, "--", "true", cwd=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_run_without_a_program(tmp_path):
    assert otelprof("run", cwd=tmp_path).returncode == 2
    missing = otelprof("run", "--", "./no-such-program", cwd=tmp_path)
    assert missing.returncode == 127
    assert "no-such-program" in missing.stderr
    assert list(tmp_path.iterdir()) == [], "no empty profile is left"


def test_an_installed_copy_runs(tmp_path):
    subprocess.run(
        ["make", "-C", ROOT, "install", "PREFIX=/opt/otelprof", f"DESTDIR={tmp_path}",
         f"BUILD={BUILD}"],
        check=True, capture_output=True,
    )
    command = tmp_path / "opt" / "otelprof" / "bin" / "otelprof"
    done = subprocess.run(
        [command, "run", "--types", "cpu,alloc,mmap", "-o", "a.otlp", "--", burner(), "1", "1"], cwd=tmp_path,
        capture_output=True, text=True, check=False, timeout=60,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    assert done.returncode == 0 and "burn_40" in done.stderr
    shown = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert shown == otelprof("--version", cwd=tmp_path).stdout != ""
    subprocess.run(
        ["make", "-C", ROOT, "uninstall", "PREFIX=/opt/otelprof", f"DESTDIR={tmp_path}",
         f"BUILD={BUILD}"],
        check=True, capture_output=True,
    )
    left = [path for path in (tmp_path / "opt").rglob("*") if path.is_file()]
    assert left == []


@pytest.mark.parametrize("words", [
    ["view", "a.otlp", "--port", "65536"], ["view", "a.otlp", "--port", "-1"], ["live", "1", "--port", "65536"],
    ["live", "1", "--seconds", "3601"], ["record", "1", "-o", "r", "--seconds", "99999999999"],
    ["record", "1", "-o", "r", "--seconds", "0"], ["record", "1", "-o", "r", "--frequency", "0"],
])
def test_a_number_that_cannot_be_is_refused_at_once(message, tmp_path, words):
    """A port or a time that no call accepts once ended in a traceback, and a frequency of 0 was ignored."""
    (tmp_path / "a.otlp").write_bytes(cpu(message).bytes())
    done = otelprof(*words, cwd=tmp_path)
    assert done.returncode == 2 and f"invalid {'port number' if '--port' in words else ''}" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


USAGE_OF_CTL = "usage: otelprof ctl [-h] PID status|on|off|flush\n       otelprof ctl [-h] PID set NAME=VALUE ...\n"


@pytest.mark.parametrize("words, said", [
    ([], USAGE_OF_CTL + "otelprof ctl: error: the following arguments are required: PID, status|on|off|flush|set\n"),
    (["1"], USAGE_OF_CTL + "otelprof ctl: error: the following arguments are required: status|on|off|flush|set\n"),
    (["1", "set"], "otelprof: ctl: `set` needs NAME=VALUE, such as CPU_FREQUENCY=499\n"),
    (["1", "flush", "A=b"], "otelprof: ctl: `flush` takes no NAME=VALUE; `set` does\n"),
])
def test_ctl_asks_for_settings_where_it_takes_them(tmp_path, words, said):
    """The help once claimed that they are required, also by `status`, which has none."""
    done = otelprof("ctl", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_the_help_of_ctl_is_the_synopsis_of_its_manual_page(tmp_path):
    assert otelprof("ctl", "--help", cwd=tmp_path).stdout.startswith(USAGE_OF_CTL)
    page = (ROOT / "docs/man/otelprof.1").read_text()
    synopsis = re.findall(r'^\.SY "otelprof ctl"\n(.*?)\.YS$', page, re.MULTILINE | re.DOTALL)
    words = [re.sub(r"^\.\w+ |[ \n]", "", part, flags=re.MULTILINE) for part in synopsis]
    assert words == ["PIDstatus|on|off|flush", "PIDsetNAME=VALUE..."]


@pytest.mark.parametrize("command, program", [
    (["./app", "x"], "./app"),
    (["/lib64/ld-linux-x86-64.so.2", "./app", "x"], "./app"),
    (["ld-linux-x86-64.so.2", "--argv0", "x", "--inhibit-cache", "/opt/app"], "/opt/app"),
    (["/lib/ld-musl-x86_64.so.1", "--preload", "a.so", "app"], "app"),
    (["/lib64/ld-linux-x86-64.so.2", "--help"], "/lib64/ld-linux-x86-64.so.2"),
], ids=lambda value: value if isinstance(value, str) else None)
def test_behind_the_loader_the_program_is_its_argument(command, program):
    assert program_of(command) == program


def test_a_page_has_no_arguments_in_its_title(message, tmp_path):
    """People give pages to each other; arguments may be secret."""
    assert program_name(["/opt/shop/server", "--password=hunter2"]) == "server"
    assert program_name(["/lib64/ld-linux-x86-64.so.2", "/opt/shop/server", "--password=hunter2"]) == "server"
    data = message().profile("samples", "count", 10_000_000, {("leaf", "main"): 50}).bytes()
    (tmp_path / "a.otlp").write_bytes(len(data).to_bytes(4, "big") + data)

    def title_of(given):
        options = Namespace(command=["./server", "--password=hunter2"], title=given, quiet=True, flamegraph=str(tmp_path / "a.html"),
                            hide_idle=False, language=None, rows=1)
        _show(str(tmp_path / "a.otlp"), options)
        text = (tmp_path / "a.html").read_text()
        assert "hunter2" not in text
        return re.search("<title>(.*?)</title>", text)[1]

    assert title_of(None) == "server" and title_of("of Monday") == "of Monday"
