"""README, docs/ and the other pages agree with the code and with each other, and their links lead to existing files."""

import re
import shutil
import subprocess

import pytest
from profiled import ROOT

README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *DOCS, *ROOT.glob("test/*.md")])
SOURCES = sorted([*ROOT.glob("shim/**/*.c"), *ROOT.glob("common/**/*.c")])
SOURCES_AND_TESTS = [path for top in ("common", "shim", "test") for path in ROOT.glob(f"{top}/**/*.*")]
STRINGS = r"((?:\"(?:[^\"\\]|\\.)*\"\s*)+)"


NEXT = ROOT / "docs/internals/next.md"
LISTS = {"common/options.def", "common/drop_reasons.def", "common/profile_kinds.def", "shim/hooks/hooked.def",
         "shim/process/allowed_calls.def"}


def name_of(page):
    return str(page.relative_to(ROOT))


def assert_none(faults):
    """Fails with each item on a line of its own: pytest shortens what it compares."""
    assert not faults, "\n".join(["", *faults])


def joined(literals):
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"')


def of_today(page):
    """Returns the page's text; notes on features to come are left without the files that these will add."""
    return re.sub(r"^\| `.*\n", "", page.read_text(), flags=re.M) if page == NEXT else page.read_text()


def without_code_blocks(text):
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.M | re.S)


# --- tables ---


def test_generated_tables_are_those_of_the_lists():
    done = subprocess.run([ROOT / "scripts" / "doc-tables", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_each_entry_of_a_list_is_one_row():
    counts = {}
    for source, macro, page, row in [
        ("options.def", "OPTION", "configuration.md", r"^\| `OTEL_"),
        ("drop_reasons.def", "DROP", "profiles.md", r"^\| `[a-z_]+` \| [^|`]"),
        ("resource_attributes.def", "RESOURCE_ATTRIBUTE", "profiles.md", r"^\| `[a-z._]+` \| (?:always|`full`)"),
    ]:
        entries = re.findall(rf"^{macro}\(", (ROOT / "common" / source).read_text(), re.M)
        counts[source] = len(entries), len(re.findall(row, (ROOT / "docs" / page).read_text(), re.M))
    assert all(entries == rows > 20 for entries, rows in counts.values()), counts


def test_no_other_variable_is_named():
    options = (ROOT / "common" / "options.def").read_text()
    known = set(re.findall(r'"(OTEL_\w+)"', options)) | {
        "OTEL_EXPORTER_OTLP_X", "OTEL_EXPORTER_OTLP_PROFILES_X", "OTEL_CTX"}
    assert_none([f"{name_of(page)}: {name}" for page in [README, *DOCS]
                 for name in re.findall(r"OTEL_[A-Z_]+[A-Z]", page.read_text()) if name not in known])


# --- links and paths ---


def anchor_of(heading):
    """Makes an anchor as GitHub does: lower case, no punctuation, a dash for each space."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page):
    return {anchor_of(heading) for heading in re.findall(r"^#+ (.*)", without_code_blocks(page.read_text()), re.M)}


def leads_somewhere(page, link):
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def test_every_link_leads_to_a_file_and_a_heading():
    links = [(page, link) for page in PAGES
             for link in re.findall(r"\]\(([^)\s]+)\)", without_code_blocks(page.read_text())) if "://" not in link]
    assert len(links) > 100
    assert_none([f"{name_of(page)}: {link}" for page, link in links if not leads_somewhere(page, link)])


def test_every_page_of_docs_is_linked_from_another():
    linked = set()
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if (page.parent / link).resolve() != page:
                linked.add((page.parent / link).resolve())
    assert [name_of(page) for page in DOCS if page not in linked] == []


def test_every_path_in_backticks_exists():
    named = [(page, path) for page in PAGES
             for path in re.findall(r"`((?:common|docs|proto|scripts|shim|test)/[\w./*-]+)[ `:]", of_today(page))]
    assert len(named) > 100
    assert_none([f"{name_of(page)}: {path}" for page, path in named if not list(ROOT.glob(path.replace("NAME", "*")))])


def test_every_file_that_is_named_without_its_folder_exists():
    there = {path.name for path in SOURCES_AND_TESTS}
    named = [(page, file) for page in DOCS for file in re.findall(r"`(\w+\.(?:c|h|def|py))`", of_today(page))]
    assert len(named) > 20
    assert_none([f"{name_of(page)}: {file}" for page, file in named if file not in there])


def test_files_of_features_to_come_are_not_there_yet():
    """The commit that adds a feature removes its note."""
    named = re.findall(r"^\| `([\w./-]+)` \|", NEXT.read_text(), re.M)
    assert len(named) > 10
    assert [file for file in named if (ROOT / file).exists()] == []


def test_features_to_come_change_lists_alone():
    lines = re.findall(r"^Tables: (.*?)\n\n", NEXT.read_text(), re.M | re.S)
    assert lines
    assert set(re.findall(r"`([\w./]+)`", " ".join(lines))) <= LISTS


def test_the_architecture_has_each_directory():
    rooms = {"/".join(path.relative_to(ROOT).parts[:-1][:3]) + "/" for path in SOURCES if "shim" in path.parts} - {"shim/"}
    listed = re.findall(r"^\| `(shim/[\w/]+/)` \|", (ROOT / "docs/internals/architecture.md").read_text(), re.M)
    assert rooms <= set(listed)


# --- README ---


def test_the_readme_is_one_screen():
    assert len(README.read_bytes()) <= 8 * 1024


def test_the_commands_that_are_named_exist():
    targets = subprocess.run(["make", "-C", ROOT, "help"], capture_output=True, text=True, check=True).stdout
    named = {name for page in PAGES for name in re.findall(r"\bmake ([a-z-]+)(?=[ `)]|$)", "\n".join(
        re.findall(r"```.*?```|`[^`\n]*`", page.read_text(), re.S)), re.M)}
    assert {"demo", "test", "check", "install"} < named
    assert [name for name in sorted(named) if not re.search(rf"^{name}\s", targets, re.M)] == []


TESTS = "\n".join(path.read_text() for folder in ("unit", "integration", "scripts")
                  for path in (ROOT / "test" / folder).glob("test_*.*"))


def named_tests(page):
    """Returns (file, test in it, test alone) for each test that the page names."""
    return re.findall(r"`(?:test/\w+/)?(?:(test_\w+\.(?:py|c))(?:::(test_\w+))?|(test_\w+))(?=[`(])", of_today(page))


def is_a_test(file, test, alone):
    if alone:
        return f"def {alone}(" in TESTS
    files = list(ROOT.glob(f"test/*/{file}"))
    return bool(files) and (not test or f"def {test}(" in files[0].read_text())


def test_every_test_that_is_named_exists():
    assert len(named_tests(ROOT / "test/TRAPS.md")) > 80
    assert_none([f"{name_of(page)}: {' '.join(named)}" for page in PAGES for named in named_tests(page)
                 if not is_a_test(*named)])


# --- manual pages ---


def options_in(text):
    return set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", text.replace("\\-", "-")))


def options_of_the_page(command):
    page = (ROOT / "docs/man/otelprof.1").read_text()
    described = page.split(f'.SS "otelprof {command}"\n')[1].split("\n.S")[0]
    return options_in("\n".join(re.findall(r"^\.TP\n(.*)", described.split("\n.PP\n")[0], re.M)))


def options_of_the_help(command):
    text = subprocess.run([ROOT / "scripts/otelprof", command, "--help"], capture_output=True, text=True, check=True,
                          env={"COLUMNS": "200"}).stdout.split("\noptions:\n")[1]
    return options_in("\n".join(re.findall(r"^  (-.*?)(?:  |$)", text, re.M)))


def test_the_manual_page_has_each_option_of_a_command_and_no_other():
    commands = ("run", "receive", "top", "locks", "threads", "flamegraph", "diff", "merge", "pprof", "export", "completion")
    differing = {command: (options_of_the_page(command) | {"-h", "--help"}) ^ options_of_the_help(command)
                 for command in commands}
    assert_none([f"{command}: {' '.join(options)}" for command, options in differing.items() if options])


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is missing (Debian: groff-base)")
def test_manual_pages_have_no_mistake_that_groff_knows():
    pages = sorted((ROOT / "docs/man").iterdir())
    assert len(pages) == 2
    for page in pages:
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z", page], capture_output=True, text=True, check=True)
        assert done.stderr == ""


# --- messages ---


def shown(text):
    return re.sub("(%[a-z]+)+", "…", text)


def messages(source):
    """Returns (level, text as the documentation shows it) of each call that logs; `write`: at a level chosen at run
    time."""
    for level, literals in re.findall(rf"\blog_(write|error|warn|info|debug)\([^\"]*?{STRINGS}", source):
        if joined(literals) not in ("", "%s"):
            yield level, shown(joined(literals))


def messages_of_settings():
    """Returns the messages that config.c composes from a rule that a value breaks and one of these frames."""
    source = (ROOT / "common" / "config.c").read_text()
    assert joined('"; using "') in source
    return {"… is not …; using …", "… is too long to keep; using …",
            "… has neither alloc nor heap, which mmap adds to; using …"}


HOST_FILES = ("shim/process/eligibility/config_file.c", "shim/process/eligibility/host_files.c")


def messages_of_host_files():
    """Returns such messages for files and their lines: those at level warn, and those at level debug."""
    source = "".join((ROOT / name).read_text() for name in HOST_FILES)
    warned = {"…, line … …; the line is ignored": "; the line is ignored", "… …; it is not read": "; it is not read",
              "… has more such lines; they are ignored": " has more such lines; they are ignored",
              "… is the first of 32 files; those before it are not read": "is the first of 32 files; those before it are not read"}
    noted = {"… was read": "was read", "… cannot be read by this user": "cannot be read by this user"}
    assert all(f'"{words}"' in source for words in [*warned.values(), *noted.values()])
    return set(warned), set(noted)


def headings(section):
    text = (ROOT / "docs/troubleshooting.md").read_text()
    return set(re.findall(r"^### `(.*)`$", text.split(f"\n## {section}\n")[1].split("\n## ")[0], re.M))


def test_troubleshooting_has_a_heading_for_each_message_and_no_other():
    found = [message for path in SOURCES for message in messages(path.read_text())]
    assert len(found) > 50
    debug = {text for level, text in found if level == "debug"}
    warned, noted = messages_of_host_files()
    assert headings("Messages at OTEL_LOG_LEVEL=debug") == debug | noted
    assert headings("Messages at default settings") == {text for _, text in found} - debug | messages_of_settings() | warned


RULES = "… is not …; using …"  # each rule is listed below it


def test_each_message_has_words_to_search_for():
    """A heading of values alone, such as `…: …`, is found by nobody."""
    found = headings("Messages at default settings") | headings("Messages at OTEL_LOG_LEVEL=debug")
    longest = {heading: max((run.strip(" :;,.()") for run in heading.split("…")), key=len) for heading in found - {RULES}}
    assert_none([heading for heading, words in longest.items() if len(words) < len("was read")])


def test_troubleshooting_lists_each_rule_that_a_setting_can_break():
    source = "".join((ROOT / "common" / name).read_text() for name in ("config.c", "config_kind.c"))
    rules = re.findall(r'"((?:is (?:not|neither|too)|has neither) [^"]+)"', source)
    assert len(rules) > 20
    files = "".join((ROOT / name).read_text() for name in HOST_FILES)
    rules += [rule.split("; ")[0] for rule in re.findall(r'"((?:is|has|does|can|cannot|ends) [^"]+)"', files)]
    (words,) = re.findall(r'#define TYPE_WORDS "(.*)"', source)
    rules += [f"is not all, nor a list of {words}"]
    assert len(rules) > 35
    text = (ROOT / "docs/troubleshooting.md").read_text()
    assert [rule for rule in rules if rule not in text] == []
