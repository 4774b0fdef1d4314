"""The page's graph comes first, on a laptop, a telephone and a large screen, in both schemes."""

import made_up_server as made_up
import pytest
from otelprof_lib.aggregate import aggregate
from otelprof_lib.flamegraph import page
from otelprof_lib.waits import with_wall

pytestmark = pytest.mark.system

SCREENS = {(1280, 800): 100, (390, 844): 200, (1920, 1080): 100}  # the most pixels above the graph
ON_SCREENS = pytest.mark.parametrize("width, height", SCREENS)
IN_SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
BOX = "const at = document.querySelector(arguments[0]).getBoundingClientRect(); return [at.left, at.top, at.right, at.bottom]"
ABOUT = {"text": "shop (process 41) \u00b7 90.0 s from 2023-11-14 22:13:20", "more": "/usr/bin/shop"}


def wall(message):
    """Returns the six kinds of profile of a server, the widest row of controls that there is."""
    return with_wall(aggregate([made_up.shop(message).request]))


@pytest.fixture
def opened(browser, message, width, height):
    browser.resize(width, height)
    return browser.open(page("a shop", wall(message), about=ABOUT))


@ON_SCREENS
@IN_SCHEMES
def test_the_graph_comes_first(browser, message, width, height, scheme):
    browser.prefer(scheme)
    browser.resize(width, height)
    browser.open(page("a shop", wall(message), about=ABOUT))
    assert browser.ask(BOX, "#chart")[1] <= SCREENS[width, height]
    assert browser.ask("return document.documentElement.scrollWidth") <= width
    assert browser.ask("return document.documentElement.scrollHeight") <= height, "the controls and the footer stay"
    for selector in ("#title", "#about", "#profiles", "#term", "#view", "#legend", "#details"):
        assert browser.find(selector).is_displayed(), selector
    assert browser.problems() == []


@ON_SCREENS
@IN_SCHEMES
def test_the_state_of_a_program_that_is_followed_has_room(browser, message, width, height, scheme):
    browser.prefer(scheme)
    browser.resize(width, height)
    browser.open(page("a shop", wall(message), about=ABOUT))
    browser.ask("element('live').hidden = false; element('state').className = 'running';"
                "element('state').textContent = 'running, followed for 1,016.4 s, last export 10.6 s ago'")
    assert browser.ask("return document.documentElement.scrollWidth") <= width
    assert browser.ask(BOX, "#chart")[1] <= SCREENS[width, height]
    for selector in ("#state", "#pause", "#scheme", "#keys"):
        at = browser.ask(BOX, selector)
        assert browser.find(selector).is_displayed() and at[0] >= 0 and at[2] <= width and at[3] <= SCREENS[width, height], selector


@ON_SCREENS
def test_above_the_graph_are_two_rows_of_controls(opened, width, height):
    """A telephone has three: the search has one of its own."""
    tops = opened.ask("return [...document.querySelectorAll('#profiles > *, #tools input, #tools button')]"
                      ".filter(it => it.offsetParent).map(it => Math.round(it.getBoundingClientRect().top / 16))")
    assert len(set(tops)) == (3 if width < 640 else 2), tops


@ON_SCREENS
def test_filters_stand_behind_one_button(opened, width, height):
    for selector in ("#process", "#thread", "#key", "#value", "#idle"):
        assert not opened.find(selector).is_displayed(), selector
    opened.find("#filter-view").click()
    assert opened.find("#thread").is_displayed() and opened.find("#idle").is_displayed() and opened.find("#key").is_displayed()
    opened.find("#idle").click()
    opened.find("#filter-view").click()
    assert not opened.find("#idle").is_displayed() and opened.text("#filter-view") == "filter: 34.4%"


@ON_SCREENS
def test_the_list_is_beside_the_graph_where_there_is_room(opened, width, height):
    is_shown = opened.find("#list").is_displayed()
    assert is_shown == (width >= 1600), "on a large screen from the beginning"
    if not is_shown:
        opened.ask("element('view').click()")
    at = opened.ask(BOX, "#list")
    assert at[2] - at[0] >= 300 and at[2] <= width and at[3] <= height
    if width >= 1000:
        graph = opened.ask(BOX, "#chart")
        assert graph[2] <= at[0] and graph[2] - graph[0] > 500
    else:
        assert not opened.find("#chart").is_displayed()
    opened.ask("element('view').click()")
    assert not opened.find("#list").is_displayed() and opened.find("#chart").is_displayed()
    assert opened.ask(BOX, "#chart .frame")[2] > width - 60, "the graph takes the room"


@ON_SCREENS
def test_the_list_keeps_its_place_when_a_view_is_chosen(opened, width, height):
    opened.ask("isListWanted = true; showList(); redraw(); look('sandwich-view')")
    assert opened.find("#sandwich").is_displayed()
    assert opened.find("#list").is_displayed() == (width >= 1000)


@ON_SCREENS
def test_the_page_keeps_its_controls_while_a_deep_graph_scrolls(browser, message, width, height):
    browser.resize(width, height)
    request = message().profile("samples", "count", 10**9, {tuple(f"f{depth}" for depth in range(200)): 1}).request
    browser.open(page("deep", aggregate([request])))
    before = browser.ask(BOX, "#term")
    browser.ask("document.querySelector('#pane').scrollTop = 2000")
    assert browser.ask(BOX, "#term") == before and browser.ask(BOX, "#chart")[1] < -1500
    assert browser.ask(BOX, "#details")[3] <= height
