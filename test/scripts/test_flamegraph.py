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
    assert opened.find_element("id", "found").text == "found: 0.600 s, 60.00 %"
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

    opened.find_element("id", "reset").click()
    for _ in range(50):
        width = {title.split(" (")[0]: w for title, w, _ in frames(opened)}
        if "hot" in width and width["hot"] == pytest.approx(2 * width["cold"], rel=0.02):
            break
        opened.execute_async_script("setTimeout(arguments[0], 100)")
    assert width["hot"] == pytest.approx(2 * width["cold"], rel=0.02)

    kinds = opened.find_element("id", "kind")
    assert [option.text for option in kinds.find_elements("tag name", "option")] == [
        "CPU time", "live heap",
    ]
    opened.execute_script(
        "const k = document.getElementById('kind'); k.value = '1';"
        "k.dispatchEvent(new Event('change'))"
    )
    assert {title.split(" (")[0] for title, _, _ in frames(opened)} == {"all", "main", "keeper"}


def test_search_takes_characters_of_expressions(opened):
    """C++ names are full of them: operator*, operator[](int)."""
    box = opened.find_element("id", "term")
    box.send_keys("</SCRIPT><B>X</B>&")
    box.submit()
    assert opened.find_element("id", "found").text == "found: 0.100 s, 10.00 %"
    opened.find_element("id", "clear").click()
    box.send_keys("hot[(*")
    box.submit()
    assert opened.find_element("id", "found").text == "found: 0.000 s, 0.00 %"
    assert [entry for entry in opened.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_page_without_samples_says_so(browser, tmp_path):
    path = tmp_path / "empty.html"
    path.write_text(page("empty", {}), encoding="utf-8")
    browser.get(path.as_uri())
    assert browser.find_element("id", "chart").text == "no samples"
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_marks_in_names_stay(message):
    request = message().profile("samples", "count", 1, {("@DATA@@D3@",): 1}).request
    text = page("@CSS@", aggregate([request]))
    assert "<title>@CSS@</title>" in text and '"name":"@DATA@@D3@"' in text


def test_the_deepest_stacks_open(browser, tmp_path, message):
    deep = tuple(f"f{i}" for i in range(1024))
    request = message().profile("samples", "count", 10**9, {deep: 1}).request
    path = tmp_path / "deep.html"
    path.write_text(page("deep", aggregate([request])), encoding="utf-8")
    browser.get(path.as_uri())
    assert len(frames(browser)) == 1025
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_deep_stacks_do_not_break_the_page(message):
    deep = tuple(f"f{i}" for i in range(3000))
    request = message().profile("samples", "count", 10**9, {deep: 1}).request
    assert "f2999" in page("deep", aggregate([request]))
