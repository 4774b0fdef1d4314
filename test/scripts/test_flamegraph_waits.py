"""The flame graph of wall time has CPU time and waits in one, in different colours, and can hide idle threads."""

import re

import pytest
import made_up_server as made_up
from browser import rows_of
from conftest import ROOT
from otelprof_lib.aggregate import aggregate
from otelprof_lib.flamegraph import page
from otelprof_lib.formats import headline
from otelprof_lib.report import report
from otelprof_lib.waits import with_wall, without_idle
from test_flamegraph import CONTRASTS
from test_page_layout import ON_SCREENS

FILLED = """
const bare = text => text.replaceAll(' ', '');
const colours = new Map([...document.querySelectorAll('#legend button')].map(button =>
    [bare(getComputedStyle(button).backgroundColor), button.textContent]));
return [...document.querySelectorAll('.frame')].map(box => [
  data.frames[shown.frames[box.node]][0],
  [...getComputedStyle(box).backgroundImage.matchAll(/(rgb\\([^)]*\\)) ([\\d.]+)%, rgb\\([^)]*\\) ([\\d.]+)%/g)]
      .map(stripe => [colours.get(bare(stripe[1])) || '', stripe[3] - stripe[2]]).filter(stripe => stripe[1] > 0.05),
]);
"""


@pytest.fixture
def profiles(message):
    return aggregate([made_up.shop(message).request])


@pytest.fixture
def opened(browser, profiles):
    return browser.open(page("a shop", with_wall(profiles)))


def hide_idle(browser):
    """Clicks as a user does: a second click shows idle threads again."""
    browser.show_filter()
    browser.find("#idle").click()


def legend(browser):
    """Returns the share by word."""
    return {word: share for share, word in (line.split(" ", 1) for line in browser.text("#legend").splitlines())}


def test_wall_time_comes_first_and_has_every_state(opened, profiles):
    assert opened.ask("return shown.headline") == headline(with_wall(profiles)["wall"]) == "wall time: 61.000 s"
    assert legend(opened) == {"on CPU": "8.2%", "run queue": "1.6%", "lock": "14.8%", "net": "8.2%", "sync": "1.6%", "idle": "65.6%"}
    assert list(legend(opened)) == ["on CPU", "run queue", "lock", "net", "sync", "idle"]
    assert opened.problems() == []


def test_each_frame_is_filled_with_the_colours_of_its_leaves(opened):
    filled = {name: [(legend.partition(" ")[2], round(part, 1)) for legend, part in stripes] for name, stripes in opened.ask(FILLED)}
    assert filled["serve"] == filled["worker"] == [("on CPU", 25.0), ("run queue", 5.0), ("lock", 45.0), ("net", 25.0)]
    assert filled["pool"] == filled["take_job"] == filled["idle"] == [("idle", 100.0)]
    assert filled["render"] == [("on CPU", 83.3), ("run queue", 16.7)]
    assert filled["log_request"] == filled["lock"] == [("lock", 100.0)]
    opened.ask("tell([...shown.frames].findIndex(frame => data.frames[frame][0] === 'serve'))")
    assert opened.details() == ["20.000 s, 32.8%", "serve (shop)", "lock 45.0%, on CPU 25.0%, net 25.0%, run queue 5.0%"]


def test_other_profiles_keep_the_colours_of_their_modules(opened):
    opened.driver.find_elements("css selector", "#profiles button")[1].click()
    assert opened.ask("return shown.title") == "CPU time" and opened.text("#legend") == "100.0% shop"
    assert {tuple(stripes) for _, stripes in opened.ask(FILLED)} == {()}
    assert not opened.find("#of-states").is_displayed()


WAIT_KINDS = dict(re.findall(r'WAIT_KIND\(\w+, "(\w+)", \w+, "(.*)"\)', (ROOT / "common/wait_kinds.def").read_text()))


@ON_SCREENS
def test_each_state_explains_itself_in_the_legend_and_in_the_graph(opened, width, height):
    opened.resize(width, height)
    assert len(WAIT_KINDS) > 15
    for word, meaning in WAIT_KINDS.items():
        assert opened.ask("return meaningOf(arguments[0])", word) == "waiting for " + meaning.replace("`", "")
    for word, meaning in (("net", "waiting for a socket"), ("idle", "waiting for work")):
        button = next(it for it in opened.driver.find_elements("css selector", "#legend button") if it.text.endswith(word))
        assert button.get_attribute("title").startswith(meaning)
        button.click()
        assert opened.text("#more-details").startswith(meaning), "a finger has no tooltip"
        button.click()
        assert opened.ask("return element('more-details').textContent") == ""
        opened.ask("const node = [...shown.frames].findIndex(frame => shown.states[frame] === arguments[0]); tell(node); "
                   "showTip({clientX: 9, clientY: 99}, node)", word)
        assert meaning in opened.text("#more-details") and meaning in opened.text("#tip")


def test_a_state_of_the_legend_is_found(opened):
    for word, found in (("on CPU", "5.000 s, 8.2%"), ("lock", "9.000 s, 14.8%"), ("idle", "40.000 s, 65.6%")):
        button = next(it for it in opened.driver.find_elements("css selector", "#legend button") if it.text.endswith(word))
        button.click()
        assert opened.text("#found") == f"found: {found}"
        colours = {frame["name"]: frame["colour"] for frame in opened.frames()}
        assert [name for name in colours if colours[name] != colours["all"]] == [{"on CPU": "render"}.get(word, word)]
        button.click()
        assert opened.text("#found") == ""


@pytest.mark.parametrize("kind", ["wall", "off_cpu", "lock"])
def test_the_page_without_idle_and_top_agree(opened, profiles, kind):
    """The page agrees with `otelprof top --hide-idle`, to the last digit."""
    opened.show_filter()
    assert opened.text("#idle") == "hide idle: 65.6% of wall time"
    hide_idle(opened)
    busy = without_idle(profiles)
    shown = report(busy, 99, [kind]).split("\n\n")[0]
    place = list(with_wall(profiles)).index(kind)
    opened.driver.find_elements("css selector", "#profiles button")[place].click()
    assert opened.ask("return shown.headline") == shown.splitlines()[0]
    listed = [[row[0].split("  ")[-1].strip(), *row[1:]] for row in rows_of(shown)]  # the page marks a wait by its colours
    assert opened.list() == listed
    assert opened.text("#profiles").splitlines() == [headline(profile) for profile in with_wall(busy).values()]
    hide_idle(opened)
    assert opened.text("#profiles").splitlines() == [headline(profile) for profile in with_wall(profiles).values()]


def test_idle_stays_hidden_when_a_label_is_chosen(opened, profiles):
    hide_idle(opened)
    assert opened.text("#kept") == "34.4% of wall time: 61.000 s" and "idle" not in legend(opened)
    opened.ask("element('key').value = 'thread.name'; element('value').value = 'flusher'; filter()")
    assert opened.ask("return shown.headline") == "wall time: 1.000 s" and legend(opened) == {"sync": "100.0%"}
    opened.ask("element('value').value = 'pool'; filter()")
    assert opened.text("#profiles").splitlines()[0] == "wall time: 0.000 s", "all that it did is idle"
    hide_idle(opened)
    assert opened.ask("return shown.headline") == "wall time: 40.000 s"
    assert opened.problems() == []


def test_a_profile_without_idle_threads_has_no_switch(browser, message):
    profiles = aggregate([message().labelled("off_cpu", "nanoseconds", 1, [(("f",), 5, None, {})]).request])
    browser.open(page("busy", with_wall(profiles)))
    assert not browser.find("#idle").is_displayed() and browser.text("#profiles") == "time off CPU: 0.000 s"


def test_samples_without_a_label_stay_when_idle_is_hidden(browser, message):
    rows = [(("f", "main"), 3000 * made_up.MILLI, None, {}), (("g", "main"), 1000 * made_up.MILLI, None, made_up.idle("cond"))]
    browser.open(page("plain", aggregate([message().labelled("off_cpu", "nanoseconds", 1, rows).request])))
    hide_idle(browser)
    assert browser.text("#profiles") == "time off CPU: 3.000 s" and set(browser.widths()) == {"all", "main", "f"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_can_be_read_in_light_and_dark(browser, message, scheme):
    """The legend has each colour of the stripes."""
    browser.prefer(scheme)
    words = words_of_waits()
    rows = [((f"f{number}",), 1000 * made_up.MILLI, None, made_up.waits(word)) for number, word in enumerate(words)]
    cpu = [(("f",), 100, None, {})]
    profiles = aggregate([message().labelled("samples", "count", 10 * made_up.MILLI, cpu)
                          .labelled("off_cpu", "nanoseconds", 1, rows).labelled("sched_delay", "nanoseconds", 1, rows[:1]).request])
    browser.open(page("colours", with_wall(profiles)))
    assert len(legend(browser)) == len(words) + 2
    assert min(browser.ask(CONTRASTS))[0] >= 4.5, min(browser.ask(CONTRASTS))


def words_of_waits():
    return re.findall(r'^WAIT_KIND\(\w+, "(\w+)"', (ROOT / "common/wait_kinds.def").read_text(), re.M)


def test_each_kind_of_wait_has_a_colour(opened):
    """The exception is `other`, which is grey, as words are that the page does not know."""
    coloured = set(opened.ask("return [...COLOURED]"))
    assert {"on CPU", "run queue", "idle", "not seen", *words_of_waits()} - {"other"} == coloured


def test_no_script_runs_from_a_kind(browser, message):
    nasty = "</script><img src=x onerror='window.hit=1'>url(x);\u202e"
    rows = [(("f",), 1000 * made_up.MILLI, None, {**made_up.waits(nasty), "thread.name": nasty})]
    profiles = aggregate([message().labelled("samples", "count", made_up.MILLI, rows).labelled("off_cpu", "nanoseconds", 1, rows).request])
    browser.open(page("hostile", with_wall(profiles)))
    for name in ("legend", "profiles"):
        browser.ask(f"for (const b of document.querySelectorAll('#{name} button')) b.click()")
    assert browser.ask("return window.hit === undefined && !document.querySelector('img')")
    assert browser.ask("return performance.getEntriesByType('resource').length") == 0
    assert browser.problems() == []


@pytest.mark.parametrize("width", [1400, 800, 360])
def test_the_page_fits_the_screen(browser, profiles, width):
    browser.resize(width, 800)
    browser.open(page("narrow", with_wall(profiles)))
    assert browser.ask("return document.documentElement.scrollWidth") <= width
    browser.show_filter()
    at = browser.find("#idle").rect
    assert at["x"] >= 0 and at["x"] + at["width"] <= width


# --- tables of locks and threads ---


def other_rows(browser):
    return browser.ask("return [...document.querySelectorAll('#other tr')].map(row => [...row.cells].map(cell => cell.textContent))")


@pytest.mark.parametrize("kind", ["wall", "off_cpu", "lock"])
def test_the_page_lists_locks_with_their_holders(opened, profiles, kind):
    opened.driver.find_elements("css selector", "#profiles button")[list(with_wall(profiles)).index(kind)].click()
    assert opened.text("#other-view") == "list locks"
    opened.find("#other-view").click()
    assert not opened.find("#chart").is_displayed() and opened.find("#other table").is_displayed()
    assert other_rows(opened) == [
        ["delay", "contentions", "mean", "off CPU", "lock", "held by", "last seen in", "waited for in"],
        ["9.0 s", "1.0k", "9.0 ms", "9.0 s", made_up.NAMED, "flusher (thread 200) 100.0%",
         "flush_log, from write_entries, from run_flusher, from main", "log_request (shop) 100.0%"]]
    opened.find("#other-view").click()
    assert opened.find("#chart").is_displayed() and len(opened.frames()) > 3
    assert opened.problems() == []


@ON_SCREENS
def test_figures_of_a_table_are_on_one_line_and_below_each_other(opened, width, height):
    opened.resize(width, height)
    opened.find("#other-view").click()
    styles = opened.ask("return [...document.querySelector('#other tbody').rows[0].cells].map(cell => getComputedStyle(cell))"
                        ".map(style => [style.textAlign, style.whiteSpace])")
    assert styles == [["right", "nowrap"]] * 4 + [["left", "normal"]] * 4


def test_the_page_lists_threads(opened):
    next(it for it in opened.driver.find_elements("css selector", "#profiles button") if it.text == "threads: 7").click()
    opened.find("#other-view").click()
    rows = other_rows(opened)
    assert rows[1] == ["1", f"blocked in lock {made_up.NAMED} for 11.0 ms", "flusher (thread 200)", "worker-0 (100)",
                       "log_request (shop), from serve (shop), from worker (shop)"]
    assert len(rows) == 5 and rows[4][1] == "idle in cond for 9.9 s"
    hide_idle(opened)
    assert other_rows(opened) == rows[:4]


def test_the_page_names_threads_that_wait_for_each_other(browser, message):
    browser.open(page("a bank", aggregate([made_up.deadlocked(message).request])))
    browser.find("#other-view").click()
    first, second, *_ = browser.text("#note").splitlines()
    assert first == "DEADLOCK: these threads wait for each other" and "worker-0 (100) has waited 2.0 s for 0x1000" in second


def test_a_profile_without_a_table_shows_the_graph(opened):
    opened.find("#other-view").click()
    opened.driver.find_elements("css selector", "#profiles button")[1].click()
    assert opened.find("#chart").is_displayed() and not opened.find("#other-view").is_displayed()
    assert not opened.find("#other").is_displayed()


def test_tables_are_of_all_samples(opened):
    """Such tables are not offered where a label is selected."""
    opened.find("#other-view").click()
    opened.ask("element('key').value = 'thread.name'; element('value').value = 'worker-1'; filter()")
    assert opened.find("#chart").is_displayed() and not opened.find("#other-view").is_displayed()


def test_no_script_runs_from_a_holder(browser, message):
    nasty = "</script><img src=x onerror='window.hit=1'>\u202e"
    labels = {**made_up.waits("lock"), "thread.name": nasty, "thread.id": 1, "otelprof.lock.address": nasty,
              "otelprof.lock.holder.thread.id": 2, "otelprof.lock.holder.thread.name": nasty, "otelprof.lock.holder.stack": [nasty],
              **made_up.stands(nasty, 5)}
    rows = [((nasty,), 1000 * made_up.MILLI, None, labels)]
    request = message().labelled("off_cpu", "nanoseconds", 1, rows).labelled("threads", "count", 1, rows).request
    browser.open(page("hostile", aggregate([request])))
    for place in range(2):
        browser.driver.find_elements("css selector", "#profiles button")[place].click()
        browser.find("#other-view").click()
        assert any("<img" in cell for cell in other_rows(browser)[1])
    assert browser.ask("return window.hit === undefined && !document.querySelector('img')")
    assert browser.problems() == []
