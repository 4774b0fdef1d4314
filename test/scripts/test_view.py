"""`otelprof view` serves a page on loopback, each of whose controls works in a real browser."""

import re
import stat
import types
from pathlib import Path

import pytest
from many_stacks import write_into
from otelprof_lib.about import About
from otelprof_lib.formats import readable
from otelprof_lib.page_server import until_ctrl_c
from served import described, serving
from waiting import TIMEOUT_S, eventually
from made_up_server import shop

pytestmark = pytest.mark.system

NASTY = ("</script><b>x</b>", "\"'><img src=x onerror='window.hit = 1'>", "\x1b[2J\x00\n", "\u202egnp.exe", "${window.hit = 1}")
SOURCE = "int main(void) {\n    hot();\n\tcold(); // <b>\u202e</b>\n    return 0;\n}\n"


def wait_for(browser, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser.driver, TIMEOUT_S).until(lambda _: browser.ask(f"return {condition}"))


def opened(browser, served):
    browser.driver.get(served.url)
    wait_for(browser, "document.querySelectorAll('#chart .frame').length > 0")
    return browser


def choose(browser, name, text):
    from selenium.webdriver.support.select import Select

    browser.show_filter()
    picker = Select(browser.find(f"#{name}"))
    (place,) = [at for at, option in enumerate(picker.options) if option.text.strip().startswith(text)]
    picker.select_by_index(place)


def set_process(export, name, pid):
    resource = export.request.resource_profiles[0].resource
    for key, value in (("process.executable.name", name), ("process.pid", pid)):
        attribute = resource.attributes.add(key=key)
        setattr(attribute.value, "int_value" if isinstance(value, int) else "string_value", value)
    for profile in export.scope.profiles:
        profile.time_unix_nano, profile.duration_nano = 1_700_000_000 * 10**9, 90 * 10**9
    return export


def write(path, *exports):
    path.write_bytes(b"".join(len(data).to_bytes(4, "big") + data for data in (export.bytes() for export in exports)))


def two_processes(message, folder):
    """Returns shop with its threads, and a process with source lines and unusable names."""
    source = folder / "main.c"
    source.write_text(SOURCE)
    other = message("two")
    rows = [(("app!hot", "app!main"), 300, None, {"thread.name": "main", "thread.id": 1})]
    rows += [((f"app!{name}", "app!main"), 20, None, {"thread.name": name, "thread.id": 2}) for name in NASTY]
    other.labelled("samples", "count", 10_000_000, rows)
    functions = other.dictionary.function_table
    for place, function in enumerate(functions):
        if other.dictionary.string_table[function.name_strindex] == "main":
            functions[place].filename_strindex = other.string(str(source))
    for location in other.dictionary.location_table[1:]:
        location.lines[0].line = 2
    write(folder / "two.otlp", set_process(shop(message), "shop", 41), set_process(other, "app", 42))
    return "two.otlp"


@pytest.fixture
def served(message, tmp_path):
    with serving("view", "--no-open", two_processes(message, tmp_path), cwd=tmp_path) as found:
        yield found


@pytest.fixture
def page(browser, served):
    return opened(browser, served)


# --- the page's contents ---


def test_a_newcomer_sees_the_subject_of_the_page(page):
    assert page.text("#title") == page.driver.title == "two.otlp"
    assert page.text("#about").startswith("shop (process 41), app (process 42) \u00b7 90.0 s from 2023-11-1")
    assert "CPU time: 9.000 s" in page.text("#profiles").splitlines()
    assert page.problems() == []


def test_the_process_with_most_samples_is_named_first(message):
    few, many = set_process(message("few"), "idle", 1), set_process(message("many"), "busy", 2)
    few.labelled("samples", "count", 10_000_000, [(("idle!main",), 1, None, {"thread.id": 1})])
    many.labelled("samples", "count", 10_000_000,
                  [((f"busy!work{place}",), 1, None, {"thread.id": 2}) for place in range(9)])
    about = About()
    about.add(few.request)
    about.add(many.request)
    assert about.lines({})["text"].startswith("busy (process 2), idle (process 1)")


def test_kinds_are_chosen_by_button_and_by_key(page):
    titles = page.ask("return data.profiles.map(profile => profile.title)")
    assert len(titles) >= 5
    for place, title in enumerate(titles, 1):
        page.ask("document.querySelectorAll('#profiles button')[arguments[0]].click()", place - 1)
        assert page.ask("return shown.title") == title
    page.press("1")
    assert page.ask("return shown.title") == titles[0]


def test_one_process_and_one_thread_are_chosen(page):
    page.press("2")
    assert page.ask("return shown.title") == "CPU time"
    choose(page, "process", "app (42)")
    assert page.ask("return shown.headline") == "CPU time: 4.000 s"
    assert not any(name == "render" for name in page.widths())
    choose(page, "thread", "main (1)")
    assert page.ask("return shown.headline") == "CPU time: 3.000 s" and set(page.widths()) == {"all", "main", "hot"}
    choose(page, "process", "shop (41)")
    assert page.ask("return shown.headline") == "CPU time: 5.000 s", "a thread of another process is chosen no more"
    choose(page, "thread", "worker-1 (101)")
    assert page.ask("return shown.headline") == "CPU time: 3.000 s"
    choose(page, "process", "all processes")
    choose(page, "thread", "all threads")
    assert page.ask("return shown.headline") == "CPU time: 9.000 s" and page.text("#kept") == ""


def test_a_search_colours_its_matches(page):
    page.press("2", "/")
    page.press("hot")
    assert page.text("#found") == "found: 3.000 s, 33.3%"
    assert [frame["name"] for frame in page.frames() if frame["colour"] == "rgb(138, 0, 87)"] == ["hot"]


SANDWICH = "return [...document.querySelectorAll(arguments[0] + ' .frame')].map(box => box.ariaLabel).sort()"


def test_a_function_stands_between_its_callers_and_callees(page):
    page.press("2")
    page.ask("openSandwich(shown.frames[[...shown.frames].findIndex(frame => data.frames[frame][0] === 'serve')])")
    assert page.text("#middle") == "serve (shop): 5.000 s, 55.6%; self 0.000 s, 0.0%"
    assert page.ask(SANDWICH, "#callers") == ["worker (shop), 5.000 s, 55.6%"]
    assert page.ask(SANDWICH, "#callees") == ["render (shop), 5.000 s, 55.6%", "serve (shop), 5.000 s, 55.6%"]
    assert page.find("#callers").rect["y"] + page.find("#callers").rect["height"] <= page.find("#callees").rect["y"] + 1
    page.find("#callers .frame").click()
    assert page.text("#middle").startswith("worker (shop)") and page.find("#no-callers").is_displayed()
    page.press("b")
    assert page.text("#middle").startswith("serve (shop)")
    page.press("c")
    assert page.find("#chart").is_displayed() and not page.find("#sandwich").is_displayed()


def test_recursion_counts_once_between_callers_and_callees(browser, message, tmp_path):
    stacks = {("f", "g", "f", "main"): 5, ("g", "f", "main"): 3, ("f", "other"): 2}
    write(tmp_path / "r.otlp", message().profile("samples", "count", 10**9, stacks))
    with serving("view", "--no-open", "r.otlp", cwd=tmp_path) as found:
        page = opened(browser, found)
        page.ask("openSandwich([...data.frames].findIndex(([name]) => name === 'f'))")
        assert page.text("#middle") == "f: 10.000 s, 100.0%; self 7.000 s, 70.0%"
        assert page.ask(SANDWICH, "#callers") == ["main, 8.000 s, 80.0%", "other, 2.000 s, 20.0%"]
        assert page.ask(SANDWICH, "#callees") == ["f, 10.000 s, 100.0%", "f, 5.000 s, 50.0%", "g, 8.000 s, 80.0%"]


def test_the_table_of_functions_is_sorted_by_self_or_total(page):
    page.press("2", "f")
    assert page.list()[0] == ["render (shop)", "5.000 s", "55.6%", "5.000 s", "55.6%"]
    page.find("#functions th:nth-child(3) button").click()
    totals = [float(row[3].split()[0]) for row in page.list()]
    assert totals == sorted(totals, reverse=True)
    page.find("#functions tbody td:nth-last-child(2) button").click()
    assert page.find("#sandwich").is_displayed()


def test_the_lines_of_a_function_are_shown_with_their_text(page):
    page.press("2")
    page.ask("openSource([...data.frames].findIndex(([name, module]) => name === 'main' && data.modules[module] === 'app'))")
    wait_for(page, "document.querySelectorAll('#lines tr').length > 2")
    rows = page.ask("return [...document.querySelectorAll('#lines tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
    assert rows[1] == ["2", "", "", "4.000 s", "44.4%", "    hot();"]
    assert rows[2][5] == "\tcold(); // <b>\\x202e</b>"
    assert "changed after the profile was taken" in page.text("#lines .note")
    choose(page, "thread", "main (1)")
    wait_for(page, "document.querySelector('#lines .hit').cells[3].textContent === '3.000 s'")
    assert page.problems() == []


def test_a_file_that_is_not_there_has_its_lines_all_the_same(page):
    page.press("2")
    page.ask("openSource([...data.frames].findIndex(([name]) => name === 'render'))")
    wait_for(page, "element('no-lines').textContent !== ''")
    assert "no lines of this function" in page.text("#no-lines")


def test_dark_and_light_by_preference_button_and_key(page):
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = page.ask(ground)
    page.find("#scheme").click()
    dark = page.ask(ground)
    assert dark != light == "rgb(255, 255, 255)"
    page.press("d")
    assert page.ask(ground) == light
    page.ask("chosenScheme = null")
    page.prefer("dark")
    wait_for(page, "document.documentElement.dataset.scheme === 'dark'")
    assert page.ask(ground) == dark


def test_help_names_every_key(page):
    page.ask("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '?', bubbles: true}))")
    assert page.find("#help").is_displayed()
    named = page.ask("return [...document.querySelectorAll('#help kbd')].map(key => key.textContent)")
    assert named == page.ask("return [...KEYS, ...OTHER_KEYS].map(([key]) => key)") and "?" in named
    page.press("ESCAPE")
    assert not page.find("#help").is_displayed()
    page.press("/")
    page.press("f")
    assert page.find("#chart").is_displayed(), "who types a word gives no command"


def test_no_name_becomes_markup(page):
    page.press("2")
    for place in range(page.ask("return data.frames.length")):
        page.ask("openSandwich(arguments[0]); openSource(arguments[0]); searchName(arguments[0])", place)
    assert page.ask("return window.hit === undefined && !document.querySelector('b, img')")
    shown = page.ask("return data.frames.map(frame => frame[0])")
    assert {"</script><b>x</b>", "\\x1b[2J\\x00\\x0a", "\\x202egnp.exe"} <= set(shown)
    assert page.problems() == []


def deep(message, depth):
    export = message()
    export.dictionary.stack_table.add(location_indices=[export.location("leaf")] + [export.location("recurses")] * (depth - 1))
    export.profile("samples", "count", 10_000_000, {})
    export.scope.profiles[-1].samples.add(stack_index=1, values=[100])
    return export


def test_a_very_deep_stack_is_shown_from_its_begin_and_can_be_followed(browser, message, tmp_path):
    write(tmp_path / "deep.otlp", deep(message, 20_000))
    with serving("view", "--no-open", "deep.otlp", cwd=tmp_path) as found:
        page = opened(browser, found)
        boxes = "document.querySelectorAll('#chart .frame')"
        assert page.ask(f"return {boxes}[1].textContent") == "recurses" and 3000 < page.ask(f"return {boxes}.length") <= 4000
        page.ask(f"{boxes}[{boxes}.length - 1].click()")
        assert page.ask("return graph.zoomed") > 3000
        page.ask("zoomTo(shown.frames.length - 1)")
        assert page.ask(f"return {boxes}.length") <= 8001 and page.ask(f"return [...{boxes}].at(-1).textContent") == "leaf"
        assert page.problems() == []


def test_of_several_deep_stacks_each_is_shown(browser, message, tmp_path):
    export = message()
    export.profile("samples", "count", 10_000_000, {(f"leaf {number}", *[f"deep {number}"] * 3000): 10 for number in range(20)})
    write(tmp_path / "deep.otlp", export)
    with serving("view", "--no-open", "deep.otlp", cwd=tmp_path) as found:
        names = {frame["name"] for frame in opened(browser, found).frames()}
        assert names >= {f"deep {number}" for number in range(20)}


def test_names_and_labels_of_megabytes_leave_the_page_usable(browser, message, tmp_path):
    export, huge = message(), "N" * (1 << 20)
    rows = [((f"{huge}{number}", "main"), 10, None, {huge: huge, f"key {number}": "x"}) for number in range(40)]
    write(tmp_path / "long.otlp", export.labelled("samples", "count", 10_000_000, rows))
    with serving("view", "--no-open", "long.otlp", cwd=tmp_path) as found:
        page = opened(browser, found)
        assert max(page.ask("return [...document.querySelectorAll('body *:not(script)')].filter(it => !it.children.length).map(it => it.textContent.length)")) < 30_000
        page.press("f", "c", "g")
        assert page.problems() == []


def test_very_many_labels_are_offered_up_to_a_bound(browser, message, tmp_path):
    labels = {f"label {number}": "x" for number in range(150_000)}
    write(tmp_path / "labels.otlp", message().labelled("samples", "count", 10_000_000, [(("f",), 10, None, labels)]))
    with serving("view", "--no-open", "labels.otlp", cwd=tmp_path) as found:
        page = opened(browser, found)
        assert 100 < page.ask("return element('key').options.length") < 2000
        assert page.problems() == []


# --- which requests are served ---


def test_only_the_page_with_its_token_from_here_is_served(served):
    status, _, headers = served.ask()
    assert status == 200 and headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer"
    port = served.url.split(":")[2].split("/")[0]
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{int(port) % 65535 + 1}", ""):
        assert served.ask(Host=host)[0] == 403, host
    page = served.url.split(port)[1]
    other = page[:-2] + ("y/" if page[-2] == "x" else "x/")
    for path in ("/", "/data", "/lines", other, page[:-1]):
        assert served.ask(whole_path=path)[0] == 403, path
    assert served.ask("data", Sec_Fetch_Site="cross-site")[0] == 403
    assert served.ask("data", Sec_Fetch_Site="same-origin")[0] == 200


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "NONSENSE"])
def test_other_methods_are_refused(served, method):
    assert served.ask("data", method=method)[0] == 403


@pytest.mark.parametrize("path", [
    "../../etc/passwd", "%2e%2e/etc/passwd", "/etc/passwd", "data/../lines", "page.js", "lines?path=/etc/passwd",
    "lines?kind=cpu&function=99999", "lines?kind=cpu&function=-1", "lines?kind=cpu&function=/etc/passwd", "lines?kind=__init__&function=0",
    "lines?kind=cpu&function=0&chosen=9999.0", "lines?kind=cpu&function=0&chosen=0.99", "lines?kind=cpu&function=0&chosen=1",
    "lines?kind=cpu&function=0&chosen=" + ",".join(["0.0"] * 99), "lines?kind=cpu&function=" + "9" * 5000, "lines",
])
def test_requests_that_the_page_does_not_make_are_refused(served, path):
    status, body, _ = served.ask(path)
    assert status == 403 and b"root:" not in body


@pytest.fixture
def led_in(message, tmp_path):
    """Returns (the server, the file that its browser got)."""
    seen, script = tmp_path / "seen", tmp_path / "seen.sh"
    script.write_text(f"#!/bin/sh\nprintf %s \"$1\" >{seen}.part && mv {seen}.part {seen}\n")
    script.chmod(0o755)
    write(tmp_path / "a.otlp", shop(message))
    with serving("view", "a.otlp", cwd=tmp_path, BROWSER=f"{script} %s") as found:
        eventually(seen.exists, "a browser", unless=found.process.poll)
        yield found, Path(seen.read_text().removeprefix("file://"))


def test_a_browser_is_led_in_once(led_in):
    """The path on its command line is worth nothing to another user, and nothing later."""
    found, leading = led_in
    assert stat.S_IMODE(leading.parent.stat().st_mode) == 0o700
    (way_in,) = set(re.findall(r"http://[^/]+(/[\w-]+)", leading.read_text()))
    assert way_in not in str(leading) and way_in not in found.url
    status, _, headers = found.ask(whole_path=way_in, Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="document")
    assert status == 302 and found.url.endswith(headers["Location"])
    assert found.ask(whole_path=way_in)[0] == 403
    assert found.end() == 0 and not leading.exists()


def test_a_real_browser_finds_the_way_in(browser, led_in):
    found, leading = led_in
    browser.driver.get(leading.as_uri())
    wait_for(browser, "document.querySelectorAll('#chart .frame').length > 0")
    assert browser.driver.current_url == found.url


def test_ctrl_c_ends_it_well(served):
    assert served.end() == 0


def test_ctrl_c_ends_it_well_in_the_moment_in_which_the_address_is_said(capsys):
    server = types.SimpleNamespace(shutdown=lambda: print("shut down"))

    def says_and_is_interrupted():
        raise KeyboardInterrupt

    until_ctrl_c(server, says_and_is_interrupted)
    assert capsys.readouterr() == ("shut down\n", "\n")


@pytest.mark.parametrize("text", [b"", b"nonsense"])
def test_a_file_without_profiles_is_said_to_be_one(tmp_path, text):
    from captured import otelprof

    (tmp_path / "bad").write_bytes(text)
    done = otelprof("view", "--no-open", "bad", cwd=tmp_path)
    assert done.returncode == 2 and "bad" in done.stderr


# --- large files ---


def test_of_very_many_stacks_all_count_and_few_are_drawn(browser, message, tmp_path):
    """The test asserts facts, no times: test/scripts/many_stacks.py makes the file for measurements."""
    export = message()
    sums = write_into(export, stacks=20_000)
    write(tmp_path / "many.otlp", export)
    with serving("view", "--no-open", "many.otlp", cwd=tmp_path) as found:
        page = opened(browser, found)
        wait_for(browser, "!data.has_more")
        totals = [readable("seconds", sums[0] / 100), readable("bytes", sums[1])]
        assert [line.partition(": ")[2] for line in page.text("#profiles").splitlines()] == totals
        for place, total in enumerate(totals):
            page.ask("document.querySelectorAll('#profiles button')[arguments[0]].click()", place)
            assert page.ask("return [readable(shown.values[0]), readable(shown.own.reduce((a, b) => a + b, 0))]") == [total, total]
            assert page.ask("return shown.left_out") == 0 and page.ask("return shown.frames.length") > 50_000
            assert 50 < page.ask("return document.querySelectorAll('.frame').length") <= 4000
        leaves = page.ask("return [...shown.own].filter(value => value).length")
        assert leaves == 20_000 and re.match(r"found: ", page.ask("element('term').value = 'part_7'; search(); return element('found').textContent"))


def test_an_address_leads_to_a_kind_that_a_large_file_shows_later(browser, message, tmp_path):
    export = message()
    write_into(export, stacks=20_000)
    write(tmp_path / "many.otlp", export)
    with serving("view", "--no-open", "many.otlp", cwd=tmp_path) as found:
        browser.driver.get(f"{found.url}#kind=alloc&zoom=0.x")
        wait_for(browser, "typeof shown === 'object' && shown !== null && !data.has_more")
        assert browser.ask("return shown.kind") == "alloc" and browser.problems() == []


@pytest.mark.parametrize("stacks, opens_before", [(100, False), (20_000, True)])
def test_a_large_file_opens_before_all_its_kinds_are_summed_up(message, tmp_path, stacks, opens_before):
    """The lines of a function belong to the requesting page: in the second one the function has another number."""
    export = message()
    write_into(export, stacks=stacks)
    write(tmp_path / "many.otlp", export)
    with serving("view", "--no-open", "many.otlp", cwd=tmp_path) as found:
        pages = [described(found.ask(name)[1]) for name in ("data", "all")]
        kinds = [[profile["kind"] for profile in page["profiles"]] for page in pages]
        assert kinds == [["cpu"] if opens_before else ["cpu", "alloc"], ["cpu", "alloc"]]
        assert [page.get("has_more", False) for page in pages] == [opens_before, False]
        assert (pages[0]["version"] == pages[1]["version"]) is not opens_before
        for page in pages:
            at = next(place for place, (name, _) in enumerate(page["frames"]) if name.endswith("process_part_7"))
            status, body, _ = found.ask(f"lines?kind=cpu&function={at}&version={page['version']}")
            assert status == 200 and b"part_0.cc" in body
