"""Files that are attached in `threadkeep chat`."""

import json
from pathlib import Path

import pytest

from tests.cli.test_terminal import main_messages, person, piped, settings_for
from tests.files.making import encode, photograph
from tests.serving import serving
from threadkeep.cli.attaching import split_paths
from threadkeep.cli.completion import completions
from threadkeep.testing import Say, ScriptedModel

COMMANDS = ("/file ", "/help")


def test_person_attaches_files_and_sends_them(tmp_path: Path, model: ScriptedModel):
    model.script([Say("A lease.")])
    model.otherwise = [Say("Two.")]  # for the title, too
    (tmp_path / "my cat.png").write_bytes(encode(photograph(64, 48), "PNG"))
    (tmp_path / "lease.md").write_text("# Lease")
    (tmp_path / "large.txt").write_text("word " * 1_000_000)
    strict = settings_for(model, max_message_chars="20")
    with serving(tmp_path, **strict) as server, person(tmp_path, "--url", server.url) as somebody:
        somebody.sees("> ")
        somebody.types("/file my\t lea\t\n")  # the tab completes and escapes
        somebody.sees("1 [image my cat.png · ")
        somebody.sees("2 [file lease.md · 7 B]")
        somebody.types("/file nowhere.png\n")
        somebody.sees("Error: nowhere.png: No such file or directory")
        somebody.types("/unfile 3\n")
        somebody.sees("no attached file has number 3")
        somebody.types("/unfile 1\n")
        somebody.sees("1 [file lease.md · 7 B]")
        somebody.types("\n")
        somebody.sees("[file lease.md · 7 B]")
        somebody.sees("A lease.")
        somebody.sees("> ")
        somebody.types("/file\n")
        somebody.sees("(no files attached)")
        somebody.types("/file large.txt\n")
        somebody.sees("] 100 %")
        somebody.sees("1 [file large.txt · 5.0 MB]")
        somebody.types("And what do you think of this?\n")
        somebody.sees("Error: ")
        somebody.sees("> And what do you think of this?")  # it stays, and so does the file
        somebody.types("\x15And this?\n")
        somebody.sees("Two.")
        asked = [it for it in main_messages(server.url) if it["role"] == "user"]
    assert sorted([part["type"] for part in it["parts"]] for it in asked) == [["file"], ["file", "text"]]


def test_pipe_can_attach_files_too(tmp_path: Path, model: ScriptedModel):
    model.script([Say("A lease.")])
    (tmp_path / "lease.md").write_text("# Lease")
    (tmp_path / "page.png").write_text("<html>")
    told = piped(tmp_path, "/file page.png 'lease.md'\nWhat?\n", settings=settings_for(model))
    assert "Error: page.png has the name of a PNG image" in told.stdout
    assert told.stdout.endswith("[file lease.md · 7 B]\nA lease.\n")
    assert "# Lease" in json.dumps(model.requests[0].body)


def test_paths_are_read_as_a_shell_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    Path("my cat.png").touch()
    for typed, paths in (
        ("my cat.png", ["my cat.png"]),
        ("a b", ["a", "b"]),
        ("'a b' c\\ d", ["a b", "c d"]),
        ("~/cat.png", ["/home/ann/cat.png"]),
    ):
        assert [str(path) for path in split_paths(typed)] == paths


def test_tab_completes_commands_and_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("my cat.png", "lease.md", ".hidden"):
        Path(name).touch()
    (tmp_path / "my docs").mkdir()
    Path("my docs/a.txt").touch()
    for typed, meant in (
        ("/f", ["/file "]),
        ("", []),
        ("What about le", []),
        ("/file le", ["/file lease.md "]),
        ("/file lease.md my", ["/file lease.md my\\ cat.png ", "/file lease.md my\\ docs/"]),
        ("/file my\\ d", ["/file my\\ docs/"]),
        ("/file my\\ docs/", ["/file my\\ docs/a.txt "]),
        ("/file 'my c", ["/file 'my cat.png'"]),
        ("/file ~/l", ["/file ~/lease.md "]),
        ("/file .h", ["/file .hidden "]),
        ("/file nowhere/", []),
    ):
        assert completions(typed, COMMANDS) == meant, typed
