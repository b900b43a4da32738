"""`threadkeep rerun`: many turns with other models, the rest of them the next time, and a page to compare."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import ONLY_SQLITE
from tests.serving import run
from tests.talking import Talk
from threadkeep.cli.rerun import PAGE, RESULTS
from threadkeep.testing import Say, ScriptedModel, Status

pytestmark = ONLY_SQLITE


async def rerun(talk: Talk, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command against a running server, to its end."""
    given = ("--agent", "Advisor", "--url", talk.url, "--out", str(folder / "out"), *arguments)
    return await asyncio.to_thread(run, "rerun", *given, folder=folder)


def lines(folder: Path) -> list[dict[str, Any]]:
    found = (folder / "out" / RESULTS).read_text().splitlines()
    return [json.loads(line) for line in found if line.startswith('{"turnId":')]


def page(folder: Path) -> str:
    return (folder / "out" / PAGE).read_text()


async def talked(talk: Talk, model: ScriptedModel, *answers: str) -> list[dict[str, Any]]:
    model.otherwise = [Say("Again.")]
    conversation = await talk.titled_conversation(settings={"models": ["*"]})
    replies: list[dict[str, Any]] = []
    for answer in answers:
        model.script([Say(answer)])
        replies.append(await talk.ask(conversation, f"Why {answer}?"))
    return replies


async def test_what_is_done_is_not_done_again(talk: Talk, model: ScriptedModel, tmp_path: Path):
    await talked(talk, model, "one", "two")
    model.script([Status(400, "Bad model.")])
    both = ("--model", "a", "--model", "b")
    first = await rerun(talk, tmp_path, *both)
    assert first.returncode == 0, first.stderr  # a failing model is a result
    assert "2 turns, 4 reruns, 0 failed" in first.stdout
    assert len(lines(tmp_path)) == 4
    assert page(tmp_path).count("<section>") == 2
    assert "Why one?" in page(tmp_path)
    asked = len(model.requests)
    assert (await rerun(talk, tmp_path, *both)).returncode == 0
    assert len(model.requests) == asked
    # Cut off in the middle of a line; then one more model, and another prompt.
    with (tmp_path / "out" / RESULTS).open("a") as file:
        file.write('{"turnId": "cut o')
    assert (await rerun(talk, tmp_path, "--model", "a", "--model", "c", "--limit", "1")).returncode == 0
    assert len(model.requests) == asked + 1
    (tmp_path / "prompt.md").write_text("Be long.")
    prompt = ("--system-prompt", str(tmp_path / "prompt.md"))
    assert (await rerun(talk, tmp_path, "--model", "a", "--limit", "1", *prompt)).returncode == 0
    assert model.requests[-1].body["messages"][0]["content"].startswith("Be long.")


async def test_problem_with_one_does_not_end_the_others(talk: Talk, model: ScriptedModel, tmp_path: Path):
    replies = await talked(talk, model, "one", "<script>alert(1)</script>")
    for reply, rating in zip(replies, ("up", "down"), strict=True):
        await talk.client.post(f"/api/messages/{reply['id']}/feedback", json={"rating": rating})
    down = ("--feedback", "down", "--model", "a")
    done = await rerun(talk, tmp_path, *down, "--model", "x" * 201)
    assert done.returncode == 1
    assert "1 turn, 1 rerun, 1 failed" in done.stdout
    assert "Failed: " in done.stderr
    assert "<script" not in page(tmp_path)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page(tmp_path)
    nothing = await rerun(talk, tmp_path, *down, "--since", "2100-01-01")
    assert (nothing.returncode, nothing.stderr.splitlines()[-1]) == (1, "No turns found.")
    assert (await rerun(talk, tmp_path, "--model", "a", "--limit", "0")).returncode == 2
