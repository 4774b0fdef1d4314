"""Frames of several languages in one stack have their names in tables, and their colours on the flame graph's page."""

import subprocess

import pytest
from browser import rows_of
from conftest import ROOT, Code
from otelprof_lib.aggregate import Frame, aggregate, by_function
from otelprof_lib.flamegraph import page
from otelprof_lib.labels import NothingChosen
from otelprof_lib.languages import only
from otelprof_lib.python_frames import module_of
from otelprof_lib.report import report
from otelprof_lib.waits import place, with_wall
from test_flamegraph import CONTRASTS

MAIN = Code("native", "main", module="python3.11")
START = Code("cpython", "<module>", "/srv/shop/app.py", line=40)
LOAD = Code("cpython", "Store.load", "/srv/shop/store/__init__.py", line=12)
LOOP = Code("native", "", module="python3.11")
DEFLATE = Code("native", "deflate", "/src/deflate.c", "libz.so.1", line=7)


def profiled(message, stacks):
    return aggregate([message().profile("samples", "count", 10**9, stacks).request])


@pytest.mark.parametrize("path, module", [
    ("/srv/app.py", "app"), ("/srv/store/__init__.py", "store"), ("/srv/store/__main__.py", "__main__"), ("app.py", "app"),
    ("/usr/bin/pytest", "pytest"), ("<string>", ""), ("<stdin>", ""), ("<frozen importlib._bootstrap>", "importlib._bootstrap"),
    ("/usr/lib/python3.11/http/client.py", "http.client"), ("/usr/lib/python3.13/json/__init__.py", "json"),
    ("/usr/lib/python3/dist-packages/yaml/reader.py", "yaml.reader"), ("/venv/lib/python3.11/site-packages/django/views/generic/base.py", "django.views.generic.base"),
    ("/opt/python3.11/shop-2/views.py", "views"), ("/usr/lib/python311.zip/csv.py", "csv"),
    ("<ipython-input-3-0a1b>", ""), ("__init__.py", "__init__"), ("[REDACTED]", ""), ("", ""), ("/a/b.c.py", "b.c"),
])
def test_a_module_has_the_name_of_its_file_or_package(path, module):
    assert module_of(path) == module


def test_a_function_of_python_is_shown_with_its_module_and_file(message):
    stacks = {(LOAD, START, MAIN): 3, (Code("cpython", "<lambda>", "<string>"), MAIN): 2,
              (Code("cpython", "_find_and_load", "<frozen importlib._bootstrap>"), MAIN): 1}
    rows = rows_of(report(profiled(message, stacks), 9))
    assert {row[0] for row in rows} == {
        "store.Store.load (__init__.py)", "app.<module> (app.py)", "main (python3.11)", "<lambda> (<string>)",
        "importlib._bootstrap._find_and_load (<frozen importlib._bootstrap>)"}


def test_a_hidden_file_names_no_module(message):
    stacks = {(Code("cpython", "load", "[REDACTED]"),): 1, (Code("cpython", "[REDACTED]", "/srv/app.py"),): 1}
    names = {row[0] for row in rows_of(report(profiled(message, stacks), 9))}
    assert names == {"load ([REDACTED])", "app.[REDACTED] (app.py)"}


def test_lines_of_python_are_shown_as_those_of_native_code(message):
    request = message().profile("samples", "count", 10**9, {(DEFLATE, LOAD, START, MAIN): 3}).request
    rows = rows_of(report(aggregate([request], lines=True), 9))
    assert {row[0] for row in rows} >= {"store.Store.load __init__.py:12", "app.<module> app.py:40", "deflate deflate.c:7 (libz.so.1)"}


def test_the_interpreters_own_work_counts_for_the_running_function(message):
    call = Code("native", "PyObject_Vectorcall", module="python3.11")
    stacks = {(LOOP, LOOP, LOAD, MAIN): 4, (LOAD, MAIN): 1, (LOOP, call, LOAD, MAIN): 32, (call, LOOP, LOAD, MAIN): 64, (DEFLATE, LOOP, LOAD, MAIN): 2, (LOOP, MAIN): 8,
              (Code("native", "", module="libz.so.1"), LOAD, MAIN): 16}
    own = {frame.name: own for frame, own, _ in by_function(profiled(message, stacks)["cpu"])}
    assert own == {"store.Store.load": 37, "PyObject_Vectorcall": 64, "deflate": 2, "[python3.11]": 8, "[libz.so.1]": 16, "main": 0}


def test_a_function_of_python_waits_and_not_its_interpreter():
    lock = Frame("PyThread_acquire_lock_timed", "python3.11", "native")
    futex, work = Frame("futex_wait", "libc.so.6", "native"), Frame("pool.work", "pool.py", "cpython")
    main = Frame("main", "python3.11", "native")
    assert place((futex, lock, work, main)) == work
    assert place((futex, lock, main)) == lock
    assert place((futex, Frame("sock_recv", "_socket.so", "native"), lock, work, main)).name == "sock_recv"


def test_generated_code_belongs_to_its_source(message):
    profiles = profiled(message, {(Code("v8js", "round", "/srv/work.js"), Code("native", "node::Start", module="node")): 1})
    assert list(profiles["cpu"].stacks) == [(Frame("round", "work.js", "v8js"), Frame("node::Start", "node", "native"))]


# --- one language alone ---


INCREF = Code("native", "Py_INCREF", module="python3.11")
MALLOC = Code("native", "_PyObject_Malloc", module="python3.11")
# a typical program of Python: the interpreter's functions first
SERVER = {(INCREF, LOAD, START, MAIN): 30, (MALLOC, INCREF, LOAD, START, MAIN): 20, (DEFLATE, START, MAIN): 15, (LOAD, START, MAIN): 5,
          (LOAD, INCREF, LOAD, START, MAIN): 10, (MALLOC, MAIN): 20}
NATIVE = {(DEFLATE, MAIN): 60, (LOAD, MAIN): 40}


def sums(profile):
    return {frame.name: (own, total) for frame, own, total in by_function(profile)}


def command(tmp_path, message, *arguments):
    (tmp_path / "a.pb").write_bytes(message().profile("samples", "count", 10**9, SERVER).bytes())
    return subprocess.run([ROOT / "scripts/otelprof", *arguments, "a.pb"], cwd=tmp_path, capture_output=True, text=True)


def test_native_time_counts_for_the_nearest_function_of_the_language(message):
    profiles, name = only(profiled(message, SERVER), "python")
    assert name == "Python"
    assert sums(profiles["cpu"]) == {"store.Store.load": (65, 65), "app.<module>": (15, 80), "[no Python]": (20, 20)}
    assert {frame.language for stack in profiles["cpu"].stacks for frame in stack} == {"cpython", ""}


def test_bytes_and_objects_count_for_the_nearest_function_of_the_language(message):
    sizes, counts = ({(MALLOC, LOAD, START, MAIN): value, (MALLOC, MAIN): 3 * value} for value in (4096, 2))
    export = message().profile("alloc_space", "bytes", 1, sizes).profile("alloc_objects", "count", 1, counts)
    profile = only(aggregate([export.request]), "python")[0]["alloc"]
    assert sums(profile) == {"store.Store.load": (4096, 4096), "app.<module>": (0, 4096), "[no Python]": (12288, 12288)}
    assert sum(profile.objects.values()) == 8 and profile.total == 16384


def test_callers_that_are_not_known_stay_unknown(message):
    """Unknown callers may be functions of the language."""
    rows = [((MALLOC, LOAD), 2, None, {"otelprof.stack.truncated": True}), ((MALLOC,), 1, None, {"otelprof.stack.truncated": True})]
    profiles = aggregate([message().labelled("samples", "count", 10**9, rows).request])
    assert sums(only(profiles, "python")[0]["cpu"]) == {"store.Store.load": (2, 2), "[no Python]": (1, 1), "[truncated]": (0, 3)}


def test_waits_of_a_language_keep_their_reasons(message):
    waits = message().profile("samples", "count", 10**9, {(INCREF, LOAD, START, MAIN): 3})
    row = (Code("native", "futex_wait", module="libc.so.6"), START, MAIN), 2 * 10**9, None, {"otelprof.wait.kind": "lock"}
    profiles, _ = only(aggregate([waits.labelled("off_cpu", "nanoseconds", 1, [row]).request]), "python")
    assert sums(with_wall(profiles)["wall"]) == {"store.Store.load": (3, 3), "lock": (2, 2), "app.<module>": (0, 5)}
    assert "waits for  function" in report(profiles, 9, ["off_cpu"]) and "lock       app.<module> (app.py)" in report(profiles, 9, ["off_cpu"])


@pytest.mark.parametrize("word, name", [
    ("python", "Python"), ("Python", "Python"), ("cpython", "Python"), ("java", "Java"), ("native", "native"), ("klingon", "klingon")])
def test_a_language_is_called_as_the_legend_has_it_or_the_file(message, word, name):
    assert only(profiled(message, MIXED), word)[1] == name


@pytest.mark.parametrize("word", ["pyton", "ruby", ""])
def test_a_language_that_is_not_there_is_refused_with_those_that_are(message, word):
    with pytest.raises(NothingChosen, match=f"^no sample has code of {word}; languages are java, klingon, native, python$"):
        only(profiled(message, MIXED), word)


def test_a_file_without_languages_offers_none(message):
    with pytest.raises(NothingChosen, match="^no sample has code of python$"):
        only(profiled(message, {("leaf", "main"): 1}), "python")


def test_the_command_shows_one_language(tmp_path, message):
    done = command(tmp_path, message, "top", "--language", "python")
    title, *lines = done.stdout.splitlines()
    assert done.returncode == 0 and title == "functions of Python alone"
    assert [line.split("  ")[-1] for line in lines[3:]] == ["store.Store.load (__init__.py)", "[no Python]", "app.<module> (app.py)"]
    wrong = command(tmp_path, message, "top", "--language", "perl")
    assert (wrong.returncode, wrong.stdout, wrong.stderr) == (2, "", "otelprof: no sample has code of perl; languages are native, python\n")
    assert command(tmp_path, message, "top", "--language", "").returncode == 2


def test_the_flame_graph_can_have_one_language(browser, message, tmp_path):
    assert command(tmp_path, message, "flamegraph", "--language", "python", "-o", "a.html").returncode == 0
    opened = browser.open((tmp_path / "a.html").read_text())
    assert opened.text("#title") == "a.pb: functions of Python alone"
    shown = {(frame["name"], frame["value"]) for frame in opened.frames()}
    assert shown == {("all", 100), ("[no Python]", 20), ("app.<module>", 80), ("store.Store.load", 65), ("store.Store.load", 10)}
    assert opened.problems() == []


def test_most_time_below_an_interpreted_language_is_reported_with_the_option(message):
    text = report(profiled(message, SERVER), 9)
    assert text.splitlines()[-1] == "within Python: 80.0% of CPU time (--language python shows its functions alone)"
    assert text.splitlines()[-2] == "", "it is no row of the table"


@pytest.mark.parametrize("stacks", [NATIVE, {(LOAD, START): 1}, {("leaf", "main"): 1}, {(DEFLATE, MAIN): 1}])
def test_no_option_is_suggested_where_it_would_change_little(message, stacks):
    assert "--language" not in report(profiled(message, stacks), 9)


def test_no_option_is_suggested_where_it_is_given(message):
    assert "--language" not in report(only(profiled(message, SERVER), "python")[0], 9)


def test_a_wrong_language_is_refused_before_the_run(tmp_path):
    done = subprocess.run([ROOT / "scripts/otelprof", "run", "--language", "klingon", "-o", "a.otlp", "--", "/usr/bin/python3", "-c",
                           "sum(range(9000000))"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "otelprof: no sample has code of klingon; languages are " in done.stderr
    assert "CPU time: " in done.stderr and "otelprof: profile in a.otlp" in done.stderr


# --- the page ---


MIXED = {(DEFLATE, LOAD, START, MAIN): 5, (LOAD, START, MAIN): 3, (Code("jvm", "run", "Main.java"), MAIN): 1, (Code("klingon", "Qapla", "x"), MAIN): 1}


def legend(browser):
    return browser.text("#legend").splitlines()


def hues(browser):
    """Returns the hue by name of a frame, in degrees."""
    return browser.ask("""
        return Object.fromEntries([...document.querySelectorAll('.frame')].map(box => [data.frames[shown.frames[box.node]][0],
            getComputedStyle(box).getPropertyValue('--hue').trim()]));
    """)


def test_each_language_has_a_colour_and_a_button(browser, message):
    opened = browser.open(page("mixed", profiled(message, MIXED)))
    assert legend(opened) == ["50.0% native", "30.0% Python", "10.0% Java", "10.0% klingon"]
    of_frame = hues(opened)
    assert of_frame["deflate"] == of_frame["main"] != of_frame["store.Store.load"] == of_frame["app.<module>"] != of_frame["run"]
    before = {frame["name"]: frame["colour"] for frame in opened.frames()}
    opened.driver.find_elements("css selector", "#legend button")[1].click()
    assert opened.text("#found") == "found: 8.000 s, 80.0%", "what Python's functions call is in their time"
    opened.driver.find_elements("css selector", "#legend button")[1].click()
    assert {frame["name"]: frame["colour"] for frame in opened.frames()} == before
    assert opened.problems() == []


TYPES = ("native", "kernel", "cpython", "jvm", "v8js", "dotnet", "ruby", "php", "beam", "go", "perl", "rust", "another")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_can_be_read_in_every_language_s_colour(browser, message, scheme):
    browser.prefer(scheme)
    stacks = {(Code(language, f"{language}_{number}", "<string>"), MAIN): 1 for language in TYPES for number in range(4)}
    opened = browser.open(page("readable", profiled(message, stacks)))
    assert min(opened.ask(CONTRASTS))[0] >= 4.5, "WCAG's AA"
    colours = {}
    for frame in opened.frames():
        colours.setdefault(frame["name"].rpartition("_")[0], set()).add(frame["colour"])
    for language in TYPES:
        others = set().union(*(colours[other] for other in TYPES if other != language))
        assert len(colours[language]) == 3 and colours[language].isdisjoint(others), language


def test_modules_are_coloured_at_a_click(browser, message):
    opened = browser.open(page("mixed", profiled(message, MIXED)))
    opened.find("#colours").click()
    assert [line.split(" ", 1)[1] for line in legend(opened)] == ["libz.so.1", "__init__.py", "Main.java", "x", "app.py", "python3.11"]
    colours = {frame["name"]: frame["colour"] for frame in opened.frames()}
    assert colours["deflate"] != colours["main"]
    opened.find("#colours").click()
    assert legend(opened)[0] == "50.0% native"


@pytest.mark.parametrize("stacks", [{(DEFLATE, MAIN): 1}, {("leaf", "main"): 1}, {(START,): 2}])
def test_of_one_language_nothing_is_said(browser, message, stacks):
    opened = browser.open(page("one", profiled(message, stacks)))
    assert not opened.find("#colours").is_displayed()
    assert all("native" not in line and "Python" not in line for line in legend(opened))


def test_wall_time_keeps_the_colours_of_its_states(browser, message):
    waits = message().profile("samples", "count", 10**9, {(LOAD, START, MAIN): 3})
    waits.labelled("off_cpu", "nanoseconds", 1, [((Code("native", "futex_wait", module="libc.so.6"), START, MAIN), 2 * 10**9, None, {"otelprof.wait.kind": "lock"})])
    opened = browser.open(page("both", with_wall(aggregate([waits.request]))))
    assert legend(opened) == ["60.0% on CPU", "40.0% lock"] and not opened.find("#colours").is_displayed()
    opened.ask("[...document.querySelectorAll('#profiles button')][1].click()")
    assert "Python" in opened.text("#legend") and opened.find("#colours").is_displayed()


def test_a_part_of_the_samples_has_their_languages(browser, message):
    rows = [((DEFLATE, LOAD, MAIN), 1, None, {"route": "/a"}), ((LOAD, MAIN), 3, None, {"route": "/b"})]
    opened = browser.open(page("part", aggregate([message().labelled("samples", "count", 10**9, rows).request])))
    assert legend(opened) == ["75.0% Python", "25.0% native"]
    from selenium.webdriver.support.select import Select
    opened.show_filter()
    Select(opened.find("#key")).select_by_value("route")
    opened.find("#value").send_keys("/a")
    assert legend(opened) == ["100.0% native", "0.0% Python"]
