"""The flame graph's page shows the samples of one label, with the sums that `otelprof` computes."""

import random

import pytest
from browser import rows_of
from otelprof_lib.aggregate import aggregate
from otelprof_lib.flamegraph import page
from otelprof_lib.page_data import Limits
from otelprof_lib.labels import Label, select
from otelprof_lib.formats import headline
from otelprof_lib.report import report

SPANS = [(f"{number:02x}f067aa0ba902b7", f"{number % 3:02x}f92f3577b34da6a3ce929d0e0e4736") for number in range(1, 9)]
ROUTES = ("/cart", "/search", "<b>/x</b>")


def served(message):
    """Returns requests of a server: spans with stacks of their own and common ones, and work without a span."""
    dice = random.Random(17)
    rows = []
    for number in range(200):
        ids = dice.choice([*SPANS, None])
        middle = tuple(f"app!step{dice.randrange(4)}" for _ in range(dice.randrange(6)))
        stack = (f"{dice.choice(['app', 'libc.so.6'])}!leaf{number % 17}", *middle, "app!serve", "app!main")
        attributes = {"http.route": dice.choice(ROUTES), "thread.name": f"worker-{dice.randrange(3)}"}
        rows.append((stack, dice.randrange(1, 50), ids, attributes if ids else {}))
    bytes_of = [(stack, value * 1024, ids, attributes) for stack, value, ids, attributes in rows]
    return aggregate([
        message().labelled("samples", "count", 10_000_000, rows)
        .labelled("alloc_space", "bytes", 1, bytes_of).labelled("alloc_objects", "count", 1, rows)
        .profile("inuse_space", "bytes", 1, {("keeper", "main"): 4096}).request
    ])


@pytest.fixture
def profiles(message):
    return served(message)


@pytest.fixture
def opened(browser, profiles):
    return browser.open(page("a server", profiles))


def choose(browser, name, value):
    """Selects as a user does: the name from the list, the value typed."""
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.select import Select

    browser.show_filter()
    Select(browser.find("#key")).select_by_value(name)
    browser.find("#value").send_keys(Keys.CONTROL + "a", Keys.NULL, Keys.DELETE, value)


@pytest.mark.parametrize("name, value", [
    ("span_id", SPANS[2][0]), ("trace_id", SPANS[1][1]), ("http.route", "/cart"), ("thread.name", "worker-2"),
])
def test_the_filtered_page_and_top_agree(opened, profiles, name, value):
    """They agree to the last digit: totals, and each function's self and total, of CPU time and of allocations."""
    chosen, _ = select(profiles, [Label(name, value)])
    assert set(chosen) == {"cpu", "alloc"}
    choose(opened, name, value)
    assert opened.text("#profiles").splitlines()[:2] == [headline(profile) for profile in chosen.values()]
    for place, kind in enumerate(chosen):
        opened.driver.find_elements("css selector", "#profiles button")[place].click()
        shown = report({kind: chosen[kind]}, 10**6).split("\n\n")[0]
        assert opened.list() == rows_of(shown)
    assert not opened.driver.find_elements("css selector", "#profiles button")[2].is_enabled(), "its live heap is empty"
    assert opened.problems() == []


def test_the_filtered_tree_is_drawn_like_a_whole_one(opened, profiles, browser, tmp_path):
    columns = "return [[...shown.depths], [...shown.frames].map(nameOf), [...shown.values].map(value => readable(value))]"
    chosen, _ = select(profiles, [Label("span_id", SPANS[0][0])])
    choose(opened, "span_id", SPANS[0][0])
    filtered = opened.ask(columns)
    widths = opened.ask("""
        const sums = new Map();
        shown.frames.forEach((_, node) => node && sums.set(shown.parent[node], (sums.get(shown.parent[node]) || 0) + shown.values[node]));
        return [...sums].every(([parent, sum]) => sum <= shown.values[parent] + 1e-9) &&
            shown.frames.every((_, node) => !node || shown.end[node] === shown.frames.length ||
                shown.parent[shown.end[node]] !== shown.parent[node] || shown.values[shown.end[node]] <= shown.values[node] + 1e-9);
    """)
    assert widths, "no frame is wider than its caller, nor than the sibling before it"
    browser.open(page("one span", chosen))
    whole = browser.ask(columns)
    assert sorted(zip(*filtered)) == sorted(zip(*whole)) and len(whole[0]) > 5


def test_an_id_is_pasted_without_choosing_its_kind(opened, profiles):
    for (name, value), digits in [(("span_id", SPANS[4][0]), 16), (("trace_id", SPANS[0][1]), 32), (("span_id", SPANS[4][0]), 5)]:
        choose(opened, "", value[:digits].upper())
        assert opened.ask("return document.querySelector('#key').value") == name
        total = headline(select(profiles, [Label(name, value)])[0]["cpu"])
        assert opened.text("#profiles").splitlines()[0] == total
        share = opened.text("#kept").split("% of ")
        assert share[1] == headline(profiles["cpu"]) and 0 < float(share[0]) < 100


def test_blanks_belong_to_a_value_but_not_to_a_pasted_id(browser, message):
    rows = [(("f", "main"), 3, SPANS[0], {"tenant": " a "}), (("g", "main"), 1, SPANS[1], {"tenant": "b"})]
    opened = browser.open(page("blanks", aggregate([message().labelled("samples", "count", 10**9, rows).request])))
    for name, typed, share in [("tenant", " a ", "75.0%"), ("tenant", " b ", "25.0%"), ("span_id", f" {SPANS[0][0]} ", "75.0%")]:
        choose(opened, name, typed)
        assert opened.text("#kept") == f"{share} of CPU time: 4.000 s"


def test_an_absent_value_is_reported_and_the_whole_stays(opened, profiles):
    for name, value, said in [
        ("", "dead0000", "no sample has that id"), ("span_id", "dead", "no sample has that id"), ("", "zz", ""),
        ("http.route", "/no", "no sample has that value"), ("trace_id", SPANS[0][0], "no sample has that id"),
    ]:
        choose(opened, name, value)
        assert opened.text("#kept") == said
        assert opened.text("#profiles").splitlines()[0] == headline(profiles["cpu"])


def test_an_ambiguous_id_is_said(browser, message):
    rows = [(("f",), 1, (f"abcd00000000000{end}", "ab" * 16), {}) for end in "12"]
    browser.open(page("two", aggregate([message().labelled("samples", "count", 10**9, rows).request])))
    choose(browser, "", "abcd")
    assert browser.text("#kept") == "2 ids begin so"


def test_the_values_of_a_label_are_offered_the_largest_first(opened, profiles):
    choose(opened, "http.route", "")
    offered = opened.ask("return [...document.querySelectorAll('#values option')].map(option => [option.value, option.textContent])")
    assert sorted(value for value, _ in offered) == sorted(ROUTES)
    shares = [float(share.rstrip("%")) for _, share in offered]
    assert shares == sorted(shares, reverse=True) and 0 < sum(shares) < 100


def test_the_filter_is_taken_away(opened, profiles):
    before = opened.list()
    choose(opened, "http.route", "/cart")
    assert opened.list() != before
    choose(opened, "", "")
    assert opened.list() == before and opened.text("#kept") == ""
    assert opened.text("#profiles").splitlines() == [headline(profile) for profile in profiles.values()]


def test_the_kind_stays_where_nothing_is_left_of_it(opened, profiles):
    opened.driver.find_elements("css selector", "#profiles button")[2].click()
    choose(opened, "http.route", "/cart")
    assert opened.ask("return shown.headline") == "live heap: 0.0 B" and opened.find("#nothing").is_displayed()


def test_a_slash_is_typed_into_the_value(opened):
    choose(opened, "http.route", "/ca")
    assert opened.ask("return [document.activeElement.id, document.activeElement.value]") == ["value", "/ca"]


def test_nothing_is_fetched_nor_run(opened):
    choose(opened, "http.route", "<b>/x</b>")
    assert opened.ask("return performance.getEntriesByType('resource').length + document.querySelectorAll('b, img').length") == 0
    assert opened.problems() == []


HOSTILE = ("__proto__", "constructor", "</script><script>window.hit=1</script>", "<img src=x onerror='window.hit=1'>", "\u202egnp")


def test_no_script_runs_from_a_label(browser, message):
    rows = [((name,), 1, None, {name: name}) for name in HOSTILE]
    browser.open(page("hostile", aggregate([message().labelled("samples", "count", 10**9, rows).request])))
    names = browser.ask("return [...document.querySelectorAll('#key option')].map(option => option.value)")[1:]
    assert len(names) == len(HOSTILE) and {"__proto__", "constructor", "\\x202egnp"} < set(names)
    browser.show_filter()
    for name in names:
        browser.ask("element('key').value = element('value').value = arguments[0]; offerValues(); filter()", name)
        assert browser.text("#kept") == "20.0% of CPU time: 5.000 s"
    assert browser.ask("return window.hit === undefined && !document.querySelector('img')")
    assert browser.problems() == []


def test_of_a_huge_profile_the_largest_frames_are_filtered(browser, message):
    """Frames that are cut off count for their callers: the sums stay."""
    rows = [((f"leaf{n}", f"f{n % 7}", "main"), n + 1, SPANS[n % 2], {}) for n in range(100)]
    profiles = aggregate([message().labelled("samples", "count", 10**9, rows).request])
    browser.open(page("huge", profiles, Limits(nodes=20)))
    choose(browser, "", SPANS[1][0])
    chosen = select(profiles, [Label("span_id", SPANS[1][0])])[0]["cpu"]
    assert browser.text("#profiles") == headline(chosen)
    totals = {row[0]: row[3] for row in browser.list()}
    expected = {row[0]: row[3] for row in rows_of(report({"cpu": chosen}, 999).split("\n\n")[0])}
    assert {name: expected[name] for name in totals} == totals and "main" in totals
    assert "80" in browser.text("#hint") or "left out" in browser.text("#hint")


def test_samples_beyond_the_bound_are_said_to_be_missing(browser, message):
    rows = [((f"leaf{n}",), 10 - n, SPANS[n % 2], {}) for n in range(8)]
    browser.open(page("many", aggregate([message().labelled("samples", "count", 10**9, rows).request]), Limits(samples=4)))
    choose(browser, "", SPANS[0][0])
    assert browser.text("#profiles") == "CPU time: 18.000 s" and browser.text("#kept").endswith(", at least")


def test_no_id_is_asked_for_where_nothing_is_linked(browser, message):
    rows = [((name,), 1, None, {"thread.name": name}) for name in "fg"]
    browser.open(page("threads", aggregate([message().labelled("samples", "count", 10**9, rows).request])))
    browser.show_filter()
    assert browser.find("#key").is_displayed() and not browser.find("#value").is_displayed()
    browser.ask("element('key').value = 'thread.name'; element('key').dispatchEvent(new Event('change'))")
    browser.find("#value").send_keys("g")
    assert browser.text("#profiles") == "CPU time: 1.000 s"


def test_a_page_without_labels_has_no_control(browser, message):
    browser.open(page("plain", aggregate([message().profile("samples", "count", 10**9, {("f",): 1}).request])))
    browser.show_filter()
    assert not browser.find("#key").is_displayed() and not browser.find("#value").is_displayed()


@pytest.mark.parametrize("width", [1400, 800, 360])
def test_the_control_fits_the_screen(browser, profiles, width):
    browser.resize(width, 800)
    browser.open(page("narrow", profiles))
    choose(browser, "trace_id", SPANS[0][1])
    assert browser.ask("return document.documentElement.scrollWidth") <= width
    for selector in ("#key", "#value", "#kept"):
        at = browser.find(selector).rect
        assert at["x"] >= 0 and at["x"] + at["width"] <= width, selector
