"""`otelprof live`: the page follows real programs, those that answer and those that it starts."""

import pytest
from captured import PROGRAMS, otelprof
from otelprof_lib.capture_file import LENGTH
from otelprof_lib.following import Poller
from served import serving
from test_control import profiled  # noqa: F401 # a fixture
from test_view import wait_for
from waiting import eventually

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
    assert page.text("#title") == f"process {program.pid}" and "answers" in page.text("#about") and program.pid in page.text("#about")
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
    """Answers each question with the same two exports."""

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
    """Its last export is in the page, too: all of a program that is over before anybody could ask."""
    with serving("live", "--no-open", "--", "sh", "-c", f"{PROGRAMS}/burn 600 64; exit 5", cwd=tmp_path) as served:
        page = opened(browser, served)
        wait_for(page, "element('state').className === 'ended'")
        assert "ended with status 5" in page.text("#state")
        wait_for(page, "shown && data.profiles.some(({kind}) => kind === 'cpu')")
        assert "burn" in page.text("#about") and page.ask("return data.profiles.find(({kind}) => kind === 'cpu').total") > 0.3
        served.until_it_says("stays until Ctrl-C")
        assert served.end() == 5


def test_who_does_not_answer_is_said_to(profiled, tmp_path):  # noqa: F811
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


def test_options_stand_on_either_side_of_who_is_followed(profiled, tmp_path):  # noqa: F811
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
