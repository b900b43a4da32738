"""`examples/langgraph`: runs of a real LangGraph agent are recorded, and read as if they had run here."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving import environment, serving
from threadkeep.client import BlockingClient
from threadkeep.wire.messages import MessageView
from threadkeep.wire.parts import TextPartView

EXAMPLE = Path(__file__).parents[2] / "examples" / "langgraph"
OFF = {"gateway": "openai"}  # no model of ours is needed


def record(folder: Path, word: str, *arguments: str) -> str:
    """Runs the example to its end; what it prints."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "record.py"), word, *arguments],
        cwd=folder,
        env=environment(OFF),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def recorded(url: str, word: str) -> MessageView:
    """The answer to the question about a word, as the API has it."""
    with BlockingClient(url) as client:
        (found,) = [it for it in client.conversations() if it.title and word in it.title]
        asked, reply = client.messages(found.id)
        assert reply.turn_id
        assert client.turn(str(reply.turn_id)).status == reply.status
    assert asked.content == f"What does the lease say about {word}?"
    return reply


def check_good(reply: MessageView, printed: str) -> None:
    assert (reply.status, reply.model) == ("COMPLETED", "scripted")
    assert [(it.kind, it.title, it.detail) for it in reply.thought_process if it.kind != "retrieval"] == [
        ("node", "plan", "I look it up."),
        ("node", "search", ""),
        ("tool", "search_lease", ""),
        ("node", "write", ""),
    ]
    assert [part.iteration for part in reply.parts] == [1, 2, 2, 2, 3, 4]
    text = reply.parts[-1]
    assert isinstance(text, TextPartView)
    assert text.text == reply.content
    (call,) = reply.tool_calls
    assert (call.tool_name, call.status) == ("search_lease", "ok")
    assert str(call.result) in str(reply.content)
    (source,) = reply.citations
    assert (source.index, source.file_name, source.page, source.snippet) == (1, "lease.pdf", 2, call.result)
    assert reply.usage
    assert (reply.usage.input_tokens, reply.token_count) == (60, 20)
    assert f"assistant (COMPLETED): {reply.content}" in printed


@pytest.mark.requirement("004-R2.4")
def test_langgraph_runs_are_recorded_in_process_and_over_http(tmp_path: Path):
    printed = record(tmp_path, "notice", "--data", "data")
    with serving(tmp_path, **OFF) as server:
        check_good(recorded(server.url, "notice"), printed)
        printed = record(tmp_path, "deposit", "--url", server.url)
        check_good(recorded(server.url, "deposit"), printed)
        # A run that breaks off is kept as far as it went.
        assert "LookupError" in record(tmp_path, "rent", "--url", server.url)
        broken = recorded(server.url, "rent")
        assert (broken.status, [it.title for it in broken.thought_process]) == ("FAILED", ["plan"])
        assert broken.error
        assert (broken.error.code, broken.token_count) == ("AGENTX_ERROR", 5)
