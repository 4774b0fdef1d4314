"""Implements `otelprof completion`: what a shell completes, read from the commands' own parsers."""

import argparse
import re
from typing import NamedTuple

from .settable import SETTABLE

SHELLS = ("bash", "zsh", "fish")
FILES, PROCESSES, SETTINGS = "files", "processes", "settings"
HOST_WORDS = ("enable", "disable", "verify", "status")  # words of `otelprof host`, which is no Python


class Option(NamedTuple):
    flags: tuple
    takes: object  # None: no value; FILES; SETTINGS; or the value's words, () where they are not known
    help: str


class Words(NamedTuple):
    """Holds the words of one command."""

    name: str
    help: str
    options: tuple
    values: tuple  # values of its arguments, the last for all that follow: FILES, PROCESSES, SETTINGS or words


FILE_OPTIONS = ("--output", "--flamegraph")
SETTING_OPTIONS = ("--set",)
# values of arguments by their names in the parsers
NAMED_VALUES = {"pid": PROCESSES, "who": PROCESSES, "values": SETTINGS}


def _takes(action):
    if action.nargs == 0:
        return None
    flags = set(action.option_strings)
    known = FILES if flags & set(FILE_OPTIONS) else SETTINGS if flags & set(SETTING_OPTIONS) else ()
    return tuple(action.choices or ()) or known


def _values(name, sub):
    if name == "host":
        return (HOST_WORDS,)
    arguments = [it for it in sub._actions if not it.option_strings]
    return tuple(tuple(it.choices or ()) or NAMED_VALUES.get(it.dest, FILES) for it in arguments) or (FILES,)


def _of_command(name, text, sub):
    options = tuple(
        Option(tuple(it.option_strings), _takes(it), it.help or "") for it in sub._actions if it.option_strings
    )
    return Words(name, text, options, _values(name, sub))


def commands_of(parser):
    (commands,) = (it for it in parser._actions if isinstance(it, argparse._SubParsersAction))
    helps = {it.dest: it.help for it in commands._choices_actions}
    return [_of_command(name, helps[name], sub) for name, sub in commands.choices.items()]


def _flags(command, takes=lambda _: True):
    return [flag for option in command.options if takes(option.takes) for flag in option.flags]


def _settings():
    return [f"{name}=" for name in SETTABLE]


# Prints the ids of the processes that respond, for bash and zsh.
PROCESSES_FUNCTION = """_otelprof_processes() {
    local pid user place rest
    otelprof ps 2>/dev/null | while read -r pid user place rest; do
        case $pid:$place in [0-9]*:*:*) echo "$pid" ;; esac
    done
}
"""


# --- bash ---


def _bash_offer(takes):
    if takes == FILES:
        return "compopt -o default; COMPREPLY=()"
    if takes == SETTINGS:
        return f"[[ $word == *=* ]] || {{ compopt -o nospace; COMPREPLY=($(compgen -W '{' '.join(_settings())}' -- \"$word\")); }}"
    words = "$(_otelprof_processes)" if takes == PROCESSES else " ".join(takes)
    return f"COMPREPLY=($(compgen -W \"{words}\" -- \"$word\"))"


def _bash_value(option):
    return f"        {'|'.join(option.flags)}) {_bash_offer(option.takes)}; return ;;"


def _bash_places(command):
    for place, takes in enumerate(command.values):
        pattern = "*" if place == len(command.values) - 1 else place
        needed = "[ \"${words[3]}\" != set ] || " if takes == SETTINGS else ""
        yield f"        {pattern}) {needed}{{ {_bash_offer(takes)}; }} ;;"


def _bash_command(command):
    lines = [f"    {command.name})", "        case $before in"]
    lines += [_bash_value(option) for option in command.options if option.takes is not None]
    taking = " ".join(_flags(command, lambda takes: takes is not None))
    lines += ["        esac", f"        _otelprof_place '{taking}'", "        case $place:$word in",
              "        program:*) compopt -o default; COMPREPLY=(); return ;;",
              f"        *:-*) COMPREPLY=($(compgen -W '{' '.join(_flags(command))}' -- \"$word\")); return ;;",
              "        esac", "        case $place in", *_bash_places(command), "        esac ;;"]
    return "\n".join(lines)


def bash(commands):
    return f"""# otelprof's completion for bash; made by `otelprof completion bash`
{PROCESSES_FUNCTION}
# makes words of the line: bash divides them at = and :
_otelprof_words() {{
    local at glued=
    words=()
    for ((at = 0; at <= COMP_CWORD; at++)); do
        case ${{COMP_WORDS[at]}} in
        =|:|=:|:=|::|==) words[${{#words[@]}} - 1]+=${{COMP_WORDS[at]}}; glued=1 ;;
        *) if [ -n "$glued" ]; then words[${{#words[@]}} - 1]+=${{COMP_WORDS[at]}}; else words+=("${{COMP_WORDS[at]}}"); fi; glued= ;;
        esac
    done
}}

# counts the arguments before the word, without options and the values of those that take one; behind -- there are no options
_otelprof_place() {{
    local at
    place=0
    for ((at = 2; at < ${{#words[@]}} - 1; at++)); do
        case ${{words[at]}} in
        --) place=program; return ;;
        -*) case " $1 " in *" ${{words[at]}} "*) ((at++)) ;; esac ;;
        *) ((place++)) ;;
        esac
    done
}}

_otelprof() {{
    local words word before place
    _otelprof_words
    word=${{words[${{#words[@]}} - 1]}} before=${{words[${{#words[@]}} - 2]}}
    case $word in --*=*) before=${{word%%=*}} word=${{word#*=}} ;; esac
    if [ "${{#words[@]}}" -eq 2 ]; then
        COMPREPLY=($(compgen -W '{' '.join(command.name for command in commands)} --help' -- "$word"))
        return
    fi
    case ${{words[1]}} in
{chr(10).join(map(_bash_command, commands))}
    *) return ;;
    esac
}}
complete -F _otelprof otelprof
"""


# --- zsh ---


def _quoted(text):
    """Quotes a text inside of single quotes, in a specification of _arguments."""
    return re.sub(r"([\[\]:\\])", r"\\\1", text).replace("'", "'\\''")


def _zsh_value(takes):
    if takes is None:
        return ""
    known = {FILES: ":file:_files", PROCESSES: ":process:_otelprof_offer_processes", SETTINGS: ":setting:_otelprof_offer_settings"}
    return known.get(takes) or (f":value:({' '.join(takes)})" if takes else ":value:")


def _zsh_places(command):
    for place, takes in enumerate(command.values):
        number = "*" if place == len(command.values) - 1 else place + 1
        yield f"'{number}{_zsh_value(takes)}'"


def _zsh_command(command):
    specs = [
        f"'{flag}[{_quoted(option.help)}]{_zsh_value(option.takes)}'"
        for option in command.options
        for flag in option.flags
    ]
    return f"    {command.name}) _arguments -S {' '.join([*specs, *_zsh_places(command)])} ;;"


def zsh(commands):
    described = " ".join(f"'{command.name}:{_quoted(command.help)}'" for command in commands)
    return f"""#compdef otelprof
# otelprof's completion for zsh; made by `otelprof completion zsh`
{PROCESSES_FUNCTION}
_otelprof_offer_processes() {{ compadd -- $(_otelprof_processes) }}
# the settings of `ctl` follow the word `set`
_otelprof_offer_settings() {{
    [[ $words[1] == ctl && $words[3] != set ]] || compadd -S = -- {' '.join(SETTABLE)}
}}

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

FISH_PROCESSES = r"""function __otelprof_processes
    otelprof ps 2>/dev/null | string replace -rf '^ *([0-9]+) +\S+ +\S+:\S+ +(.*)$' '$1\t$2'
end"""


def _fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_words(takes):
    if takes == PROCESSES:
        return "(__otelprof_processes)"
    return " ".join(_settings() if takes == SETTINGS else takes)


def _fish_option(command, option):
    flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
    value = (
        ""
        if option.takes is None
        else " -r -F" if option.takes == FILES else f" -x -a {_fish_text(_fish_words(option.takes))}"
    )
    condition = f"'__fish_seen_subcommand_from {command.name}'"
    return f"complete -c otelprof -n {condition} {flags}{value} -d {_fish_text(option.help)}"


def _fish_place(command, place):
    """Returns the condition under which the value of an argument is offered."""
    seen = f"__fish_seen_subcommand_from {command.name}"
    if len(command.values) == 1:
        return f"{seen}; and not contains -- -- (commandline -opc)"
    if command.values[place] == SETTINGS:
        return f"{seen}; and __fish_seen_subcommand_from set"
    return f"{seen}; and test (count (commandline -opc)) -eq {place + 2}"


def _fish_command(command):
    yield f"complete -c otelprof -n __fish_use_subcommand -f -a {command.name} -d {_fish_text(command.help)}"
    for place, takes in enumerate(command.values):
        if takes != FILES:
            yield f"complete -c otelprof -n {_fish_text(_fish_place(command, place))} -f -a {_fish_text(_fish_words(takes))}"
    yield from (_fish_option(command, option) for option in command.options)


def fish(commands):
    lines = [line for command in commands for line in _fish_command(command)]
    return "\n".join(["# otelprof's completion for fish; made by `otelprof completion fish`", FISH_PROCESSES, *lines, ""])


def completion(options, parser):
    print({"bash": bash, "zsh": zsh, "fish": fish}[options.shell](commands_of(parser)), end="")
    return 0


def add_arguments(sub):
    sub.add_argument("shell", choices=SHELLS, help="the shell to print the completion for")
