"""`otelprof completion`: real shells complete what the commands really accept."""

import argparse
import os
import re
import shutil
import subprocess

import pytest
from captured import OTELPROF, succeeds
from conftest import BUILD, ROOT
from otelprof_lib import listening
from otelprof_lib.cli import COMMANDS, parser
from otelprof_lib.control import WHAT
from otelprof_lib.kinds import KINDS
from otelprof_lib.lists import entries
from otelprof_lib.settable import SETTABLE

pytestmark = pytest.mark.system


BETWEEN = "--- the next line ---"


def need(shell):
    if not shutil.which(shell):
        if os.environ.get("CI") == "true":
            pytest.fail(f"{shell} is missing")
        pytest.skip(f"{shell} is missing")


def with_processes(folder):
    """Returns a PATH on which `otelprof ps` lists these processes, as the command does: one does not respond."""
    rows = [listening.Process(41, "root", "a server", "there"), listening.Process(427, "www", "b", "there"), listening.Process(43, "root", "c", "there")]
    places = {41: "unix:/run/41.sock", 427: "127.0.0.1:6060", 43: "-"}
    code = f"""#!/usr/bin/python3
import sys
sys.path.insert(0, {str(OTELPROF.parent)!r})
from otelprof_lib import cli, listening
listening.processes = lambda: [listening.Process(*it) for it in {[tuple(it) for it in rows]!r}]
listening.shown = lambda it: {places!r}[it.pid]
sys.exit(cli.main(sys.argv[1:]))
"""
    folder.mkdir()
    (folder / "otelprof").write_text(code)
    (folder / "otelprof").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.fixture
def complete(tmp_path):
    """complete(shell, line, ...) -> for each line the words that one shell offers at its end, in a folder with the one
    file `a.otlp`."""
    (tmp_path / "a.otlp").write_text("")
    path = with_processes(tmp_path / ".bin")

    def bash(line):
        # bash divides words at = and :, and an empty word follows only a blank
        words = [part for word in line.split(" ") for part in (re.findall(r"[=:]+|[^=:]+", word) or [""])]
        quoted = " ".join(f"'{word}'" for word in words)
        return (
            f"COMPREPLY=(); COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _otelprof 2>/dev/null; "
            'printf "%s\\n" "${COMPREPLY[@]}"; '
            'if [ ${#COMPREPLY[@]} -eq 0 ]; then compgen -f -- "${COMP_WORDS[COMP_CWORD]}"; fi'
        )

    def fish(line):
        return f"complete -C '{line}'"

    def ask(shell, *lines):
        need(shell)
        script = tmp_path / f".{shell}"
        script.write_text(succeeds("completion", shell, cwd=tmp_path).stdout)
        command, offer = {"bash": (["bash"], bash), "fish": (["fish", "--no-config"], fish)}[shell]
        code = "\n".join([f"source {script}", *(f"{offer(line)}\necho {BETWEEN}" for line in lines)])
        done = subprocess.run(
            [*command, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, env=dict(os.environ, HOME=str(tmp_path), PATH=path)
        )
        offered = done.stdout.split(f"{BETWEEN}\n")
        assert len(offered) == len(lines) + 1 and offered[-1] == "", done.stderr
        return [[word.split("\t")[0] for word in words.splitlines() if word] for words in offered[:-1]]

    return ask


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_commands_are_completed(complete, shell):
    every, one = complete(shell, "otelprof ", "otelprof fl")
    assert set(every) >= {command.name for command in COMMANDS}
    assert set(one) == {"flamegraph"}


def test_each_argument_of_each_command_has_a_help():
    (commands,) = (it for it in parser()._actions if isinstance(it, argparse._SubParsersAction))
    assert len(commands.choices) > 12
    assert [(name, it.dest) for name, sub in commands.choices.items() for it in sub._actions if not it.help] == []


def test_options_of_each_command_are_those_of_its_help(complete, tmp_path):
    commands = [command.name for command in COMMANDS if command.has_help]
    expected = {}
    for command in commands:
        helped = succeeds(command, "--help", cwd=tmp_path).stdout.split("options:\n")[1]
        expected[command] = set(re.findall(r"--[a-z][a-z-]*", "\n".join(re.findall(r"^  (-.*?)(?:  |$)", helped, re.M))))
    assert len(commands) > 10
    for shell in ("bash", "fish"):
        offered = complete(shell, *(f"otelprof {command} --" for command in commands))
        assert {command: {word for word in words if word.startswith("--")} for command, words in zip(commands, offered)} == expected


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_values_and_files_are_completed(complete, shell):
    kinds, commands, files = complete(shell, "otelprof pprof --kind ", "otelprof host st", "otelprof top a.")
    assert set(kinds) == set(KINDS)
    assert (commands, files) == (["status"], ["a.otlp"])


def test_the_settings_are_those_that_can_change():
    names = [name for _, _, name, _ in entries((ROOT / "shim/flush/control/settable.def").read_text(), "SETTABLE")]
    assert [name.removeprefix("OTEL_").removeprefix("PROFILER_") for name in names] == list(SETTABLE)


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_processes_and_settings_are_completed(complete, shell):
    """`ctl` has an order; the processes are those that respond."""
    pids, settings = {"41", "427"}, {f"{name}=" for name in SETTABLE}
    lines = ["ctl ", "ctl 42", "ctl 41 ", "ctl 41 s", "ctl 41 set ", "ctl 41 set CPU_", "record ", "record --seconds 5 4", "record 41 --set LOG",
             "live "]
    offered = map(set, complete(shell, *(f"otelprof {line}" for line in lines)))
    assert dict(zip(lines, offered)) == {
        "ctl ": pids, "ctl 42": {"427"}, "ctl 41 ": set(WHAT), "ctl 41 s": {"status", "set"}, "ctl 41 set ": settings,
        "ctl 41 set CPU_": {"CPU_FREQUENCY=", "CPU_THRESHOLD="}, "record ": pids, "record --seconds 5 4": pids,
        "record 41 --set LOG": {"LOG_LEVEL="}, "live ": pids}
    (after_status,) = complete(shell, "otelprof ctl 41 status CPU_")
    assert after_status == []


def test_bash_knows_words_that_it_divides(complete):
    """It divides words at = and :."""
    pids = {"41", "427"}
    expected = {
        "record --seconds=3 ": pids, "record --output=a": {"a.otlp"}, "export --format=spee": {"speedscope"},
        "record 41 --set=LOG": {"LOG_LEVEL="}, "ctl http://127.0.0.1:6060 s": {"status", "set"}, "ctl unix:/run/41.sock set LOG": {"LOG_LEVEL="},
        "ctl 41 set LOG_LEVEL=info CON": {"CONDITION="}, "ctl 41 set LOG_LEVEL=": set()}
    assert dict(zip(expected, map(set, complete("bash", *(f"otelprof {line}" for line in expected))))) == expected


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_behind_two_dashes_stands_a_program(complete, shell):
    offered = complete(shell, "otelprof run -- a.", "otelprof run -- ./app --out", "otelprof live -- a.")
    assert offered == [["a.otlp"], [], ["a.otlp"]]


def in_zsh(tmp_path, line, awaited):
    """Returns what zsh writes from a tab behind the line to the awaited text. It runs in a terminal of its own: it completes
    nowhere else."""
    need("zsh")
    script = tmp_path / "_otelprof"
    script.write_text(succeeds("completion", "zsh", cwd=tmp_path).stdout)
    code = (
        "zmodload zsh/zpty; zpty shell 'zsh -f -i'; "
        'zpty -w shell "PS1=; autoload -U compinit; compinit -u -D; source $1; '
        "zstyle ':completion:*' list-separator --; LISTMAX=0; print READY\"; zpty -r shell line '*READY*READY*'; "
        "zpty -w -n shell $2$'\\t'; zpty -r -m shell out \"*$3*\"; print -r -- $out"
    )
    done = subprocess.run(
        ["zsh", "-f", "-c", code, "zsh", script, line, awaited], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "TERM": "dumb", "HOME": str(tmp_path), "PATH": with_processes(tmp_path / ".bin")},
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("line, awaited", [
    ("otelprof pprof --k", "--kind"), ("otelprof ctl 42", "427"), ("otelprof ctl 41 flu", "flush"), ("otelprof ctl 41 set CPU_F", "CPU_FREQUENCY="),
    ("otelprof record --set LOG", "LOG_LEVEL="), ("otelprof record 42", "427"), ("otelprof live 42", "427"),
])
def test_zsh_completes(tmp_path, line, awaited):
    assert awaited in in_zsh(tmp_path, line, awaited)


def test_a_shell_that_is_not_known_is_refused():
    done = subprocess.run([OTELPROF, "completion", "tcsh"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 2 and "tcsh" in done.stderr


def test_make_install_puts_them_where_shells_look(tmp_path):
    def make(target):
        subprocess.run(
            ["make", "-C", ROOT, target, "PREFIX=/opt/otelprof", f"DESTDIR={tmp_path}", f"BUILD={BUILD}"],
            check=True,
            capture_output=True,
        )

    share = tmp_path / "opt/otelprof/share"
    places = {
        "bash": "bash-completion/completions/otelprof",
        "zsh": "zsh/site-functions/_otelprof",
        "fish": "fish/vendor_completions.d/otelprof.fish",
    }
    make("install")
    for shell, place in places.items():
        assert (share / place).read_text() == succeeds("completion", shell, cwd=tmp_path).stdout
        assert (share / place).stat().st_mode & 0o777 == 0o644
    make("uninstall")
    assert [path for path in share.rglob("*") if path.is_file()] == []


def test_behind_two_dashes_zsh_offers_files_alone(tmp_path):
    (tmp_path / "--flat").write_text("")
    assert "--flat" in in_zsh(tmp_path, "otelprof run -- ./app --fla", "--flat")
