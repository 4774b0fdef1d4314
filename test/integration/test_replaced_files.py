"""A program that outlives its files, as after an upgrade, has its names all the same."""

import shutil
from pathlib import Path

import pytest
from waiting import eventually

pytestmark = pytest.mark.system


@pytest.mark.parametrize("fate", ["kept", "deleted", "replaced"])
def test_names_outlive_files(start, program, tmp_path, fate):
    folder = tmp_path / "installed"
    folder.mkdir()
    executable, library = folder / "program", folder / "library.so"
    shutil.copy(program("uses_library"), executable)
    shutil.copy(program("turn_a.so"), library)
    running = start([executable, library, "800"], env={"OTEL_PROFILER_MIN_LIFETIME": "1000"})
    eventually(lambda: "loaded" in Path(running.out.name).read_text(), "its library is loaded", unless=running.process.poll)
    for path, other in ((executable, program("burn")), (library, program("turn_b.so"))):
        if fate != "kept":
            path.unlink()
        if fate == "replaced":
            shutil.copy(other, path)
    done = running.finish(300)
    assert done.returncode == 0
    [instance] = done.instances()
    assert instance.executable == "program"
    assert instance.cpu_of("works_by_itself") > 0.6e9
    assert instance.cpu_of("work_of_a") > 0.6e9
    assert "work_of_b" not in instance.names()
