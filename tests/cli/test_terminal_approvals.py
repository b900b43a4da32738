"""`threadkeep chat` with turns that wait for their user, and servers that restart."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.test_terminal import Person, person, piped, settings_for
from tests.client.test_approvals import free_port
from tests.serving import Server
from tests.talking import Talk, talking_aside
from threadkeep.client import BlockingClient
from threadkeep.testing import Gate, Say, ScriptedModel, ToolServer, UseTool, Wait, scripted_settings

KEYS = "[y] allow  [a] always here  [n] deny  [e] edit: "
NOTE = UseTool("desk__note", {"text": "buy tea"})
ROOM = UseTool("ask_user", {"question": "Which room?", "choices": ["Blue", "Green"]})


def note(text: str) -> str:
    """Writes a text down."""
    return f"noted: {text}"


@pytest.fixture
def desk() -> Generator[ToolServer]:
    with ToolServer(note) as server:
        yield server


@pytest.fixture
def server(tmp_path: Path, model: ScriptedModel, desk: ToolServer) -> Generator[Talk]:
    settings = scripted_settings(model, data=tmp_path / "data", mcp_allow_private=True)
    with talking_aside(settings) as server:
        add_clerk(server, desk)
        yield server


def add_clerk(server: Server | Talk, desk: ToolServer) -> None:
    """An agent that asks before it takes notes, with a conversation that has a title."""
    with BlockingClient(server.url) as client:
        settings = {
            "mcpServers": {"desk": desk.settings},
            "tools": {"desk.*": {"access": "ask"}},
            "askUser": True,
        }
        agent = client.create_agent("Clerk", settings=settings)
        client.update_conversation(client.main_conversation(agent.id).id, {"title": "Desk"})


def told(model: ScriptedModel) -> str:
    """What the model was told last."""
    return str(model.requests[-1].body["messages"][-1]["content"])


def says(somebody: Person, line: str) -> None:
    somebody.sees("> ")
    somebody.types(f"{line}\n")


def test_tool_runs_when_it_is_allowed_once_or_always(
    server: Talk, model: ScriptedModel, desk: ToolServer, tmp_path: Path
):
    model.script([NOTE], [Say("Noted.")], [NOTE], [Say("Again.")], [NOTE], [Say("Once more.")])
    with person(tmp_path, "--url", server.url, "--agent", "Clerk") as somebody:
        says(somebody, "Note it")
        shown = somebody.sees(KEYS)
        assert "? Call note on desk?\r\n    text: buy tea\r\n" in shown
        assert desk.uses == []
        somebody.types("y\n")
        somebody.sees("(allowed)")
        somebody.sees("Noted.")
        says(somebody, "Again")
        somebody.sees(KEYS)
        somebody.types("a\n")
        somebody.sees("(allowed in this conversation)")
        somebody.sees("Again.")
        says(somebody, "Once more")
        assert KEYS not in somebody.sees("Once more.")
    assert len(desk.uses) == 3


def test_tool_is_denied_or_called_with_other_arguments(
    server: Talk, model: ScriptedModel, desk: ToolServer, tmp_path: Path
):
    model.script([NOTE], [Say("Not noted.")], [NOTE], [Say("Noted.")])
    with person(tmp_path, "--url", server.url, "--agent", "Clerk") as somebody:
        says(somebody, "Note it")
        somebody.sees(KEYS)
        somebody.types("n\n")
        somebody.sees("(denied)")
        somebody.sees("Not noted.")
        says(somebody, "Try again")
        somebody.sees(KEYS)
        somebody.types("e\n")
        somebody.sees('Arguments, as JSON: {"text": "buy tea"}')
        somebody.types('\x15{"text": 3}\n')
        somebody.sees("Error: `text`")
        somebody.sees(KEYS)
        somebody.types("e\n")
        somebody.sees("Arguments, as JSON: ")
        somebody.types('\x15{"text": "buy milk"}\n')
        somebody.sees("(allowed with changed arguments)")
        somebody.sees("Noted.")
    assert [use.arguments for use in desk.uses] == [{"text": "buy milk"}]


def test_question_is_asked_with_numbered_choices(server: Talk, model: ScriptedModel, tmp_path: Path):
    model.script([ROOM], [Say("Booked.")])
    with person(tmp_path, "--url", server.url, "--agent", "Clerk") as somebody:
        says(somebody, "Book a room")
        shown = somebody.sees("to decline: ")
        assert "? Which room?\r\n    1. Blue\r\n    2. Green\r\n" in shown
        assert "ask_user" not in shown
        somebody.types("2\n")
        somebody.sees("(answered)")
        somebody.sees("Booked.")
    assert "Green" in told(model)


def test_pipe_answers_with_its_next_line(server: Talk, model: ScriptedModel, tmp_path: Path):
    model.script([ROOM], [Say("Booked.")])
    done = piped(tmp_path, "Book a room\nBlue\n", "--url", server.url, "--agent", "Clerk")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["", "Booked."]
    assert "Blue" in told(model)


def test_whoever_leaves_is_asked_again(server: Talk, model: ScriptedModel, desk: ToolServer, tmp_path: Path):
    model.script([NOTE], [Say("Noted.")])
    done = piped(tmp_path, "Note it\n", "--url", server.url, "--agent", "Clerk")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("(the turn is waiting for your answer; `threadkeep chat` asks again)\n")
    with person(tmp_path, "--url", server.url, "--agent", "Clerk") as somebody:
        assert "> Note it" in somebody.sees(KEYS)
        somebody.types("y\n")
        somebody.sees("Noted.")
        somebody.sees("> ")
    assert len(desk.uses) == 1


def test_decision_that_is_given_elsewhere_ends_the_prompt(server: Talk, model: ScriptedModel, tmp_path: Path):
    model.script([NOTE], [Say("Noted.")])
    with person(tmp_path, "--url", server.url, "--agent", "Clerk") as somebody:
        says(somebody, "Note it")
        somebody.sees(KEYS)
        with BlockingClient(server.url) as client:
            (asked,) = client.approvals()
            client.answer(asked.turn_id, asked.request_id, "allow")
        somebody.sees("(allowed)")
        somebody.sees("Noted.")
        somebody.sees("> ")


def test_ctrl_c_ends_a_turn_that_waits(server: Talk, model: ScriptedModel, tmp_path: Path):
    model.script([NOTE])
    with person(tmp_path, "--url", server.url, "--agent", "Clerk") as somebody:
        says(somebody, "Note it")
        somebody.sees(KEYS)
        somebody.presses_ctrl_c()
        assert somebody.sees("(stopped; the partial answer is saved)").startswith("\r\n")
        somebody.sees("> ")
    with BlockingClient(server.url) as client:
        assert client.approvals() == []


def test_nobody_is_asked_what_a_stopped_turn_asked(server: Talk, model: ScriptedModel, tmp_path: Path):
    gate = Gate()
    model.script([NOTE, ROOM], [Say("One, "), Wait(gate), Say("two.")])
    with person(tmp_path, "--url", server.url, "--agent", "Clerk") as somebody:
        says(somebody, "Note it and book a room")
        somebody.sees(KEYS)
        somebody.presses_ctrl_c()
        says(somebody, "Count")
        somebody.sees("One, ")
        somebody.types("And then?\n")
        assert "decline" not in somebody.sees("(queued)")
        gate.open()
        assert "decline" not in somebody.sees("two.")


def test_reply_goes_on_when_the_server_restarts(tmp_path: Path, model: ScriptedModel, desk: ToolServer):
    port, settings = free_port(), settings_for(model, mcp_allow_private="true")
    model.script([Say("One, "), Wait(Gate())], [Say("One, two.")], [NOTE], [Say("Noted.")])
    with Server(tmp_path, "--port", port, **settings) as first:
        add_clerk(first, desk)
        with person(tmp_path, "--url", first.url, "--agent", "Clerk") as somebody:
            says(somebody, "Count")
            somebody.sees("One, ")
            first.kill()
            with Server(tmp_path, "--port", port, **settings) as second:
                somebody.sees("(the server was interrupted; resuming)")
                somebody.sees("One, two.")
                says(somebody, "Note it")
                somebody.sees(KEYS)
                second.stop()
                with Server(tmp_path, "--port", port, **settings):
                    somebody.types("y\n")
                    somebody.sees("Noted.")
    assert len(desk.uses) == 1
