"""The page of `otelprof live` follows real programs: running ones that listen, and those that it starts."""

import http.server
import subprocess
import threading

import pytest
from captured import PROGRAMS, otelprof
from otelprof_lib import aggregate as aggregate_module, live as live_module
from otelprof_lib.capture_file import LENGTH, BadFile
from otelprof_lib.following import MOST_ASKING, Poller
from otlp_sink import SinkServer
from served import serving
from test_control import profiled  # noqa: F401 # a fixture
from test_view import wait_for
from waiting import TIMEOUT_S, eventually

pytestmark = pytest.mark.system

HAS = "data.frames && data.frames.some(([name]) => name === '{}')"


def opened(browser, served):
    browser.driver.get(served.url)
    return browser


def version(browser):
    return browser.ask("return data.version")


def until_news(browser):
    before = version(browser)
    wait_for(browser, f"data.version > {before}")


@pytest.fixture
def followed(profiled, browser, tmp_path):  # noqa: F811
    program = profiled().until_it_answers()
    with serving("live", "--no-open", "--seconds", "1", program.pid, cwd=tmp_path) as served:
        page = opened(browser, served)
        wait_for(page, HAS.format("burns_cpu"))
        yield page, program, served


def test_a_process_is_followed_to_its_end(followed):
    page, program, served = followed
    assert page.text("#title") == f"process {program.pid}" and "works_and_waits" in page.text("#about") and program.pid in page.text("#about")
    assert page.text("#state").startswith("running")
    until_news(page)
    before = page.ask("return whole.find(({kind}) => kind === 'cpu').total")
    until_news(page)
    assert page.ask("return whole.find(({kind}) => kind === 'cpu').total") > before, "it adds up"
    assert program.over() == 7
    wait_for(page, "element('state').className === 'ended'")
    assert f"process {program.pid} has ended" in page.text("#state") and not page.find("#pause").is_displayed()
    assert len(page.frames()) > 1 and page.problems() == []
    assert served.end() == 0


def test_news_move_nothing(followed):
    page, *_ = followed
    page.ask("[...document.querySelectorAll('#profiles button')].find(button => button.profile.kind === 'cpu').click()")
    page.click_frame("burns_cpu")
    page.search("burns")
    page.ask("selected = shown.frames[graph.zoomed]")
    until_news(page)
    assert page.ask("return [shown.kind, data.frames[shown.frames[graph.zoomed]][0], data.frames[selected][0]]") == ["cpu", "burns_cpu", "burns_cpu"]
    assert page.find("#term").get_property("value") == "burns" and page.text("#found").startswith("found: ")
    page.ask("look('sandwich-view')")
    until_news(page)
    assert page.find("#sandwich").is_displayed() and page.text("#middle").startswith("burns_cpu")


def test_a_pause_holds_the_picture(followed):
    page, *_ = followed
    page.find("#pause").click()
    wait_for(page, "element('state').className === 'paused'")
    held = version(page)
    newest = "return fetch('state').then(answer => answer.json()).then(state => state.version)"
    eventually(lambda: page.ask(newest), "two versions more", holds=lambda found: found > held + 1)
    assert version(page) == held
    page.press("p")
    wait_for(page, f"data.version > {held}")


class Repeats:
    """Responds to each request with the same two exports."""

    text = "somebody"

    def __init__(self, *exports):
        self.answer = b"".join(LENGTH.pack(len(data)) + data for data in exports)
        self.count = 0

    def ask(self, path, timeout):
        self.count += path.startswith("/otlp")
        return self.answer

    def is_there(self):
        return True


def test_an_export_in_two_answers_counts_once(message):
    exports = [message(instance).profile("samples", "count", 1, {("f",): 1}).bytes() for instance in ("one", "two")]
    asked, taken = Repeats(*exports), []
    poller = Poller(asked, 1, lambda found: taken.append(found.SerializeToString()), taken.append).start()
    eventually(lambda: asked.count >= 3, "three questions")
    poller.stop()
    assert sorted(taken) == sorted(exports)


def test_the_end_is_reported_once(message):
    """Several requests may be in progress when a response is refused."""
    def refuse(_):
        raise BadFile("it is too much")

    exports = [message(instance).profile("samples", "count", 1, {("f",): 1}).bytes() for instance in ("one", "two")]
    reasons = []
    asked = Repeats(exports[0])
    poller = Poller(asked, 1, refuse, reasons.append)
    poller._ask()
    asked.answer = Repeats(exports[1]).answer
    poller._ask()
    assert reasons == ["followed no more, since it is too much"]


class Endless(Repeats):
    """Has another export in each response."""

    def __init__(self, message):
        super().__init__()
        self.message = message

    def ask(self, path, timeout):
        super().ask(path, timeout)
        data = self.message().profile("samples", "count", 1, {(f"f{self.count}",): 1}).bytes()
        return LENGTH.pack(len(data)) + data


@pytest.mark.parametrize("module, name", [(live_module, "MOST_HELD"), (aggregate_module, "MOST_LETTERS")])
def test_a_process_is_asked_no_more_after_the_bound(message, monkeypatch, capfd, module, name):
    """The bound is reached when its exports are too large to keep, or cannot be shown."""
    monkeypatch.setattr(module, name, 100)
    asked = Endless(message)
    live, poller = live_module.followed(asked, 0.01)
    thread = threading.Thread(target=poller._run, daemon=True)
    thread.start()
    state = eventually(live.state, "the bound", holds=lambda found: found["has_ended"])
    under_way = asked.count + MOST_ASKING
    eventually(lambda: not thread.is_alive() or asked.count > under_way, "the last question, or one too many")
    poller.stop()
    assert asked.count <= under_way and state["text"].startswith("followed no more, since ")
    assert capfd.readouterr().err == f"otelprof: somebody: {state['text']}\n"


def test_a_socket_is_an_address(profiled, browser, tmp_path):  # noqa: F811
    program = profiled(f"unix:{tmp_path}/a.sock").until_it_answers()
    with serving("live", "--no-open", f"unix:{tmp_path}/a.sock", cwd=tmp_path) as served:
        wait_for(opened(browser, served), HAS.format("burns_cpu"))
    program.over()


def test_a_port_is_an_address(profiled, browser, tmp_path):  # noqa: F811
    program = profiled("127.0.0.1:0").until_it_answers()
    (line,) = [line for line in otelprof("ps", cwd=tmp_path).stdout.splitlines() if line.split()[0] == program.pid]
    with serving("live", "--no-open", f"http://{line.split()[2]}", cwd=tmp_path) as served:
        wait_for(opened(browser, served), HAS.format("burns_cpu"))
    program.over()


def test_a_program_is_started_and_its_status_passed_on(browser, tmp_path):
    """Its last export is in the page, too: for a program that ends before any request, that is all."""
    with serving("live", "--no-open", "--", "sh", "-c", f"{PROGRAMS}/burn 600 64; exit 5", cwd=tmp_path) as served:
        page = opened(browser, served)
        wait_for(page, "element('state').className === 'ended'")
        assert "ended with status 5" in page.text("#state")
        wait_for(page, "shown && data.profiles.some(({kind}) => kind === 'cpu')")
        assert "burn" in page.text("#about") and page.ask("return data.profiles.find(({kind}) => kind === 'cpu').total") > 0.3
        served.until_it_says("stays until Ctrl-C")
        assert served.end() == 5


ODD_NAMES = {"first": "<img src=x onerror=window.hit=1>", "second": "</script><script>window.hit=2</script>", "third": "\u202egnp.exe\u2028",
             "fourth": "__proto__"}


def test_no_name_of_a_program_becomes_markup(browser, tmp_path):
    stop, program = tmp_path / "stop", tmp_path / "odd <b>\u202e"
    renamed = [f"--redefine-sym={old}={new}" for old, new in ODD_NAMES.items()]
    subprocess.run(["objcopy", "--strip-debug", *renamed, PROGRAMS / "odd_names", program], check=True)
    with serving("live", "--no-open", "--", program, stop, cwd=tmp_path, OTEL_PROFILE_EXPORT_INTERVAL="500") as served:
        page = opened(browser, served)
        wait_for(page, HAS.format("<img src=x onerror=window.hit=1>"))
        stop.touch()
        wait_for(page, "element('state').className === 'ended'")
        wait_for(page, "data.version > 1 && shown")
        shown = page.ask("return data.frames.map(([name]) => name)")
        assert {"<img src=x onerror=window.hit=1>", "</script><script>window.hit=2</script>", "\\x202egnp.exe\\x2028", "__proto__"} <= set(shown)
        names = page.ask("return data.labels.flat().filter(([name]) => name === 'thread.name').map(([, value]) => value)")
        assert {"</script><b>x", "\\x1b[2J\\x202e", "__proto__"} <= set(names)
        for place in range(len(shown)):
            page.ask("openSandwich(arguments[0]); searchName(arguments[0])", place)
        assert page.ask("return window.hit === undefined && !document.querySelector('b, img, script[src]')")
        assert page.problems() == []
        assert served.end() == 7


class Answers(http.server.BaseHTTPRequestHandler):
    """Stands for a process that responds with anything."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        exports = self.server.exports.pop(0) if self.path.startswith("/otlp") and self.server.exports else b""
        self.send_response(200)
        self.send_header("Content-Length", str(len(exports)))
        self.end_headers()
        self.wfile.write(exports)

    def log_message(self, *_):
        pass


@pytest.fixture
def responding():
    server = SinkServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_data_that_cannot_be_shown_leaves_the_page_as_it_was(responding, browser, message, tmp_path):
    good, bad = message().profile("samples", "count", 10_000_000, {("f", "main"): 5}), message()
    bad.location("g")
    location = bad.dictionary.location_table.add(address=1)
    for _ in range(10_000):  # with more of them the export is left out
        location.lines.add(function_index=1)
    bad.dictionary.stack_table.add(location_indices=[2] * 20_000)
    bad.profile("samples", "count", 10_000_000, {})
    bad.scope.profiles[-1].samples.add(stack_index=1, values=[1])
    negative = message().profile("samples", "count", -1, {("h",): 5})
    responding.exports = [LENGTH.pack(len(data)) + data for data in (negative.bytes(), b"\x0c", good.bytes(), b"", bad.bytes())]
    with serving("live", "--no-open", "--seconds", "1", f"http://127.0.0.1:{responding.server_port}", cwd=tmp_path) as served:
        page = opened(browser, served)
        wait_for(page, "element('state').className === 'ended'")
        assert "followed no more, since what it sends cannot be shown" in page.text("#state")
        assert "f" in [frame["name"] for frame in page.frames()] and page.problems() == []
        assert served.end() == 0


class Looks(threading.Event):
    """Ends a poller after so many rounds, none of which waits."""

    def __init__(self, most):
        super().__init__()
        self.left, self.are_over = most, threading.Event()

    def wait(self, timeout=None):
        self.left -= 1
        if self.left <= 0:
            self.set()
            self.are_over.set()
        return self.is_set()


def test_a_slow_process_is_asked_only_so_often_at_once(message):
    class Slow(Repeats):
        def ask(self, path, timeout):
            if path != "/status":
                self.count += 1
                waits.wait(60)
            return b""

    waits, asked = threading.Event(), Slow()
    looks = Looks(MOST_ASKING + 20)
    poller = Poller(asked, 0.01, None, lambda why: None)
    poller._over = looks
    poller.start()
    assert looks.are_over.wait(TIMEOUT_S)
    eventually(lambda: asked.count >= MOST_ASKING, "the questions that there may be")
    assert asked.count == MOST_ASKING
    waits.set()


def test_processes_that_do_not_respond_are_listed_so(profiled, tmp_path):  # noqa: F811
    program = profiled(None)
    done = eventually(lambda: otelprof("live", "--no-open", program.pid, cwd=tmp_path), "that it does not answer",
                      unless=program.process.poll, holds=lambda done: "does not answer" in done.stderr)
    assert done.returncode == 2 and "OTEL_PROFILER_LISTEN" in done.stderr
    program.over()


@pytest.mark.parametrize("arguments, said", [
    (["999999999"], "there is no process"), (["http://127.0.0.1:1"], "has not answered"), (["unix:/nowhere"], "has not answered"),
    (["ftp://x"], "is no address"), ([], "a process id"), (["--"], "a process id"),
    (["1", "--", "true"], "a process id"), (["1", "2"], "unrecognized arguments: 2"), (["1", "--interval", "2"], "unrecognized arguments"),
])
def test_wrong_addresses_are_said_to_be(tmp_path, arguments, said):
    done = otelprof("live", "--no-open", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_options_stand_on_either_side_of_the_followed_process(profiled, tmp_path):  # noqa: F811
    program = profiled().until_it_answers()
    for arguments in ((program.pid, "--no-open", "--seconds", "1"), ("--no-open", program.pid, "--seconds", "1")):
        with serving("live", *arguments, cwd=tmp_path) as served:
            assert served.url
    program.over()


def test_options_behind_two_dashes_are_the_programs(tmp_path):
    with serving("live", "--no-open", "--", "sh", "-c", "test $1 = --port && exit 5", "name", "--port", "--", cwd=tmp_path) as served:
        served.until_it_says("stays until Ctrl-C")
        assert served.end() == 5


def test_a_program_that_is_not_there_has_the_status_of_a_shell(tmp_path):
    assert otelprof("live", "--no-open", "--", "/no/such/program", cwd=tmp_path).returncode == 127
