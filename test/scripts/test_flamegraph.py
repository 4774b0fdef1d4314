"""The flame graph's page works in a real browser without a network."""

import os
import random
import re
import subprocess

import pytest
from browser import rows_of
from conftest import BUILD, ROOT
from otelprof_lib.aggregate import Frame, Profile, aggregate
from otelprof_lib.call_tree import CallTree
from otelprof_lib.flamegraph import page
from otelprof_lib.page_data import Limits
from otelprof_lib.formats import headline
from otelprof_lib.report import report

pytestmark = pytest.mark.fast

NASTY = "</script><b>x</b>&\u2028\"'"


@pytest.fixture
def opened(browser, message):
    request = (
        message()
        .profile("samples", "count", 10_000_000,
                 {("hot", "middle", "main"): 60, ("cold", "middle", "main"): 30, (NASTY, "main"): 10})
        .profile("inuse_space", "bytes", 1, {("keeper", "main"): 4096})
        .request
    )
    return browser.open(page("a <title> & more", aggregate([request])))


NASTY_SHOWN = NASTY.replace("\u2028", "\\x2028")


def test_all_frames_are_drawn(opened):
    widths = opened.widths()
    assert set(widths) == {"all", "main", "middle", "hot", "cold", NASTY_SHOWN}
    assert widths["hot"] == pytest.approx(2 * widths["cold"], rel=0.02)
    assert opened.driver.title == opened.text("#title") == "a <title> & more"
    assert opened.problems() == []


def test_nothing_is_fetched(opened):
    fetched = opened.ask("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert fetched == []


HOSTILE = (
    "<script>window.hit = 1</script>", "</script><script>window.hit = 1</script>", "<!--<script>",
    "<img src=x onerror='window.hit = 1'>", "\"'><svg onload=window.hit=1>", "javascript:window.hit=1",
    "</style><style>*{display:none}</style>", "__proto__", "constructor", "${window.hit = 1}",
    "{{hit}}", "&lt;b&gt;", "@SCRIPT@@DATA@", "\u202egnp.exe", "\x1b[2J\x00\n", "\ud83d\ude00", "]]>",
)


def hostile_page(message):
    names = [name.encode("utf-16", "surrogatepass").decode("utf-16") for name in HOSTILE]
    stacks = {(f"{other}!{name}", f"{name}!", "main"): 1 for name, other in zip(names, reversed(names))}
    request = (
        message().profile("samples", "count", 10**9, stacks).profile("alloc_space", "bytes", 1, stacks).request
    )
    return page("".join(names), aggregate([request]))


def test_no_script_runs_from_a_name(browser, message):
    """Functions, modules and the title come from the profiled processes."""
    browser.open(hostile_page(message))
    bodies = browser.ask("return document.querySelectorAll('script, style, img, svg, b').length")
    for name in browser.ask("return data.frames.map(frame => frame[0])"):
        browser.click_frame("all")
        browser.click_frame(name)
        browser.ask("tell(graph.zoomed); searchName(shown.frames[graph.zoomed])")
    for button in range(2):
        browser.ask("document.querySelectorAll('#profiles button')[arguments[0]].click()", button)
        browser.ask("for (const b of document.querySelectorAll('#legend button')) b.click(); look('view')")
    assert browser.ask("return window.hit === undefined")
    assert browser.ask("return document.querySelectorAll('script, style, img, svg, b').length") == bodies == 3
    assert browser.problems() == []
    shown = browser.ask("return data.frames.map(frame => frame[0])")
    assert {"<script>window.hit = 1</script>", "__proto__", "\\x202egnp.exe", "\\x1b[2J\\x00\\x0a"} <= set(shown)


@pytest.mark.parametrize("smuggled", [
    "<script>window.hit = 1</script>", "<img src=x onerror='window.hit = 1'>", "<b onclick='window.hit = 1'>x</b>",
    "<script src='data:text/javascript,window.hit=1'></script>", "<style>body { --hit: 1 }</style>",
])
def test_a_smuggled_script_does_not_run(browser, message, smuggled):
    """The page's policy is a second defence: it allows the page's own script and styles by their hashes."""
    browser.open(hostile_page(message).replace("</body>", smuggled + "</body>"))
    browser.ask("for (const b of document.querySelectorAll('b')) b.click()")
    assert browser.ask("return window.hit === undefined")
    assert browser.ask("return getComputedStyle(document.body).getPropertyValue('--hit')") == ""
    assert any("Content Security Policy" in problem for problem in browser.problems())
    assert len(browser.frames()) > 1, "the page itself works"


def compiler_like(message):
    """Has a long way down from main, then hundreds of narrow stacks, some very deep, half of them without names."""
    dice = random.Random(14)
    common = tuple(f"cc1plus!{name}" for name in ("_start", "libc_start", "main", "toplev::main", "", "finalize"))
    stacks = {}
    for number in range(150):
        passes = tuple(f"cc1plus!{dice.choice(['', 'execute_pass', f'pass_{dice.randrange(9)}'])}"
                       for _ in range(dice.choice([3, 9, 20, 110])))
        leaf = f"{dice.choice(['cc1plus', 'libc.so.6'])}!leaf_{number % 37}"
        stacks[(leaf, *reversed(passes), *reversed(common))] = dice.randrange(1, 9)
    bytes_of = {stack: 4096 * value for stack, value in stacks.items()}
    return (
        message().profile("samples", "count", 10_000_000, stacks)
        .profile("alloc_space", "bytes", 1, bytes_of).profile("alloc_objects", "count", 1, stacks)
        .profile("inuse_space", "bytes", 1, bytes_of).request
    )


@pytest.mark.parametrize("width, height", [(1400, 900), (800, 600)])
def test_the_first_screen_shows_title_totals_root_and_the_widest_frames(browser, message, width, height):
    browser.resize(width, height)
    profiles = aggregate([compiler_like(message)])
    browser.open(page("g++ -O2 -c words.cpp", profiles))
    footer = browser.find("#details").rect["y"]
    for selector in ("#title", "#profiles", "#tools", "#legend", "#chart .frame"):
        at = browser.find(selector).rect
        assert 0 <= at["x"] and at["x"] + at["width"] <= width and 0 <= at["y"] and at["y"] + at["height"] <= footer, selector
    assert browser.text("#profiles").splitlines() == [headline(profile) for profile in profiles.values()]
    frames = browser.frames()
    assert frames[0]["text"] == f"all ({headline(profiles['cpu'])})"
    for frame in sorted(frames, key=lambda frame: -frame["width"])[:10]:
        assert frame["bottom"] <= footer and frame["right"] <= width and frame["text"], frame
    assert {frame["text"] for frame in frames} >= {"_start", "main", "toplev::main", "[cc1plus]"}
    assert browser.ask("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("kind, place", [("cpu", 0), ("alloc", 1), ("heap", 2)])
def test_page_and_top_agree(browser, message, kind, place):
    """They agree to the last digit: totals, each function's self and total, and the sums of the drawn frames."""
    profiles = aggregate([compiler_like(message)])
    shown = report(profiles, 10**6, [kind])
    browser.open(page("agree", profiles))
    browser.ask("document.querySelectorAll('#profiles button')[arguments[0]].click()", place)
    assert browser.ask("return shown.headline") == shown.splitlines()[0]
    listed = browser.list()
    assert len(listed) > 40 and listed == rows_of(shown)
    # the tree: a function's total is that of its outermost frames
    sums = browser.ask("""
        const sums = {}, within = [];
        shown.frames.forEach((frame, node) => {
          within.length = shown.depths[node];
          const name = nameOf(frame);
          const sum = sums[name] ??= [0, 0];
          sum[0] += shown.own[node];
          if (!within.includes(name)) sum[1] += shown.values[node];
          within.push(name);
        });
        for (const name in sums) sums[name] = sums[name].flatMap(sum => [readable(sum), share(sum)]);
        return sums;
    """)
    sums.pop("all")
    assert sums == {name: figures for name, *figures in listed}


def test_page_and_top_agree_on_a_real_program(browser, tmp_path):
    timeouts = ("OTEL_PROFILER_SHUTDOWN_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_PROFILE_EXPORT_TIMEOUT")
    patient = dict(os.environ, **dict.fromkeys(timeouts, "120000"))

    def otelprof(*arguments):
        command = [ROOT / "scripts" / "otelprof", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=patient, stdout=subprocess.PIPE, text=True, check=True).stdout

    otelprof("run", "--quiet", "-o", "a.otlp", "--flamegraph", "a.html", "--", BUILD / "test" / "programs" / "cpu_shares", "1", "1")
    browser.open((tmp_path / "a.html").read_text())
    assert browser.problems() == []
    for place, kind in enumerate(browser.ask("return data.profiles.map(profile => profile.headline)")):
        name = {"CPU time": "cpu", "allocated": "alloc", "live heap": "heap"}[kind.partition(":")[0]]
        shown = otelprof("top", "-n", "500", "--kind", name, "a.otlp")
        browser.ask("document.querySelectorAll('#profiles button')[arguments[0]].click()", place)
        assert shown.splitlines()[0] == kind and browser.list() == rows_of(shown)
        assert browser.frames()[0]["text"] == f"all ({kind})"


@pytest.mark.parametrize("value", [1280, 1024 * 1024 + 52429, 999, 2**61])
def test_halves_are_rounded_alike_by_page_and_top(browser, message, value):
    request = message().profile("alloc_space", "bytes", 1, {("f",): value, ("g",): 3 * value}).request
    profiles = aggregate([request])
    browser.open(page("halves", profiles))
    assert browser.list() == rows_of(report(profiles, 9))


def test_code_without_a_name_has_one_colour_of_its_module(browser, message):
    stacks = {("a!", "a!", "a!main"): 9, ("a!f", "a!", "b!", "a!main"): 9, ("b!", "b!g", "a!main"): 9, ("[anonymous]", "a!main"): 9}
    browser.open(page("nameless", aggregate([message().profile("samples", "count", 10**9, stacks).request])))
    colours = {}
    for frame in browser.frames():
        colours.setdefault(frame["name"], set()).add(frame["colour"])
    assert {len(of_name) for of_name in colours.values()} == {1}
    assert colours["[a]"] != colours["[b]"]
    listed = [row[0] for row in browser.list()]
    browser.click_frame("[a]")
    browser.ask("tell(graph.zoomed)")
    assert browser.details()[2].startswith("code of a that has no names")
    assert sorted(listed) == ["[a]", "[anonymous]", "[b]", "f (a)", "g (b)", "main (a)"]


def test_the_legend_names_the_modules_that_are_drawn(browser, message):
    stacks = {(f"m{module}!f", "start!main"): 100 - module for module in range(10)}
    browser.open(page("legend", aggregate([message().profile("samples", "count", 10**9, stacks).request])))
    shown = [f"{(100 - module) / 9.55:.1f}% m{module}" for module in range(8)] + ["19.2% others"]
    assert browser.text("#legend").splitlines() == shown
    before = {frame["name"]: frame["colour"] for frame in browser.frames()}
    browser.find("#legend button").click()
    assert browser.text("#found") == "found: 100.000 s, 10.5%"
    browser.find("#legend button").click()
    assert browser.text("#found") == "" and {f["name"]: f["colour"] for f in browser.frames()} == before


def test_search_highlights_and_sums(opened):
    before = {frame["name"]: frame["colour"] for frame in opened.frames()}
    opened.search("hot")
    after = {frame["name"]: frame["colour"] for frame in opened.frames()}
    assert after["hot"] not in {*before.values(), after["main"]}
    assert len({after[name] for name in after if name != "hot"}) == 1, "the rest is grey"
    assert opened.text("#found") == "found: 0.600 s, 60.0%"
    opened.search("")
    assert {frame["name"]: frame["colour"] for frame in opened.frames()} == before
    assert opened.text("#found") == ""


def test_search_takes_characters_of_expressions(opened):
    """C++ names have many such characters: operator*, operator[](int)."""
    opened.search("</SCRIPT><B>X</B>&")
    assert opened.text("#found") == "found: 0.100 s, 10.0%"
    opened.search("hot[(*")
    assert opened.text("#found") == "found: 0.000 s, 0.0%"
    assert opened.problems() == []


def test_a_click_zooms_and_the_other_profiles_show(opened):
    opened.click_frame("cold")
    widths = opened.widths()
    assert "hot" not in widths and widths["cold"] == widths["main"] == pytest.approx(widths["all"])
    opened.find("#reset").click()
    assert opened.widths()["hot"] == pytest.approx(2 * opened.widths()["cold"], rel=0.02)
    opened.driver.find_elements("css selector", "#profiles button")[1].click()
    assert set(opened.widths()) == {"all", "main", "keeper"}
    assert opened.text("#profiles") == "CPU time: 1.000 s\nlive heap: 4.0 KiB"


@pytest.mark.parametrize("width, is_beside", [(1400, True), (800, False)])
def test_the_list_of_functions_leads_back_to_the_graph(opened, width, is_beside):
    opened.resize(width, 900)
    opened.find("#view").click()
    assert opened.find("#chart").is_displayed() == is_beside
    opened.find("td:last-child button").click()
    assert opened.find("#chart").is_displayed() and opened.text("#found") == "found: 0.600 s, 60.0%"
    assert len(opened.frames()) == 6


def test_the_file_has_the_controls_of_the_server_but_for_source_lines(opened):
    opened.press("c")
    assert opened.text("#middle") == "hot: 0.600 s, 60.0%; self 0.600 s, 60.0%"
    assert [box.text for box in opened.driver.find_elements("css selector", "#callers .frame")] == ["middle", "main"]
    opened.press("s", "d", "?")
    assert opened.find("#help").is_displayed() and not opened.find("#source-view").is_displayed()
    assert opened.ask("return document.documentElement.dataset.scheme") == "dark"
    assert opened.ask("return performance.getEntriesByType('resource').length") == 0 and opened.problems() == []


def test_keys_alone_do_all(opened):
    focused = "return data.frames[shown.frames[document.activeElement.node]][0]"
    opened.ask("document.querySelector('.frame[tabindex=\"0\"]').focus()")
    walked = []
    for key in ("ARROW_DOWN", "ARROW_DOWN", "ARROW_RIGHT", "ARROW_LEFT", "ARROW_DOWN", "ARROW_RIGHT", "ARROW_RIGHT", "ARROW_UP"):
        opened.press(key)
        walked.append(opened.ask(focused))
    assert walked == ["main", "middle", NASTY_SHOWN, "middle", "hot", "cold", "cold", "middle"]
    assert opened.details() == ["0.900 s, 90.0%", "middle", ""]
    opened.press("ENTER")
    assert set(opened.widths()) == {"all", "main", "middle", "hot", "cold"} and opened.ask(focused) == "middle"
    opened.press("ESCAPE")
    assert NASTY_SHOWN in opened.widths() and opened.ask(focused) == "middle"
    opened.press("/")
    assert opened.ask("return document.activeElement.id") == "term" and opened.find("#term").get_property("value") == ""


CONTRASTS = """
const light = colour => {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = box => {
  const colour = getComputedStyle(box).backgroundColor;
  return /, 0\\)$/.test(colour) && box.parentElement ? ground(box.parentElement) : colour;
};
return [...document.querySelectorAll('.frame, button, #hint, #title, #details, #about, td, #found')].map(box => {
  const [low, high] = [light(ground(box)), light(getComputedStyle(box).color)].sort((a, b) => a - b);
  return [(high + 0.05) / (low + 0.05), box.className || box.id || box.tagName];
});
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_read_in_light_and_dark(browser, message, scheme):
    """WCAG's AA requires a contrast of 4.5, for every module's colours, found or not."""
    browser.prefer(scheme)
    stacks = {(f"m{module}!f{number}", f"m{module}!", "main"): 99 - module for module in range(12) for number in range(3)}
    browser.open(page("colours", aggregate([message().profile("samples", "count", 10**9, stacks).request])))
    assert len({frame["colour"] for frame in browser.frames()}) > 8 * 3
    dark = browser.ask("return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    for term in ("", "f1"):
        browser.search(term)
        assert min(browser.ask(CONTRASTS))[0] >= 4.5, min(browser.ask(CONTRASTS))


def test_long_names_stay_in_their_places(browser, message):
    long = "std::map<" * 600 + ">" * 600
    request = message().profile("samples", "count", 10**9, {(f"{'lib' * 200}!{long}", "main"): 1, ("f", "main"): 1}).request
    for width in (1400, 320):
        browser.resize(width, 600)
        browser.open(page(long, aggregate([request])))
        browser.click_frame(long)
        browser.ask("tell(graph.zoomed)")
        assert browser.ask("return document.documentElement.scrollWidth") <= width
        assert max(frame["right"] for frame in browser.frames()) <= width
        browser.find("#view").click()
        assert browser.ask("return document.documentElement.scrollWidth") <= width
        assert browser.find("#details").rect["height"] <= 0.3 * 600 + 1


def test_a_page_without_samples_reports_it(browser):
    browser.open(page("empty", {}))
    assert browser.text("#chart") == "no samples"
    assert not browser.find("#tools").is_displayed()
    assert browser.problems() == []


def test_stacks_without_their_callers_stand_under_a_mark(browser, message):
    export = message().profile("samples", "count", 10**9, {("leaf", "middle"): 3, ("leaf", "main"): 1})
    attribute = export.dictionary.attribute_table.add(key_strindex=export.string("otelprof.stack.truncated"))
    attribute.value.bool_value = True
    export.scope.profiles[0].samples[0].attribute_indices.append(1)
    browser.open(page("cut", aggregate([export.request])))
    assert [frame["name"] for frame in browser.frames()] == ["all", "[truncated]", "middle", "leaf", "main", "leaf"]


def test_of_a_huge_profile_the_largest_frames_are_kept(browser, message):
    stacks = {tuple(f"f{(number >> bit) & 3}_{bit}" for bit in range(0, 12, 2)): number + 1 for number in range(4096)}
    profiles = aggregate([message().profile("samples", "count", 10**9, stacks).request])
    browser.open(page("huge", profiles, Limits(nodes=500)))
    assert browser.ask("return shown.frames.length") == 500
    left_out = int(re.search(r"The (\d+) smallest frames are left out", browser.text("#hint"))[1])
    assert left_out == 1 + sum(4**depth for depth in range(1, 7)) - 500
    smallest = browser.ask("return Math.min(...shown.values)")
    assert sorted((f["value"] for f in browser.frames()), reverse=True)[0] == sum(stacks.values()) and smallest > 1
    assert {row[0]: row[1:] for row in rows_of(report(profiles, 99))} == {
        row[0]: row[1:] for row in browser.list()
    }, "the list of functions is of all frames"
    browser.search("f1_0")
    assert browser.text("#found").startswith("found: at least ")


def test_frames_too_narrow_to_see_are_not_drawn(browser, message):
    stacks = {(f"leaf{number}", f"function{number}", "main"): 1 for number in range(5000)}
    browser.open(page("wide", aggregate([message().profile("samples", "count", 10**9, stacks).request])))
    assert {frame["name"] for frame in browser.frames()} == {"all", "main"}


def test_marks_in_names_stay(message):
    request = message().profile("samples", "count", 1, {("@DATA@@SCRIPT@",): 1}).request
    text = page("@STYLE@", aggregate([request]))
    assert "<title>@STYLE@</title>" in text and '["@DATA@@SCRIPT@",0]' in text


def test_of_equal_nodes_the_first_ones_are_kept():
    """The order in which their parts are added up does not matter: 0.1 + 0.2 is more than 0.3."""
    def stack(*names):
        return tuple(map(Frame, reversed(names)))

    profile = Profile("", "seconds", {(stack("one"), ()): 0.3, (stack("two", "a"), ()): 0.1, (stack("two", "b"), ()): 0.2})
    places = {name: place for place, name in enumerate(map(Frame, ("all", "one", "two", "a", "b")))}
    tree = CallTree(profile, places, Frame("all"), 2)
    assert (tree.frames, tree.own, tree.left_out) == ([0, 1], [0, 0.3], 3)
    assert round(tree.unseen[0], 9) == 0.3


def test_the_deepest_stacks_open(browser, message):
    deep = tuple(f"f{i}" for i in range(1024))
    request = message().profile("samples", "count", 10**9, {deep: 1}).request
    browser.open(page("deep", aggregate([request])))
    assert len(browser.frames()) == 1025
    assert browser.problems() == []


def test_deep_stacks_do_not_break_the_page(message):
    deep = tuple(f"f{i}" for i in range(3000))
    request = message().profile("samples", "count", 10**9, {deep: 1}).request
    assert "f2999" in page("deep", aggregate([request]))
