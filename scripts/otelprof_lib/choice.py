"""Has the options that select what of a file is shown: the same for each command that shows one."""

from .aggregate import aggregate
from .foreign import printable
from .kinds import KINDS
from .labels import SPAN, TRACE, NothingChosen, check_name, id_label, label, select
from .languages import only
from .repeats import each_once
from .waits import without_idle

WORDS = ("span", "trace", "label", "group_by", "language", "hide_idle", "inside_libc", "addresses", "lines")


def add_language(sub):
    sub.add_argument("--language", metavar="NAME", help="only functions of one language, such as python: what they call counts for them")


def add_choice(sub, by_function=True, has_file=True):
    """Adds the file to show, and the options that select its parts."""
    if has_file:
        sub.add_argument("file", help="a file of profiles: of run, receive, record, the exporter otlp_file or the Collector")
    sub.add_argument("--span", type=id_label(SPAN), metavar="ID", help="only this span: its id, or 4 or more of its first digits")
    sub.add_argument("--trace", type=id_label(TRACE), metavar="ID", help="only this trace, with all its spans")
    sub.add_argument("--label", type=label, action="append", default=[], metavar="NAME=VALUE",
                     help="only samples with this attribute")
    if by_function:
        sub.add_argument("--group-by", metavar="NAME", help="by the values of an attribute, span_id or trace_id")
        add_language(sub)
    sub.set_defaults(group_by=None, language=None)
    sub.add_argument("--hide-idle", action="store_true", help="without threads that only wait for work")
    sub.add_argument("--inside-libc", action="store_true", help="show what waits inside of the C library's functions")
    sub.add_argument("--addresses", action="store_true", help="show code without a name by its address, not by its module")
    sub.add_argument("--lines", action="store_true", help="show each line of a function by itself, where there is debug information")


def chosen(options, messages=None, kinds=KINDS):
    """Returns what the options of `add_choice` leave of a file's profiles, or of messages', and a title."""
    messages = each_once(options.file) if messages is None else messages
    profiles = aggregate(messages, options.addresses, options.lines, options.inside_libc, kinds)
    wanted = [it for it in (options.span, options.trace, *options.label) if it]
    profiles, labels = select(profiles, wanted)
    if options.hide_idle:
        profiles = without_idle(profiles)
    if options.group_by:
        check_name(profiles, options.group_by)
    title = [f"{it.name}={it.value}" for it in labels]
    if options.language is not None:
        profiles, language = only(profiles, options.language)
        title.append(f"functions of {language} alone")
    return profiles, printable(", ".join(title))


def is_chosen(options):
    """Returns whether one of the options leaves something out, or shows it in another way."""
    return any(getattr(options, word) for word in WORDS)


def check_untouched(options, what):
    """Refuses such options where exports must stay unchanged."""
    for word in WORDS:
        if getattr(options, word):
            raise NothingChosen(f"--{word.replace('_', '-')} does not go with {what}")
