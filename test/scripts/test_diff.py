"""`otelprof diff` names a change, and does not name noise."""

import math
import random
import re
import sys

import pytest
from captured import otelprof, succeeds
from conftest import ROOT, Message
from otelprof_lib.aggregate import aggregate
from otelprof_lib.capture_file import append_message
from otelprof_lib.difference import CERTAINTY, Cell, compare, holm, rate_test, share_test, visible

sys.path.insert(0, str(ROOT / "test" / "diff"))
import builds  # noqa: E402

pytestmark = pytest.mark.fast

PERIOD = 10_000_000
LEAST = 1.05


def profile(counts, period=PERIOD):
    """Returns a profile of CPU time, by function."""
    return aggregate(
        [
            Message()
            .profile("samples", "count", period, {(name, "main"): count for name, count in counts.items()})
            .request
        ]
    )["cpu"]


def names(comparison):
    return [change.frame.name for change in comparison.changes]


def drawn(chances, total, draw):
    """Draws so many samples, each of a function by chance."""
    found = dict.fromkeys(chances, 0)
    for name in draw.choices(list(chances), list(chances.values()), k=total):
        found[name] += 1
    return {name: count for name, count in found.items() if count}


# --- the statistic ---


def test_holm_adjusts_as_published():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1, 1] and holm([]) == []


def test_the_chance_of_a_table_is_that_of_the_g_test():
    """The test computes by hand: 2 * sum of observed * ln(observed / expected), each observed number one half nearer;
    chi-squared with one degree of freedom."""
    ratio, p = share_test(Cell(30, 30), Cell(60, 60), Cell(100, 100), Cell(100, 100), 1)
    g = 2 * (
        30.5 * math.log(30.5 / 45)
        + 59.5 * math.log(59.5 / 45)
        + 69.5 * math.log(69.5 / 55)
        + 40.5 * math.log(40.5 / 55)
    )
    assert ratio == pytest.approx((60 / 40) / (30 / 70))
    assert p == pytest.approx(math.erfc(math.sqrt(g / 2)))


def test_the_chance_of_a_rate_is_that_of_the_binomial():
    """This holds also where there are few samples, and none on one side."""
    for counts in ((0, 10), (0, 25), (5, 30), (100, 160)):
        _, p = rate_test(*(Cell(count, count) for count in counts), Cell(500, 500), Cell(500, 500), (1, 1), 1)
        exact = 2 * sum(math.comb(sum(counts), k) for k in range(counts[0] + 1)) / 2 ** sum(counts)
        assert p == pytest.approx(exact, rel=0.25), counts


def test_values_do_not_make_up_for_samples():
    """Equal values from a thousandth of the samples are no change."""
    for factor, is_change in ((1, True), (1000, False)):
        sides = [profile({"f": f // factor, "g": 5000 // factor}, PERIOD * factor) for f in (4000, 6000)]
        assert bool(compare(*sides, LEAST).changes) == is_change


def test_merged_expiries_are_no_samples():
    sides = [profile({"f": f, "g": 500}) for f in (400, 600)]
    assert names(compare(*sides, LEAST)) == ["f"]
    for side in sides:
        side.sampling._overruns["one"] = side.total * 1e9 / PERIOD * 15 / 16
    assert compare(*sides, LEAST).samples == (pytest.approx(900 / 16), pytest.approx(1100 / 16))
    assert names(compare(*sides, LEAST)) == []


def test_the_samples_of_allocations_are_sampled_objects():
    def allocated(size, objects):
        export = Message().profile("alloc_objects", "count", 1000, {("f",): objects, ("g",): 10})
        export.profile("alloc_space", "bytes", 1000, {("f",): size * objects, ("g",): 10_000_000})
        return aggregate([export.request])["alloc"]

    small, large = (compare(it, it, LEAST).samples[0] - 10 for it in (allocated(10, 100_000), allocated(1_000_000, 7)))
    assert small == pytest.approx(100_000 * (1 - math.exp(-0.01))) and large == pytest.approx(7)


# --- noise ---


def test_noise_of_many_functions_is_no_change():
    """A thousand comparisons of equal profiles: no more are wrong than promised."""
    draw = random.Random(20)
    chances = {f"f{number}": 1 / (number + 1) for number in range(40)}
    wrong = sum(bool(compare(*(profile(drawn(chances, 2000, draw)) for _ in range(2)), 1).changes) for _ in range(400))
    assert wrong <= 400 * CERTAINTY * 3


def test_a_change_that_is_smaller_than_the_least_is_none():
    sides = [profile({"f": f, "g": 1_000_000}) for f in (1_000_000, 1_040_000)]
    assert names(compare(*sides, 1.05)) == [] and names(compare(*sides, 1.01)) == ["f"]


def test_functions_with_few_samples_are_not_compared():
    comparison = compare(profile({"f": 9, "g": 1000}), profile({"g": 1000}), LEAST)
    assert (comparison.compared, comparison.changes) == (2, [])  # g, and main with its callees


# --- change ---


def test_only_changes_are_named():
    """f's share grows, so all other shares shrink: that is no change of the other functions."""
    before = {"f": 40_000, "g": 30_000, "h": 20_000, "i": 10_000}
    (change,) = compare(profile(before), profile({**before, "f": 48_000}), LEAST).changes
    assert change.frame.name == "f" and change.relative == pytest.approx(0.2)


def calling(stacks):
    return aggregate([Message().profile("samples", "count", PERIOD, stacks).request])["cpu"]


SHARED = {("shared", "fast", "main"): 2000, ("shared", "slow", "main"): 2000, ("other", "main"): 4000}


@pytest.mark.parametrize("exposures", [None, (100, 100)], ids=["share", "time"])
def test_a_function_whose_callees_got_slower_is_named(exposures):
    """This holds also where the callee has other callers, and where the function has nothing else."""
    for before in (SHARED, {stack: count for stack, count in SHARED.items() if "shared" in stack}):
        after = {**before, ("shared", "slow", "main"): 4000}
        found = compare(calling(before), calling(after), LEAST, exposures).changes
        assert ("slow", "total") in {(it.frame.name, it.of) for it in found}
        assert "fast" not in {it.frame.name for it in found}


@pytest.mark.parametrize("exposures", [None, (1, 1)], ids=["share", "time"])
@pytest.mark.parametrize("leaf", ["Bf", "Zf"])
def test_a_leaf_of_the_same_size_hides_no_change(leaf, exposures):
    """One caller got slower by what the other got faster: their common callee has not changed."""
    before = {(leaf, "A", "main"): 1000, (leaf, "Bx", "main"): 1000, ("o", "main"): 5000}
    after = {(leaf, "A", "main"): 2000, (leaf, "Bx", "main"): 500, ("o", "main"): 5000}
    found = compare(calling(before), calling(after), LEAST, exposures).changes
    assert "Bx" in {it.frame.name for it in found}


@pytest.mark.parametrize("exposures", [None, (1, 1)], ids=["share", "time"])
def test_any_numbers_are_compared(exposures):
    """There is one sample beside thousands, and sums near the largest number that a file can have."""
    draw = random.Random(22)
    assert not any(visible for _, visible in compare(profile({"f": 1}), profile({"f": 1000}), LEAST, exposures).visible)
    for _ in range(50):
        sides = [calling({(f"f{draw.randrange(4)}", f"g{draw.randrange(3)}", "main"): draw.choice([1, 10**9, 9 * 10**14])
                          for _ in range(14)}) for _ in range(2)]
        compare(*sides, LEAST, exposures)


def test_callers_are_not_named_for_what_a_named_callee_explains():
    before = {("f", "g", "h", "main"): 4000, ("i", "h", "main"): 4000, ("j", "main"): 4000}
    found = compare(calling(before), calling({**before, ("f", "g", "h", "main"): 6000}), LEAST).changes
    assert [(it.frame.name, it.of) for it in found] == [("f", "self")]


@pytest.mark.parametrize("exposures", [None, (1, 1)], ids=["share", "time"])
def test_what_is_left_of_a_total_is_not_called_the_total(exposures):
    """h has more by its callee f, which is named for it, and by many others, each of which has too few samples to be named."""
    small = {("x", f"i{number}", "h", "main"): 6 for number in range(60)}
    stacks = {("x", "f", "h", "main"): 2000, ("x", "j", "main"): 20_000, **small}
    after = {**stacks, ("x", "f", "h", "main"): 6000, **{stack: 12 for stack in small}}
    before, after = calling(stacks), calling(after)
    found = [it for it in compare(before, after, LEAST, exposures).changes if it.of != "self"]
    assert {"total", "rest"} <= {it.of for it in found}
    for it in found:
        total = sum(value for stack, value in before.stacks.items() if it.frame in stack)
        assert (it.of == "total") == (it.before == pytest.approx(total)), it


def test_a_total_that_is_left_in_one_file_alone_is_not_called_the_total():
    """h calls f in the second file alone: what is left of h there is compared with the whole of h before."""
    small = {("x", f"i{number}", "h", "main"): 6 for number in range(60)}
    before = {("x", "j", "main"): 20_000, **small}
    after = {("x", "j", "main"): 20_000, ("x", "f", "h", "main"): 4000, **{stack: 12 for stack in small}}
    found = {it.frame.name: it for it in compare(calling(before), calling(after), LEAST, (1, 1)).changes}
    assert (found["f"].of, found["h"].of) == ("total", "rest")
    assert found["h"].after == pytest.approx(found["h"].before * 2)


def test_a_run_of_three_times_the_length_has_the_same_shares():
    """Totals are compared with the whole of their own file."""
    stacks = {("f", "h", "main"): 3000, ("g", "h", "main"): 2000, ("f", "i", "main"): 1000, ("j", "main"): 20_000}
    longer = calling({stack: 3 * count for stack, count in stacks.items()})
    assert compare(calling(stacks), longer, LEAST).changes == []


def test_callees_of_two_runs_of_one_build_are_no_change():
    """Chains of up to eight callers are drawn: the self times and the totals together are wrong no more often than
    promised."""
    draw = random.Random(21)
    chains = [tuple(f"f{number % (7 + depth)}_{depth}" for depth in range(1 + number % 8)) + ("main",) for number in range(40)]
    chances = {chain: 1 / (number + 1) for number, chain in enumerate(chains)}
    wrong = sum(bool(compare(*(calling(drawn(chances, 2000, draw)) for _ in range(2)), 1).changes) for _ in range(200))
    assert wrong <= 200 * CERTAINTY * 3


def test_the_smallest_change_that_would_be_named_is_named_as_often_as_is_said():
    draw = random.Random(22)
    least = visible(0.1, (5000, 5000), 4, is_rate=False, least=LEAST)
    odds = 0.1 / 0.9 * (1 + least)
    chances = {"f": 0.1, "g": 0.5, "h": 0.4}, {"f": odds, "g": 0.5 / 0.9, "h": 0.4 / 0.9}
    count = sum("f" in names(compare(*(profile(drawn(it, 5000, draw)) for it in chances), LEAST)) for _ in range(100))
    assert 65 <= count <= 95
    assert visible(0.01, (100, 100), 4, is_rate=False, least=LEAST) is None


def test_the_smallest_visible_change_is_printed(tmp_path):
    write(tmp_path / "a", {"f": 4000, "g": 4000})
    text = succeeds("diff", "a", "a", cwd=tmp_path).stdout
    assert re.fullmatch(r"\d+ % at 50 %, \d+ % at 10 %, \d+ % at 1 % of the total", text.splitlines()[-1])


def test_several_changes_are_named_the_largest_first():
    before = {"f": 40_000, "g": 30_000, "h": 20_000, "i": 100_000}
    found = compare(profile(before), profile({**before, "f": 60_000, "h": 10_000}), LEAST)
    assert names(found) == ["f", "h"]


def test_new_and_vanished_functions_are_changes(tmp_path):
    sides = {"a": {"old": 500, "f": 5000}, "b": {"new": 700, "f": 5000}}
    for name, counts in sides.items():
        write(tmp_path / name, counts)
    text = succeeds("diff", "a", "b", cwd=tmp_path).stdout
    assert builds.named(text) == ["new", "old"] and " new " in text and " gone " in text


def write(path, counts, seconds=0, module=""):
    stacks = {tuple(f"{module}{name}" for name in (function, "main")): count for function, count in counts.items()}
    export = Message().profile("samples", "count", PERIOD, stacks)
    export.scope.profiles[0].time_unix_nano = 1
    export.scope.profiles[0].duration_nano = int(seconds * 1e9)
    with open(path, "wb") as file:
        append_message(file, export.bytes())


def test_by_time_shows_a_change_that_shares_hide(tmp_path):
    """Everything doubles in the same time."""
    write(tmp_path / "a", {"f": 4000, "g": 2000}, seconds=100)
    write(tmp_path / "b", {"f": 8000, "g": 4000}, seconds=100)
    assert "no change: none of 3 functions" in succeeds("diff", "a", "b", cwd=tmp_path).stdout
    text = succeeds("diff", "--by", "time", "a", "b", cwd=tmp_path).stdout
    assert builds.named(text) == ["f", "g"] and "+100.0%" in text and "0.400 s/s" in text


def test_without_times_there_is_no_comparison_by_time(tmp_path):
    write(tmp_path / "a", {"f": 4000})
    done = otelprof("diff", "--by", "time", "a", "a", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "otelprof: a does not say how long it took: use --by cpu\n")


def test_a_program_whose_file_has_another_name_is_the_same_program(tmp_path):
    write(tmp_path / "a", {"f": 4000, "g": 4000}, module="app-1.0!")
    write(tmp_path / "b", {"f": 6000, "g": 4000}, module="app-1.1!")
    assert builds.named(succeeds("diff", "a", "b", cwd=tmp_path).stdout) == ["f"]


def test_the_table_fits_eighty_columns(tmp_path):
    draw = random.Random(1)
    for name in ("a", "b"):
        write(
            tmp_path / name, {f"function_{number}": draw.randrange(100, 100_000) for number in range(40)}, seconds=900
        )
    for by in ("cpu", "time"):
        text = succeeds("diff", "--by", by, "a", "b", cwd=tmp_path).stdout
        assert len(builds.named(text)) == 21 and max(map(len, text.splitlines())) <= 80


def test_errors_name_the_file(tmp_path):
    write(tmp_path / "a", {"f": 4000})
    (tmp_path / "bad").write_bytes(b"\x7fELF" * 9)
    assert "otelprof: bad holds no profiles" in otelprof("diff", "a", "bad", cwd=tmp_path).stderr
    assert (
        "a has no profile of kind heap; it has cpu" in otelprof("diff", "a", "a", "--kind", "heap", cwd=tmp_path).stderr
    )
    assert otelprof("diff", "a", "a", "--kind", "off_cpu", cwd=tmp_path).returncode == 2


# --- real programs ---


@pytest.mark.system
def test_a_function_that_got_slower_is_named_first(tmp_path):
    """The function is three times as slow: some 1,000 samples a run put that 10 standard errors off. `make test-diff`
    has 20 %, and noise."""
    same, changed = builds.build(tmp_path, "same", 100), builds.build(tmp_path, "changed", 300)
    before, after = (builds.profile(program, tmp_path / name, 24_000) for program, name in ((same, "a"), (changed, "b")))
    assert builds.named(builds.difference(before, after))[:1] == [builds.CHANGED]


# --- the page ---


@pytest.fixture
def page(browser, tmp_path):
    write(tmp_path / "a", {"hot": 4000, "cold": 3000, "same": 3000, "gone": 500})
    write(tmp_path / "b", {"hot": 6000, "cold": 3000, "same": 3050})
    done = succeeds("diff", "a", "b", "-o", "d.html", cwd=tmp_path)
    assert done.stderr == "otelprof: flame graph in d.html\n"
    return browser.open((tmp_path / "d.html").read_text())


@pytest.mark.parametrize("before, after, title", [
    ("one/a.otlp", "one/b.otlp", "a.otlp (A) and b.otlp (B)"),
    ("one/a.otlp", "two/a.otlp", "one/a.otlp (A) and two/a.otlp (B)"),
])
def test_the_title_of_the_page_has_no_more_folders_than_it_needs(tmp_path, before, after, title):
    """Others who are given the page need not see where the files were."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    write(tmp_path / before, {"hot": 4000})
    write(tmp_path / after, {"hot": 6000})
    succeeds("diff", tmp_path / before, tmp_path / after, "-o", "d.html", cwd=tmp_path)
    assert f"<title>{title}</title>" in (tmp_path / "d.html").read_text()


def saturation(colour):
    red, green, blue = (int(part) for part in colour[4:-1].split(", ")[:3])
    return red - blue, max(red, green, blue) - min(red, green, blue)


def test_the_page_colours_change_and_leaves_noise_grey(page):
    colours = {frame["name"]: saturation(frame["colour"]) for frame in page.frames()}
    assert set(colours) == {"all", "main", "hot", "cold", "same", "gone"}
    assert colours["hot"][0] > 40 and colours["gone"][0] < -40, "red is more, blue is less"
    assert colours["cold"][1] < 15 and colours["same"][1] < 15, "noise is grey"
    assert page.problems() == []


def test_the_page_has_both_values_of_a_frame(page):
    page.ask("[...document.querySelectorAll('.frame')].find(it => it.textContent === 'gone').focus()")
    assert "A 5.000 s, B 0.000 s" in page.text("#more-details") and "chance" not in page.text("#more-details")
    page.ask("[...document.querySelectorAll('.frame')].find(it => it.textContent === 'cold').focus()")
    assert "no change that is more than chance" in page.text("#more-details")


def test_the_page_has_the_own_seconds_of_b(browser, tmp_path):
    """Both are drawn at one total; the figures are those of the files."""
    write(tmp_path / "a", {"hot": 1000, "cold": 3000})
    write(tmp_path / "b", {"hot": 5000, "cold": 3000})
    succeeds("diff", "a", "b", "-o", "d.html", cwd=tmp_path)
    page = browser.open((tmp_path / "d.html").read_text())
    for name, figures in (("hot", "A 10.000 s, B 50.000 s"), ("cold", "A 30.000 s, B 30.000 s"), ("main", "A 40.000 s, B 80.000 s")):
        page.ask("tell([...shown.frames].findIndex(frame => data.frames[frame][0] === arguments[0]))", name)
        assert page.details()[2].startswith(figures)
    for control in ("#fold", "#only"):
        page.show_filter()
        assert not page.find(control).is_displayed(), "columns of a difference are of the whole tree"


@pytest.mark.parametrize("width, height", [(1280, 800), (1920, 1080), (390, 844)])
def test_the_page_begins_with_the_outcome(page, browser, tmp_path, width, height):
    page.resize(width, height)
    assert page.text("#about") == "2 functions changed by more than chance and 5 %"
    hint = page.find("#hint")
    assert "Red: more in B" in hint.text
    assert page.ask("return arguments[0].scrollWidth <= arguments[0].clientWidth && arguments[0].scrollHeight <= arguments[0].clientHeight + 1",
                    hint) or width < 1000
    write(tmp_path / "c", {"hot": 4010, "cold": 3000, "same": 3000, "gone": 500})
    succeeds("diff", "a", "c", "-o", "none.html", cwd=tmp_path)
    assert browser.open((tmp_path / "none.html").read_text()).text("#about").startswith("no change: none of ")
    assert str(tmp_path) not in (tmp_path / "none.html").read_text()


def test_the_page_lists_the_changes_and_finds_them(page):
    page.find("#other-view").click()
    rows = page.ask("return [...document.querySelector('#other tbody').rows].map(row => row.lastChild.textContent)")
    assert rows == ["hot", "gone"] and "A: 105.000 s" in page.text("#note")
    page.find("#other-view").click()
    page.ask("document.querySelectorAll('#legend button')[0].click()")
    assert {
        frame["name"]
        for frame in page.frames()
        if frame["colour"] == page.ask("return getComputedStyle(document.querySelector('.found')).backgroundColor")
    } == {"all", "main", "hot"}
