"""Each control of the page works on a laptop, a telephone and a large screen."""

import json
import re

import pytest
from conftest import Code
from otelprof_lib.aggregate import aggregate
from otelprof_lib.flamegraph import page
from otelprof_lib.languages import only
from otelprof_lib.report import report
from browser import rows_of
from test_page_layout import IN_SCHEMES, ON_SCREENS, wall

pytestmark = pytest.mark.system

STACKS = {("hot", "step_one", "run", "main"): 60, ("cold", "step_one", "run", "main"): 20, ("hot", "step_two", "run", "main"): 10,
          ("hot", "main"): 5, ("tiny", "main"): 5}


@pytest.fixture
def opened(browser, message, width, height):
    browser.resize(width, height)
    return browser.open(page("controls", aggregate([message().profile("samples", "count", 10_000_000, STACKS).request])))


def node_of(browser, *path):
    """Returns the node at the end of a path of names from the root."""
    return browser.ask("return nodeAt(arguments[0].map(name => keyOf(data.frames.findIndex(([it]) => it === name))))", path)


def pointed(browser, node):
    """Moves the pointer onto a frame, and away from it before."""
    from selenium.webdriver.common.action_chains import ActionChains

    chain = ActionChains(browser.driver)
    chain.move_to_element(browser.find("#title")).move_to_element(browser.ask("return graph.drawn.get(arguments[0])", node)).perform()


def rights(browser, node, title):
    """Clicks an entry of a frame's menu, which a right click opens."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser.driver).context_click(browser.ask("return graph.drawn.get(arguments[0])", node)).perform()
    next(it for it in browser.driver.find_elements("css selector", "#menu button") if it.text == title).click()


# --- the tooltip ---


@ON_SCREENS
@IN_SCHEMES
def test_a_tooltip_stands_at_the_pointer(browser, message, width, height, scheme):
    browser.prefer(scheme)
    browser.resize(width, height)
    rows = {(Code("native", "hot", "/home/me/src/app/work.cc", "app", line=7), "main"): 60, ("cold", "main"): 40}
    export = message().profile("samples", "count", 10_000_000, rows)
    for function in export.dictionary.function_table:
        function.start_line = 5
    browser.open(page("tip", aggregate([export.request])))
    node = node_of(browser, "main", "hot")
    pointed(browser, node)
    tip = browser.find("#tip")
    assert tip.is_displayed()
    assert tip.text.splitlines() == ["hot (app)", "total 0.600 s, 60.0%", "self 0.600 s, 60.0%", "samples 60", "file app/work.cc:5"]
    at = tip.rect
    assert at["x"] + at["width"] <= width and at["y"] + at["height"] <= height
    assert "/home/me" not in browser.driver.page_source, "others need not see where the sources were"
    browser.ask("choose(arguments[0])", node_of(browser, "main"))
    pointed(browser, node)
    assert "of the zoom 60.0%" in tip.text
    pointed(browser, 0)
    browser.ask("document.querySelector('#chart').dispatchEvent(new PointerEvent('pointerleave'))")
    assert not tip.is_displayed() and browser.problems() == []


@ON_SCREENS
def test_marks_explain_themselves_where_they_stand(browser, message, width, height):
    browser.resize(width, height)
    stacks = {("libc.so.6!", "main"): 5, ("cc1plus!", "main"): 4, ("[anonymous]", "main"): 3, ("libotelprof.so!", "main"): 1}
    export = message().profile("samples", "count", 10_000_000, stacks)
    cut = export.dictionary.attribute_table.add(key_strindex=export.string("otelprof.stack.truncated"))
    cut.value.bool_value = True
    export.scope.profiles[0].samples[0].attribute_indices.append(1)
    browser.open(page("marks", aggregate([export.request])))
    for name, remedy in (("[libc.so.6]", "apt install libc6-dbg"), ("[cc1plus]", "debug symbols"), ("[anonymous]", "JIT compiler"),
                         ("[truncated]", "OTEL_PROFILER_MAX_STACK_DEPTH")):
        browser.ask("const node = [...shown.frames].findIndex(frame => data.frames[frame][0] === arguments[0]); tell(node); "
                    "showTip({clientX: 9, clientY: 99}, node)", name)
        assert remedy in browser.text("#more-details") and remedy in browser.text("#tip"), name
    browser.ask("tell([...shown.frames].findIndex(frame => data.frames[frame][0] === 'main'))")
    assert browser.ask("return element('more-details').textContent") == ""


# --- search ---


@ON_SCREENS
def test_matches_are_visited_one_after_the_other(opened, width, height):
    opened.search("hot")
    assert opened.text("#match") == "3 matches" and opened.text("#found") == "found: 0.750 s, 75.0%"
    seen = []
    for step in ("next", "next", "next", "next", "previous", "previous"):
        opened.find(f"#{step}").click()
        seen.append(opened.text("#match"))
        assert opened.text("#details").split("hot")[0].startswith(opened.ask("return readable(shown.values[matches[matchAt]])"))
        assert opened.ask("return [...document.querySelectorAll('.current')].map(box => box.node)") == [opened.ask("return matches[matchAt]")]
    assert seen == ["1 of 3", "2 of 3", "3 of 3", "1 of 3", "3 of 3", "2 of 3"]
    opened.find("#term").send_keys("\ue007")  # Enter
    assert opened.text("#match") == "3 of 3"
    opened.search("")
    assert not opened.find("#next").is_displayed() and opened.text("#match") == ""


@ON_SCREENS
def test_a_match_too_narrow_to_see_is_zoomed_into_view(browser, message, width, height):
    browser.resize(width, height)
    stacks = {("leaf", *(f"f{depth}" for depth in range(9)), "rare", "main"): 1, ("busy", "main"): 100_000}
    browser.open(page("narrow", aggregate([message().profile("samples", "count", 10**9, stacks).request])))
    browser.search("leaf")
    browser.press("ENTER")
    box = browser.ask("const at = graph.drawn.get(matches[0]).getBoundingClientRect(); return at.width")
    assert box >= 40 and browser.text("#match") == "1 of 1" and "leaf" in browser.text("#details")


@ON_SCREENS
def test_a_search_filters_the_list(opened, width, height):
    if not opened.find("#list").is_displayed():
        opened.ask("switchList()")
    assert opened.text("#counted") == "7 functions"
    opened.search("step")
    assert [row[0] for row in opened.list()] == ["step_one", "step_two"] and opened.text("#counted") == "2 of 7 functions"
    opened.search("")
    assert len(opened.list()) == 7


@ON_SCREENS
def test_a_search_takes_regular_expressions_on_request(opened, width, height):
    opened.search("^(hot|cold)$")
    assert opened.text("#found") == "found: 0.000 s, 0.0%"
    opened.find("#expression").click()
    assert opened.text("#found") == "found: 0.950 s, 95.0%" and opened.find("#expression").get_attribute("aria-pressed") == "true"
    opened.search("(")
    assert "Invalid regular expression" in opened.text("#found") and opened.text("#match") == ""
    opened.find("#expression").click()
    assert opened.text("#found") == "found: 0.000 s, 0.0%" and opened.problems() == []


@ON_SCREENS
def test_the_middle_is_the_function_that_was_searched_or_clicked(opened, width, height):
    opened.search("step")
    opened.ask("look('sandwich-view')")
    assert opened.text("#middle").startswith("step_one: 0.800 s")
    opened.ask("look(); searchName(data.frames.findIndex(([name]) => name === 'cold')); look('sandwich-view')")
    assert opened.text("#middle").startswith("cold: 0.200 s")


def test_the_list_says_how_many_functions_it_lacks(browser, message):
    stacks = {(f"f{number}", "main"): 1 for number in range(2309)}
    browser.open(page("many", aggregate([message().profile("samples", "count", 10**9, stacks).request])))
    assert len(browser.list()) == 500 and browser.text("#counted") == "500 of 2,310 functions"
    browser.search("f230")
    assert browser.text("#counted") == "10 of 2,310 functions"


# --- the graph ---


@ON_SCREENS
@IN_SCHEMES
def test_ancestors_are_dimmed(browser, message, width, height, scheme):
    browser.prefer(scheme)
    browser.resize(width, height)
    browser.open(page("dim", aggregate([message().profile("samples", "count", 10**9, STACKS).request])))
    before = {frame["name"]: frame["colour"] for frame in browser.frames()}
    browser.click_frame("step_one")
    after = {frame["name"]: frame["colour"] for frame in browser.frames()}
    assert len({after[name] for name in ("all", "main", "run")}) == 1 and after["main"] != before["main"]
    assert after["step_one"] == before["step_one"]


@ON_SCREENS
def test_a_stack_is_removed_and_put_back(opened, width, height):
    rights(opened, node_of(opened, "main", "run", "step_one"), "remove this stack")
    assert opened.ask("return shown.headline") == "CPU time: 0.200 s" and "step_one" not in opened.widths()
    assert opened.text("#filter-view") == "filter: 20.0%"
    assert dict(map(lambda row: row[:2], opened.list()))["hot"] == "0.150 s"
    opened.show_filter()
    opened.find("#put-back").click()
    assert opened.ask("return shown.headline") == "CPU time: 1.000 s" and not opened.find("#put-back").is_displayed()


@ON_SCREENS
def test_alt_click_removes_a_stack(opened, width, height):
    opened.ask("graph.drawn.get(arguments[0]).dispatchEvent(new MouseEvent('click', {altKey: true, bubbles: true}))", node_of(opened, "main", "run"))
    assert set(opened.widths()) == {"all", "main", "hot", "tiny"} and opened.ask("return graph.zoomed") == 0


@ON_SCREENS
def test_the_graph_is_turned_over(opened, width, height):
    tops = {frame["name"]: frame["top"] for frame in opened.frames()}
    assert tops["all"] < tops["main"] < tops["run"]
    opened.ask("element('flip').click()")
    tops = {frame["name"]: frame["top"] for frame in opened.frames()}
    assert tops["all"] > tops["main"] > tops["run"]
    opened.ask("document.querySelector('.frame[tabindex=\"0\"]').focus()")
    opened.press("ARROW_UP")
    assert opened.ask("return data.frames[shown.frames[document.activeElement.node]][0]") == "main"


@ON_SCREENS
def test_bars_show_shares_in_the_list(opened, width, height):
    opened.list()
    bars = opened.ask("return [...document.querySelectorAll('#functions tbody tr')].map(row => [row.cells[0].style.getPropertyValue('--part'),"
                      " row.cells[2].style.getPropertyValue('--part'), getComputedStyle(row.cells[0]).backgroundImage])")
    assert [bar[:2] for bar in bars][0] == ["75.00%", "75.00%"] and "linear-gradient" in bars[0][2] and "75%" in bars[0][2]


@ON_SCREENS
def test_recursion_is_folded(browser, message, width, height):
    browser.resize(width, height)
    stacks = {("leaf", *["down"] * 9, "main"): 5, (*["down"] * 4, "main"): 3, ("down", "up", "down", "main"): 2}
    profiles = aggregate([message().profile("samples", "count", 10**9, stacks).request])
    browser.open(page("recursive", profiles))
    browser.show_filter()
    browser.find("#fold").click()
    frames = {(frame["name"], frame["text"]): frame["value"] for frame in browser.frames()}
    assert frames["down", "down \u00d79"] == 10 and frames["up", "up"] == 2 and frames["leaf", "leaf"] == 5
    browser.find("#fold").click()
    assert len(browser.frames()) > 10
    browser.find("#fold").click()
    assert browser.list() == rows_of(report(profiles, 99)), "the sums of functions stay"


@ON_SCREENS
def test_functions_of_python_alone_are_shown_as_the_command_shows_them(browser, message, width, height):
    browser.resize(width, height)
    python = [Code("cpython", name, "/app/shop.py") for name in ("main", "serve", "render")]
    native = [Code("native", name, "", "python3.11") for name in ("_PyEval_EvalFrameDefault", "_start")]
    stacks = {(native[0], python[2], native[0], python[1], python[0], *native[::1]): 50, (native[0], python[1], python[0], native[1]): 30,
              (native[1],): 20}
    profiles = aggregate([message().profile("samples", "count", 10_000_000, stacks).request])
    browser.open(page("python", profiles))
    browser.show_filter()
    assert browser.text("#only") == "Python only"
    browser.find("#only").click()
    alone, _ = only(profiles, "python")
    assert set(browser.widths()) == {"all", "shop.main", "shop.serve", "shop.render", "[no Python]"}
    browser.find("#only").click()
    assert "_start" in browser.widths()
    browser.find("#only").click()
    assert browser.list() == rows_of(report(alone, 99))


def test_a_native_program_has_no_button_for_a_language(opened_native):
    opened_native.show_filter()
    assert not opened_native.find("#only").is_displayed()


@pytest.fixture
def opened_native(browser, message):
    return browser.open(page("native", aggregate([message().profile("samples", "count", 10**9, STACKS).request])))


# --- numbers ---


@ON_SCREENS
def test_shares_of_threads_are_of_the_kind_that_is_shown(browser, message, width, height):
    browser.resize(width, height)
    profiles = wall(message)
    browser.open(page("shares", profiles))
    for place, kind in enumerate(profiles):
        browser.ask("document.querySelectorAll('#profiles button')[arguments[0]].click()", place)
        total = profiles[kind].total
        shares = browser.ask("return [...element('thread').options].slice(1).map(option => [option.textContent, option.pairs])")
        assert shares
        for text, pairs in shares:
            chosen = sum(value for (_, labels), value in profiles[kind].samples.items() if {tuple(pair) for pair in pairs} <= set(labels))
            assert abs(float(re.search(r"([\d.]+)%$", text)[1]) - 100 * chosen / total) < 0.06, (kind, text)


@ON_SCREENS
def test_a_filter_never_switches_the_kind(browser, message, width, height):
    browser.resize(width, height)
    rows = [(("f", "main"), 3, None, {"thread.name": "a"}), (("g", "main"), 1, None, {"thread.name": "b"})]
    export = message().labelled("samples", "count", 10**9, rows).labelled("alloc_space", "bytes", 1, rows[:1])
    browser.open(page("kinds", aggregate([export.request])))
    browser.ask("document.querySelectorAll('#profiles button')[1].click()")
    browser.ask("element('key').value = 'thread.name'; element('value').value = 'b'; filter()")
    assert browser.ask("return shown.headline") == "allocated: 0.0 B" and browser.find("#nothing").is_displayed()
    browser.ask("element('value').value = 'a'; filter()")
    assert browser.ask("return shown.headline") == "allocated: 3.0 B" and not browser.find("#nothing").is_displayed()
    assert browser.problems() == []


# --- what goes out of the page ---


@ON_SCREENS
def test_a_name_is_copied(opened, width, height):
    opened.ask("window.copied = []; document.addEventListener('copy', () => copied.push(document.activeElement.value ?? String(getSelection())));"
               "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { copied.push(text); }}})")
    rights(opened, node_of(opened, "main", "run", "step_one", "cold"), "copy the name")
    assert opened.ask("return copied") == ["cold"]


@ON_SCREENS
def test_the_page_is_saved_for_other_programs(opened, width, height):
    import pprof_pb2

    saved = json.loads(opened.ask("return asSpeedscope()"))
    (profile,) = saved["profiles"]
    found = {tuple(saved["shared"]["frames"][at]["name"] for at in reversed(stack)): round(100 * weight)
             for stack, weight in zip(profile["samples"], profile["weights"])}
    assert found == STACKS and profile["unit"] == "seconds"
    read = pprof_pb2.Profile.FromString(bytes(opened.ask("return [...asPprof()]")))
    names = {it.id: read.string_table[it.name] for it in read.function}
    locations = {it.id: names[it.line[0].function_id] for it in read.location}
    assert {tuple(locations[at] for at in it.location_id): round(it.value[-1] / 1e7) for it in read.sample} == STACKS
    assert [read.string_table[it.unit] for it in read.sample_type] == ["nanoseconds"]
    assert sorted(opened.ask("return asCollapsed()").splitlines())[0] == "main;hot 50000000"
    opened.ask("window.saved = []; HTMLAnchorElement.prototype.click = function () { saved.push(this.download); }")
    for entry in range(3):
        opened.ask("element('save').click()")
        opened.driver.find_elements("css selector", "#save-menu button")[entry].click()
    assert opened.ask("return saved") == ["controls.cpu.speedscope.json", "controls.cpu.pb", "controls.cpu.collapsed.txt"]
    assert opened.problems() == []


# --- the address, and the scheme ---


@ON_SCREENS
def test_the_address_leads_to_the_same_picture(browser, message, width, height):
    browser.resize(width, height)
    browser.open(page("address", wall(message)))
    browser.ask("document.querySelectorAll('#profiles button')[2].click()")
    browser.ask("element('key').value = 'thread.name'; offerValues(); element('value').value = 'worker-1'; filter()")
    browser.search("serve")
    browser.ask("element('flip').click(); element('fold').click(); choose(2)")
    seen = "return [shown.headline, graph.zoomed, graph.isUpward, isFolded, element('found').textContent, [...shown.frames].map(nameOf)]"
    before, address = browser.ask(seen), browser.driver.current_url
    assert "#" in address and before[1] == 2
    browser.driver.get("about:blank")
    browser.driver.get(address)
    assert browser.ask(seen) == before and browser.problems() == []


@ON_SCREENS
def test_back_leads_to_the_picture_before(opened, width, height):
    for path in (["main", "run"], ["main", "run", "step_one"]):  # real clicks: Back skips what no user did
        opened.ask("return graph.drawn.get(arguments[0])", node_of(opened, *path)).click()
    zoomed = "return data.frames[shown.frames[graph.zoomed]][0]"
    assert opened.ask(zoomed) == "step_one"
    opened.driver.back()
    assert opened.ask(zoomed) == "run"
    opened.driver.back()
    assert opened.ask(zoomed) == "all"
    opened.driver.forward()
    assert opened.ask(zoomed) == "run" and opened.problems() == []


@pytest.mark.parametrize("address", ["#zoom=99999.x", "#kind=__proto__&view=constructor&list=7", "#search=%3Cimg%20src=x%20onerror=hit=1%3E",
                                     "#label=no&value=no&process=%7B%7D&thread=%5B1%5D", "#only=klingon&function=zz&picked=1", "#%%%"])
def test_an_address_of_a_stranger_does_no_harm(browser, message, address):
    browser.path.write_text(page("stranger", wall(message)))
    browser.driver.get("about:blank")
    browser.driver.get(browser.path.as_uri() + address)
    assert len(browser.frames()) > 3 and browser.ask("return window.hit === undefined && !document.querySelector('img')")
    assert browser.problems() == []


def test_the_scheme_is_remembered(opened_native):
    opened_native.find("#scheme").click()
    opened_native.driver.refresh()
    assert opened_native.ask("return document.documentElement.dataset.scheme") == "dark"
    opened_native.find("#scheme").click()
    opened_native.driver.refresh()
    assert opened_native.ask("return document.documentElement.dataset.scheme") == "light"
    opened_native.ask("localStorage.clear()")


def test_arrows_move_at_once(opened_native):
    name = "return data.frames[shown.frames[document.activeElement.node]][0]"
    opened_native.press("ARROW_DOWN")
    assert opened_native.ask(name) == "all"
    opened_native.press("ARROW_DOWN")
    assert opened_native.ask(name) == "main"


def test_keys_visit_matches(opened_native):
    opened_native.search("hot")
    opened_native.ask("element('term').blur()")
    opened_native.press("n", "n", "N")
    assert opened_native.text("#match") == "1 of 3"
