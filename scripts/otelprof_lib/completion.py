"""Implements `otelprof completion`: what a shell completes, read from the commands' own parsers."""

import argparse
import re
from typing import NamedTuple

SHELLS = ("bash", "zsh", "fish")
FILES = "files"
HOST_WORDS = ("enable", "disable", "verify", "status")  # words of `otelprof host`, which is no Python


class Option(NamedTuple):
    flags: tuple
    takes: object  # None: no value; FILES; or the value's words, () where they are not known
    help: str


class Words(NamedTuple):
    """Holds the words of one command."""

    name: str
    help: str
    options: tuple
    values: object  # values of its arguments: FILES or words


FILE_OPTIONS = ("--output", "--flamegraph")


def _takes(action):
    if action.nargs == 0:
        return None
    return tuple(action.choices or ()) or (FILES if set(action.option_strings) & set(FILE_OPTIONS) else ())


def _of_command(name, text, sub):
    options = tuple(
        Option(tuple(it.option_strings), _takes(it), it.help or "") for it in sub._actions if it.option_strings
    )
    words = next((tuple(it.choices) for it in sub._actions if not it.option_strings and it.choices), None)
    return Words(name, text, options, HOST_WORDS if name == "host" else words or FILES)


def commands_of(parser):
    (commands,) = (it for it in parser._actions if isinstance(it, argparse._SubParsersAction))
    helps = {it.dest: it.help for it in commands._choices_actions}
    return [_of_command(name, helps[name], sub) for name, sub in commands.choices.items()]


def _flags(command):
    return [flag for option in command.options for flag in option.flags]


# --- bash ---


def _bash_value(option):
    action = (
        "compopt -o default; COMPREPLY=()"
        if option.takes == FILES
        else f"COMPREPLY=($(compgen -W '{' '.join(option.takes)}' -- \"$word\"))"
    )
    return f"        {'|'.join(option.flags)}) {action}; return ;;"


def _bash_command(command):
    lines = [f"    {command.name})", "        case $before in"]
    lines += [_bash_value(option) for option in command.options if option.takes is not None]
    words = "" if command.values == FILES else " ".join(command.values)
    lines += ["        esac", f"        flags='{' '.join(_flags(command))}' words='{words}' ;;"]
    return "\n".join(lines)


def bash(commands):
    return f"""# otelprof's completion for bash; made by `otelprof completion bash`
_otelprof() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} flags words
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W '{' '.join(command.name for command in commands)} --help' -- "$word"))
        return
    fi
    case ${{COMP_WORDS[1]}} in
{chr(10).join(map(_bash_command, commands))}
    *) return ;;
    esac
    case $word in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$word")); [ -n "$words" ] || compopt -o default ;;
    esac
}}
complete -F _otelprof otelprof
"""


# --- zsh ---


def _quoted(text):
    """Quotes a text inside of single quotes, in a specification of _arguments."""
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "'\\''")


def _zsh_value(takes):
    return (
        ""
        if takes is None
        else ":file:_files" if takes == FILES else f":value:({' '.join(takes)})" if takes else ":value:"
    )


def _zsh_command(command):
    specs = [
        f"'{flag}[{_quoted(option.help)}]{_zsh_value(option.takes)}'"
        for option in command.options
        for flag in option.flags
    ]
    rest = "'*:file:_files'" if command.values == FILES else f"'*:value:({' '.join(command.values)})'"
    return f"    {command.name}) _arguments {' '.join([*specs, rest])} ;;"


def zsh(commands):
    described = " ".join(f"'{command.name}:{_quoted(command.help)}'" for command in commands)
    return f"""#compdef otelprof
# otelprof's completion for zsh; made by `otelprof completion zsh`
_otelprof() {{
    local -a commands
    commands=({described})
    if (( CURRENT == 2 )); then
        _describe command commands
        return
    fi
    local name=$words[2]
    shift words
    (( CURRENT-- ))
    case $name in
{chr(10).join(map(_zsh_command, commands))}
    esac
}}
if [ "$funcstack[1]" = _otelprof ]; then _otelprof "$@"; else compdef _otelprof otelprof; fi
"""


# --- fish ---


def _fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_option(command, option):
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    value = (
        ""
        if option.takes is None
        else " -r -F" if option.takes == FILES else f" -x -a {_fish_text(' '.join(option.takes))}"
    )
    condition = f"'__fish_seen_subcommand_from {command.name}'"
    return f"complete -c otelprof -n {condition} {flags}{value} -d {_fish_text(option.help)}"


def _fish_command(command):
    yield f"complete -c otelprof -n __fish_use_subcommand -f -a {command.name} -d {_fish_text(command.help)}"
    if command.values != FILES:
        words = _fish_text(" ".join(command.values))
        yield f"complete -c otelprof -n '__fish_seen_subcommand_from {command.name}' -f -a {words}"
    yield from (_fish_option(command, option) for option in command.options)


def fish(commands):
    lines = [line for command in commands for line in _fish_command(command)]
    return "\n".join(["# otelprof's completion for fish; made by `otelprof completion fish`", *lines, ""])


def completion(options, parser):
    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](commands_of(parser)), end="")
    return 0


def add_arguments(sub):
    sub.add_argument("shell", choices=SHELLS)
