"""Opens a page of ours in a real browser, and reads it as a user sees it."""

import os
import re
import shutil

import pytest

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)
FRAMES = """
return [...document.querySelectorAll('#chart .frame')].map(box => {
  const at = box.getBoundingClientRect();
  return {name: data.frames[shown.frames[box.node]][0], node: box.node, text: box.textContent,
          value: shown.values[box.node], label: box.ariaLabel, colour: getComputedStyle(box).backgroundColor,
          left: at.left, right: at.right, top: at.top, bottom: at.bottom, width: at.width};
});
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
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
    for flag in FLAGS + (f"--user-data-dir={tmp_path_factory.mktemp('browser')}",):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    running = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    yield running
    running.quit()


class Browser:
    """Is the page as a user sees it: what is drawn, and the keys and clicks that it takes."""

    def __init__(self, driver, path):
        self.driver = driver
        self.path = path
        self.driver.get_log("browser")

    def resize(self, width, height):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def prefer(self, scheme):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def open(self, text):
        self.path.write_text(text, encoding="utf-8")
        self.driver.get(self.path.as_uri())
        return self

    def ask(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def frames(self):
        """Returns the drawn frames, in preorder."""
        return sorted(self.ask(FRAMES), key=lambda frame: frame["node"])

    def list(self):
        """Returns [name, self, share, total, share] of each row of the list of functions, which it opens."""
        if not self.find("#list").is_displayed():
            self.find("#view").click()
        return self.ask(
            "return [...document.querySelector('#functions').tBodies[0].rows].map(row => "
            "[row.lastChild.textContent, ...[...row.cells].slice(0, 4).map(cell => cell.textContent)])"
        )

    def widths(self):
        return {frame["name"]: frame["width"] for frame in self.frames()}

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        return self.find(selector).text

    def click_frame(self, name):
        self.ask(
            "[...document.querySelectorAll('#chart .frame')].find(box =>"
            " data.frames[shown.frames[box.node]][0] === arguments[0]).click()", name,
        )

    def search(self, term):
        """Types a search, in place of the earlier text."""
        from selenium.webdriver.common.keys import Keys

        self.find("#term").send_keys(Keys.CONTROL + "a", Keys.NULL, Keys.DELETE, term)

    def details(self):
        """Returns [value, name with file, what else there is to say] of the frame in the footer."""
        return self.ask("return ['#details .value', '#details .cut', '#more-details'].map(it => document.querySelector(it).textContent)")

    def show_filter(self):
        """Opens the controls that choose samples."""
        if not self.find("#filter").is_displayed():
            self.find("#filter-view").click()

    def press(self, *keys):
        from selenium.webdriver.common.keys import Keys

        for key in keys:
            self.driver.switch_to.active_element.send_keys(getattr(Keys, key, key))

    def problems(self):
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture
def browser(driver, tmp_path):
    made = Browser(driver, tmp_path / "graph.html")
    made.resize(1400, 900)
    made.prefer("light")
    yield made
    made.ask("try { localStorage.clear() } catch {}")  # a scheme that the test chose


def rows_of(text):
    """Returns [name, self, share, total, share] of each row of one table by `otelprof top`."""
    pattern = re.compile(r"\s*(\S+ \S+) +(\S+%) +(\S+ \S+) +(\S+%) +(?:[\d.kMG]+ +[\d.kMG]+ +)?(.*)")
    return [[match[5], *match.groups()[:4]] for match in map(pattern.fullmatch, text.split("\n\n")[0].splitlines()[2:])]
