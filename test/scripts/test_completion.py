"""`otelprof completion`: real shells complete what the commands really take."""

import os
import re
import shutil
import subprocess

import pytest
from captured import OTELPROF, succeeds
from conftest import BUILD, ROOT
from otelprof_lib.cli import COMMANDS
from otelprof_lib.kinds import KINDS

pytestmark = pytest.mark.system


def need(shell):
    if not shutil.which(shell):
        if os.environ.get("CI") == "true":
            pytest.fail(f"{shell} is missing")
        pytest.skip(f"{shell} is missing")


@pytest.fixture
def complete(tmp_path):
    """complete(shell, line) -> the words that the shell offers at its end, in a folder with the one file `a.otlp`."""
    (tmp_path / "a.otlp").write_text("")

    def bash(script, line):
        words = line.split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        code = (
            f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _otelprof 2>/dev/null; "
            'printf "%s\\n" "${COMPREPLY[@]}"; '
            'if [ ${#COMPREPLY[@]} -eq 0 ]; then compgen -f -- "${COMP_WORDS[COMP_CWORD]}"; fi'
        )
        return ["bash", "-c", code]

    def fish(script, line):
        return ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"]

    def ask(shell, line):
        need(shell)
        script = tmp_path / f".{shell}"
        script.write_text(succeeds("completion", shell, cwd=tmp_path).stdout)
        command = {"bash": bash, "fish": fish}[shell](script, line)
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, env=dict(os.environ, HOME=str(tmp_path))
        )
        return [word.split("\t")[0] for word in done.stdout.splitlines() if word]

    return ask


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_commands_are_completed(complete, shell):
    assert set(complete(shell, "otelprof ")) >= {command.name for command in COMMANDS}
    assert set(complete(shell, "otelprof fl")) == {"flamegraph"}


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize("command", [command.name for command in COMMANDS if command.has_help])
def test_options_of_each_command_are_those_of_its_help(complete, tmp_path, shell, command):
    helped = succeeds(command, "--help", cwd=tmp_path).stdout.split("options:\n")[1]
    expected = set(re.findall(r"--[a-z][a-z-]*", "\n".join(re.findall(r"^  (-.*?)(?:  |$)", helped, re.M))))
    assert {word for word in complete(shell, f"otelprof {command} --") if word.startswith("--")} == expected


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_values_and_files_are_completed(complete, shell):
    assert set(complete(shell, "otelprof pprof --kind ")) == set(KINDS)
    assert complete(shell, "otelprof host st") == ["status"]
    assert complete(shell, "otelprof top a.") == ["a.otlp"]


def test_zsh_completes(tmp_path):
    """In a terminal of its own: zsh completes nowhere else."""
    need("zsh")
    script = tmp_path / "_otelprof"
    script.write_text(succeeds("completion", "zsh", cwd=tmp_path).stdout)
    code = (
        "zmodload zsh/zpty; zpty shell 'zsh -f -i'; "
        'zpty -w shell "PS1=; autoload -U compinit; compinit -u -D; source $1; '
        "zstyle ':completion:*' list-separator --; LISTMAX=0; print READY\"; zpty -r shell line '*READY*READY*'; "
        "zpty -w -n shell $2$'\\t'; zpty -r -m shell out '*--kind*'; print -r -- $out"
    )
    done = subprocess.run(
        ["zsh", "-f", "-c", code, "zsh", script, "otelprof pprof --k"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "TERM": "dumb", "HOME": str(tmp_path)},
    )
    assert "--kind" in done.stdout, done.stdout + done.stderr


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
