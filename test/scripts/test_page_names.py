"""Names of 200 to 5,000 letters read well in the graph, the list, the footer and the tooltip."""

import pytest
from long_names import NAMES, SHORT, named
from otelprof_lib.aggregate import aggregate
from otelprof_lib.flamegraph import page
from otelprof_lib.names import short_name
from test_page_layout import ON_SCREENS

pytestmark = pytest.mark.system


@pytest.fixture
def opened(browser, message, width, height):
    browser.resize(width, height)
    return browser.open(page("names", aggregate([named(message).request])))


@ON_SCREENS
def test_the_page_shortens_as_tables_do(opened, width, height):
    assert opened.ask("return data.frames.map(([name]) => [name, shortName(name)])") == [
        [name, short_name(name)] for name in opened.ask("return data.frames.map(([name]) => name)")]
    assert opened.problems() == []


@ON_SCREENS
def test_each_name_is_one_line_of_the_list_with_its_end(opened, width, height):
    if not opened.find("#list").is_displayed():
        opened.ask("switchList()")
    rows = opened.ask("""
        return [...document.querySelectorAll('#functions tbody tr')].map(row => [
            row.lastChild.querySelector('.head').textContent + row.lastChild.querySelector('.tail').textContent,
            row.offsetHeight, row.lastChild.querySelector('.tail').getBoundingClientRect().right, row.getBoundingClientRect().right])""")
    assert {name for name, *_ in rows} == {*SHORT.values(), "main"}
    heights = {height for _, height, _, _ in rows}
    assert len(heights) == 1 and heights.pop() < 40
    assert all(end <= right for *_, end, right in rows), "the end of each name is visible"
    assert opened.ask("return document.documentElement.scrollWidth") <= width


@ON_SCREENS
def test_the_footer_has_a_fixed_height_and_the_value_first(opened, width, height):
    heights = set()
    for place in range(len(NAMES)):
        opened.ask("tell(2 + arguments[0])", place)
        heights.add(opened.ask("return [document.querySelector('footer').offsetHeight, document.querySelector('#pane').clientHeight].join()"))
        value = opened.ask("const at = document.querySelector('#details .value').getBoundingClientRect(); return [at.left, at.right]")
        assert 0 <= value[0] and value[1] <= width
        assert opened.text("#details").startswith(f"{opened.ask('return withShare(shown.values[2 + arguments[0]])', place)}")
    assert len(heights) == 1, "the graph does not move"


@ON_SCREENS
def test_a_frame_shows_the_begin_and_the_end_of_a_name_and_the_tooltip_all(opened, width, height):
    for name in [*NAMES][:12]:
        opened.ask("zoomTo([...shown.frames].findIndex(frame => data.frames[frame][0] === arguments[0]))", name)
        text = opened.ask("return graph.drawn.get(graph.zoomed).textContent")
        assert text == SHORT[name] or ("\u2026" in text and text[-6:] == SHORT[name][-6:] and text[:4] == SHORT[name][:4]), text
        assert opened.ask("const box = graph.drawn.get(graph.zoomed); return box.scrollWidth <= box.clientWidth")
        opened.ask("showTip({clientX: 50, clientY: 120}, graph.zoomed)")
        assert opened.text("#tip strong")[:1500] == f"{name} (app)"[:1500]
        at = opened.find("#tip").rect
        assert at["x"] >= 0 and at["x"] + at["width"] <= width and at["y"] + at["height"] <= height
