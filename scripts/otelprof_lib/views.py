"""Implements `otelprof top`, `locks`, `threads` and `flamegraph`: shows a file to a reader."""


from .about import About, file_title
from .arguments import positive
from .capture_file import BadFile
from .choice import add_choice, chosen
from .flamegraph import write_page
from .foreign import say
from .kinds import KINDS, missing
from .locks import lock_table
from .names import print_table
from .repeats import each_once
from .report import report
from .threads import thread_dump
from .waits import WALL, with_wall


def top(options):
    profiles, title = chosen(options)
    is_part = bool(options.span or options.trace or options.label)
    is_whole = not (is_part or options.hide_idle)
    if is_whole and options.kind and options.kind not in with_wall(profiles):
        raise BadFile(missing(options.file, options.kind, profiles))
    if title:
        print(f"{title}\n")
    kinds = [options.kind] if options.kind else None
    print_table(report(profiles, options.rows, kinds, options.group_by, is_part))
    return 0


def locks(options):
    profiles, title = chosen(options)
    if title:
        print(f"{title}\n")
    print(lock_table(profiles, options.rows) or "no sample waited for a lock")
    return 0


def threads(options):
    profiles, title = chosen(options)
    if title:
        print(f"{title}\n")
    print(thread_dump(profiles["threads"]) if "threads" in profiles else "no samples of threads")
    return 0


def for_page(profiles, options):
    """Returns profiles in the form of flame graphs."""
    profiles = with_wall(profiles)
    if options.group_by:
        profiles = {name: profile.under(options.group_by) for name, profile in profiles.items()}
    return profiles


def flamegraph(options):
    about = About()
    profiles, title = chosen(options, about.watched(each_once(options.file)))
    shown = for_page(profiles, options)
    write_page(options.output, options.title or ": ".join(filter(None, (file_title(options.file), title))), shown, about.lines(profiles))
    say(f"flame graph in {options.output}")
    return 0


def add_top(sub):
    add_choice(sub)
    sub.add_argument("-n", "--rows", type=positive, default=20, help="rows of each table (default 20)")
    sub.add_argument("--kind", choices=(*KINDS, WALL), help="only this kind of profile")


def add_locks(sub):
    add_choice(sub, by_function=False)
    sub.add_argument("-n", "--rows", type=positive, default=20, help="locks at most (default 20)")


def add_threads(sub):
    add_choice(sub, by_function=False)


def add_flamegraph(sub):
    add_choice(sub)
    sub.add_argument("-o", "--output", required=True, metavar="HTML", help="file for the page")
    sub.add_argument("--title", help="of the page; the file's name if it is not said")
