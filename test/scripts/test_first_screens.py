"""Every command that a newcomer reads, in README and on the first screen of each page of docs/, is run as printed: here, or by
the test that is named here. Only names that stand for the reader's own are replaced: ./app, FILE, ids of spans."""

import os
import re
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT

pytestmark = pytest.mark.system

FIRST_SCREEN = 45  # lines
COMMAND = re.compile(r"(?:\w+=\S+ )*(?:scripts/)?(?:otelprof [a-z]|make [a-z]|docker |go tool |kubectl |sed |touch |echo |tar |export |\./app|python3 )")
LIBRARY = BUILD / "libotelprof.so"
# the reader's names, and what has their place here
OURS = {"scripts/otelprof ": "otelprof ", "/usr/local/lib/otelprof/libotelprof.so": str(LIBRARY),
        "python3": "/usr/bin/python3", "FILE": "app.otlp", "00f067aa": "01010101"}
# by page: the commands that are run here, by their beginnings
HERE = {
    "README.md": ["LD_PRELOAD=/usr/local", "scripts/otelprof run"],
    "links.md": ["otelprof top", "otelprof flamegraph"],
    "python.md": ["otelprof run", "LD_PRELOAD=", "otelprof top", "otelprof flamegraph"],
    "views.md": ["otelprof diff", "otelprof pprof", "otelprof export", "otelprof merge"],
    "waits.md": ["otelprof run", "otelprof flamegraph"],
}
ELSEWHERE = {
    "make demo": "test_demo.py", "make demo-waits": "test_demo_waits.py", "make demo-python": "test_demo_python.py",
    "make demo-links": "test_demo_links.py", "NO_INSTALL=1 make demo": "test_a_demo_only_lists_packages_if_nothing_may_be_installed",
    "make test": "test_continuous_integration_runs_every_tier", "make install": "test_the_folder_of_libraries_is_a_setting",
    "make bundle": "test_bundle.py", "tar -C /path/in/the/image": "test_bundle.py", "LD_PRELOAD=/path/in/the/image": "test_bundle.py",
    "LD_PRELOAD=$PWD/build/libotelprof.so OTEL_EXPORTER": "test_one_program_is_turned_on",
    "OTEL_SDK_DISABLED": "test_one_program_is_turned_off", "docker run --": "test_one_container_is_turned_on",
    "docker run registry": "test_one_container_is_turned_off", "otelprof host enable": "test_one_host_is_turned_on",
    "echo 'OTEL_PROFILER_INCLUDE": "test_one_host_is_turned_on", "touch /etc/opentelemetry": "test_one_host_is_turned_off",
    "sed 's,IMAGE": "test_one_deployment_is_turned_on", "kubectl ": "test_kubectl_knows_the_commands",
    "export OTEL_PROFILER_START": "test_control_file.py", "LD_PRELOAD=libotelprof.so ./myapp": "test_control_file.py",
    "otelprof view": "test_view.py", "otelprof live": "test_live.py", "otelprof record": "test_control.py",
    "LD_PRELOAD=$PWD/build/libotelprof.so OTEL_PROFILER_LISTEN": "test_endpoint.py", "go tool pprof": "test_endpoint.py",
}
# verification.md names the targets that run the tests themselves
PAGES = ["README.md", *sorted({path.name for path in (ROOT / "docs").glob("*.md")} - {"verification.md"})]


def text_of(page):
    if page == "README.md":
        return (ROOT / page).read_text()
    return "\n".join((ROOT / "docs" / page).read_text().splitlines()[:FIRST_SCREEN])


def commands_of(page):
    """Returns the commands in blocks and in tables, and README's in its sentences."""
    text = text_of(page)
    blocks = "\n".join(re.findall(r"^```(?:sh)?\n(.*?)(?:^```|\Z)", text, re.S | re.M)).replace("\\\n", "")
    lines = [line.removeprefix("$ ").split("  #")[0].strip() for line in blocks.splitlines()]
    outside = re.sub(r"^```.*?(^```|\Z)", "", text, flags=re.S | re.M)
    rows = outside if page == "README.md" else "\n".join(re.findall(r"^\|.*", outside, re.M))
    return list(dict.fromkeys(line for line in [*lines, *re.findall(r"`([^`\n]+)`", rows)] if COMMAND.match(line)))


def begins(command, beginnings):
    return any(command.startswith(beginning) for beginning in beginnings)


def run_here(page):
    return [command for command in commands_of(page) if begins(command, HERE.get(page, []))]


def test_each_command_is_run_by_a_test():
    assert sum(len(commands_of(page)) for page in PAGES) > 40
    unknown = [(page, command) for page in PAGES for command in commands_of(page)
               if not begins(command, HERE.get(page, [])) and not begins(command, ELSEWHERE)]
    assert unknown == []


def test_the_named_tests_exist():
    tests = {path.name: path.read_text() for path in (ROOT / "test").glob("*/test_*.py")}
    missing = [name for name in set(ELSEWHERE.values()) if name not in tests and not any(f"def {name}(" in text for text in tests.values())]
    assert missing == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A newcomer's folder: programs, and files of them."""
    folder = tmp_path_factory.mktemp("newcomer")
    (folder / "app.py").write_text("def work():\n    return sum(i * i for i in range(4_000_000))\n\nfor _ in range(3):\n    work()\n")
    subprocess.run(["cc", "-I", ROOT / "shim", ROOT / "docs/examples/spans.c", "-o", "app"], cwd=folder, check=True)
    for command in ("otelprof run --quiet --types all -o app.otlp -- ./app",
                    "otelprof run --quiet -o demo.otlp -- /usr/bin/python3 app.py",
                    "otelprof run --quiet --types all -o profiles.json -- ./app"):
        done = run(folder, command)
        assert done.returncode == 0, done.stderr
    for name in ("before", "after", "monday", "tuesday"):
        shutil.copy(folder / "app.otlp", folder / f"{name}.otlp")
    return folder


def run(folder, command):
    environment = {**os.environ, "PATH": f"{ROOT / 'scripts'}:{os.environ['PATH']}"}
    return subprocess.run(["sh", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=300, check=False)


@pytest.mark.parametrize("page, command", [(page, command) for page in PAGES for command in run_here(page)])
def test_the_command_works_as_printed(folder, page, command):
    if "FILE" in command and page == "python.md":
        command = command.replace("FILE", "demo.otlp")
    for theirs, ours in OURS.items():
        command = command.replace(theirs, ours)
    made = re.search(r" (?:-o|--flamegraph) (\S+)", command)
    if made:
        (folder / made[1]).unlink(missing_ok=made[1] != "app.otlp")
    done = run(folder, command)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert not made or (folder / made[1]).stat().st_size > 100
    assert made or "LD_PRELOAD" in command or done.stdout or done.stderr
