"""The flame graph's page, in a real browser without a network."""

import os
import shutil

import pytest
from otelprof_lib.aggregate import aggregate
from otelprof_lib.flamegraph import page

NASTY = "</script><b>x</b>&\u2028\"'"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1200,900",
)


@pytest.fixture
def browser(tmp_path):
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        webdriver = None
    if not webdriver or not shutil.which("chromium") or not shutil.which("chromedriver"):
        if os.environ.get("CI") == "true":
            pytest.fail("chromium, chromium-driver or python3-selenium is missing")
        pytest.skip("chromium, chromium-driver or python3-selenium is missing")
    options = webdriver.ChromeOptions()
    for flag in FLAGS + (f"--user-data-dir={tmp_path / 'browser'}",):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(
        service=Service(shutil.which("chromedriver")), options=options
    )
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, tmp_path, message):
    request = (
        message()
        .profile("samples", "count", 10_000_000,
                 {("hot", "middle", "main"): 60, ("cold", "middle", "main"): 30, (NASTY, "main"): 10})
        .profile("inuse_space", "bytes", 1, {("keeper", "main"): 4096})
        .request
    )
    path = tmp_path / "graph.html"
    path.write_text(page("a <title> & more", aggregate([request])), encoding="utf-8")
    browser.get(path.as_uri())
    return browser


def frames(browser):
    """Names of the frames that are drawn, with their widths."""
    return browser.execute_script(
        "return [...document.querySelectorAll('#chart g')].filter(g => g.getAttribute('width') > 0)"
        ".map(g => [g.querySelector('title').textContent, +g.getAttribute('width'),"
        " getComputedStyle(g.querySelector('rect')).fill])"
    )


def test_all_frames_are_drawn(opened):
    names = {title.split(" (")[0]: width for title, width, _ in frames(opened)}
    assert set(names) == {"all", "main", "middle", "hot", "cold", NASTY}
    assert names["hot"] == pytest.approx(2 * names["cold"], rel=0.02)
    assert [entry for entry in opened.get_log("browser") if entry["level"] == "SEVERE"] == []
    assert opened.find_elements("css selector", "b") == [], "no markup from names"
    assert opened.title == "a <title> & more"


def test_nothing_is_fetched(opened):
    fetched = opened.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert fetched == []


def test_search_zoom_and_kinds(opened):
    before = {title: fill for title, _, fill in frames(opened)}
    box = opened.find_element("id", "term")
    box.send_keys("hot")
    box.submit()
    after = {title: fill for title, _, fill in frames(opened)}
    changed = [title.split(" (")[0] for title in before if before[title] != after[title]]
    assert changed == ["hot"]
    opened.find_element("id", "clear").click()

    opened.execute_script(
        "[...document.querySelectorAll('#chart g')].find(g =>"
        " g.querySelector('title').textContent.startsWith('cold'))"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    width = {}
    for _ in range(50):  # the zoom is animated
        width = {title.split(" (")[0]: w for title, w, _ in frames(opened)}
        if "hot" not in width and abs(width["cold"] - width["all"]) < 1:
            break
        opened.execute_async_script("setTimeout(arguments[0], 100)")
    assert "hot" not in width and width["cold"] == pytest.approx(width["all"], rel=0.01)

    kinds = opened.find_element("id", "kind")
    assert [option.text for option in kinds.find_elements("tag name", "option")] == [
        "CPU time", "live heap",
    ]
    opened.execute_script(
        "const k = document.getElementById('kind'); k.value = '1';"
        "k.dispatchEvent(new Event('change'))"
    )
    assert {title.split(" (")[0] for title, _, _ in frames(opened)} == {"all", "main", "keeper"}


def test_deep_stacks_do_not_break_the_page(message):
    deep = tuple(f"f{i}" for i in range(3000))
    request = message().profile("samples", "count", 10**9, {deep: 1}).request
    assert "f2999" in page("deep", aggregate([request]))
