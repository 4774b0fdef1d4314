"""scripts/words keeps the sources and the documents in plain English."""

import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def words():
    loader = SourceFileLoader("words", str(ROOT / "scripts" / "words"))
    module = module_from_spec(spec_from_loader("words", loader))
    loader.exec_module(module)
    return module


def test_no_private_word_is_in_the_sources_or_the_documents():
    done = subprocess.run([ROOT / "scripts" / "words"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_names_comments_and_strings_of_c_are_read():
    text = '/* What the helper does. */\nint told_twice; // nobody asks\nconst char *s = "it answers";\nint lookup;\n/* Looks up names. */\n'
    found = [(text.count("\n", 0, offset) + 1, word) for offset, word, _ in words().faults_of_c(text)]
    assert found == [(1, "What"), (2, "told"), (2, "nobody"), (3, "answers")]


def test_documents_are_read_outside_code():
    text = "The helper tells it.\n\n```sh\ntell me\n```\nA look at `look_at` settles it.\n"
    assert [word for _, word, _ in words().faults_of_document(text)] == ["tells", "look", "settles"]


def test_python_files_are_read_for_a_few_words():
    text = '"""It tells the law."""\nPATIENCE_S = 4  # of kin\nname = "lawful"\n'
    assert [word for _, word, _ in words().faults_of_python(text)] == ["law", "patience", "kin"]
    read = {name for name, _ in words().files([])}
    assert {"shim/libotelprof.map.in", "scripts/doc-tables", "test/lib/waiting.py"} <= read


def test_names_of_files_and_folders_are_read():
    found = [[word for word, _ in words().faults_of_path(path)] for path in
             ("test/boot/units/boot-door.service", "shim/withdrawal/cycle.c", "test/apps/looks.go", "common/lookup.h")]
    assert found == [["door"], ["withdrawal"], ["looks"], []]
    assert {"Makefile", "test/boot/units/boot-all.service"} <= set(words().paths([]))


def test_a_refused_name_of_a_file_is_reported(monkeypatch, capsys):
    module = words()
    monkeypatch.setattr(module, "paths", lambda given: ["test/boot/door.c"])
    assert module.main([str(ROOT / "test/boot")]) == 1
    assert capsys.readouterr().out == "test/boot/door.c: the name: 'door': interface\n"


def test_the_list_of_exceptions_is_short():
    rows = [row for row in words().EXCEPTIONS.read_text().splitlines() if row and not row.startswith("#")]
    assert len(rows) <= words().MAX_EXCEPTIONS
