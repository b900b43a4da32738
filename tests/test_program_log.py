"""The log: every line of the process in one form, with what it is about, without content and secrets."""

import logging
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.serving import Server
from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.user import User, UserId, UserRole
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.program_log import (
    JsonLines,
    LogFormat,
    Subject,
    TextLines,
    about,
    add_to_subject,
    set_up_logs,
)
from threadkeep.testing import Fail, Say, ScriptedModel

# Nothing with this in it may be in any line, whatever it is part of.
MARK = "xyzzy"
SECRET = f"{MARK}-a-secret-for-tests-that-is-long-enough"

TEXT_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (DEBUG|INFO|WARNING|ERROR) [\w.]+ .*|    .*")


def serve(folder: Path, model: ScriptedModel, **settings: str) -> Server:
    return Server(
        folder,
        log_level="debug",
        gateway="openai",
        gateway_url=model.url,
        gateway_api_key=f"sk-{MARK}",
        model="scripted",
        jwt_secret=SECRET,
        secret_key=SECRET,
        mcp_allow_private="true",
        **settings,
    )


def talk_of_everything(client: httpx.Client) -> dict[str, str]:
    """A turn that ends well, one that fails, refusals and strange requests; the ids of the first turn."""
    server = {"url": f"http://127.0.0.1:9/{MARK}", "headers": {"Authorization": f"Bearer {MARK}"}}
    agent = client.post(
        "/api/agents",
        json={"name": MARK, "systemPrompt": MARK, "settings": {"mcpServers": {"away": server}}},
    ).json()
    conversation = client.post(f"/api/agents/{agent['id']}/conversations", json={"title": MARK}).json()
    path = f"/api/conversations/{conversation['id']}/messages"
    json = {"Accept": "application/json"}
    sent = client.post(
        f"{path}?wait=true", json={"content": MARK}, headers={**json, "X-Request-Id": "the-first"}
    )
    assert MARK in sent.json()["content"]
    assert client.post(f"{path}?wait=true", json={"content": MARK}, headers=json).status_code == 502
    assert client.post(path, json={"content": MARK, "more": MARK}).status_code == 422
    assert client.get(f"/api/search?q={MARK}").status_code == 200
    assert client.get(f"/api/turns/{MARK}").status_code == 404
    assert client.get(f"/{MARK}?token={MARK}", headers={"X-Request-Id": f"{MARK} {MARK}"}).status_code == 404
    assert client.get("/api/me", headers={"Authorization": f"Bearer {MARK}"}).status_code == 401
    return {"conversation_id": conversation["id"], "turn_id": sent.json()["turnId"]}


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_log_has_ids_and_neither_content_nor_secrets(
    tmp_path: Path, model: ScriptedModel, log_format: LogFormat
):
    broken = [Say(f"And {MARK}"), Fail(f"I do not like {MARK}.")]
    model.script([Say(f"About {MARK}.")], broken, broken)  # a reply that breaks off starts anew once
    with serve(tmp_path, model, log_format=log_format) as server:
        token = issue_token(SECRET, User(UserId("alice"), UserRole.ADMIN), 600)
        with server.client(token) as client:
            ids = talk_of_everything(client)
        assert server.stop() == 0
    assert MARK not in server.output
    assert token not in server.output
    if log_format == "text":
        announcement = ("Threadkeep ", "Model: ", "API reference")
        logged = [line for line in server.output.splitlines() if not line.startswith(announcement)]
        assert all(TEXT_LINE.fullmatch(line) for line in logged), server.output
        (line,) = (line for line in logged if "request=the-first" in line and "POST" in line)
        assert "POST /api/conversations/{conversation_id}/messages 200" in line
        assert line.endswith(f" conversation={ids['conversation_id']} turn={ids['turn_id']}")
        return
    lines: list[dict[str, Any]] = [msgspec.json.decode(line) for line in server.output.splitlines()]
    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    # uvicorn's own lines are among them, and our announcement.
    assert {"threadkeep", "threadkeep.http", "threadkeep.turns", "uvicorn.error"} <= {
        line["logger"] for line in lines
    }
    responded, ended = (
        next(line for line in lines if line["logger"] == logger and line.get("turn_id") == ids["turn_id"])
        for logger in ("threadkeep.http", "threadkeep.turns")
    )
    for line in (responded, ended):
        assert (line["request_id"], line["conversation_id"]) == ("the-first", ids["conversation_id"])
    route = "/api/conversations/{conversation_id}/messages"
    assert (responded["method"], responded["route"], responded["status"]) == ("POST", route, 200)
    assert responded["duration_ms"] > 0
    assert (ended["status"], ended["code"]) == ("COMPLETED", None)


def record(message: str, error: BaseException | None = None, **extra: object) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("threadkeep.x", logging.ERROR, __file__, 1, message, None, info)
    vars(made).update(extra)
    return made


def break_down() -> None:
    """Fails with a cause and a group, of which some words are those of a user."""
    try:
        int(MARK)
    except ValueError as exc:
        group = ExceptionGroup(MARK, [KeyError(MARK), FileNotFoundError(2, "No such file")])
        group.__cause__ = exc
        raise StorageRefused("The disk is full.") from group


def test_stack_trace_tells_where_and_what_but_not_the_words_of_others():
    with pytest.raises(StorageRefused) as raised:
        break_down()
    for formatter in (TextLines(), JsonLines()):
        line = formatter.format(record("it broke", raised.value))
        assert MARK not in line
        for part in (
            "ValueError",
            "ExceptionGroup",
            "KeyError",
            "No such file",
            "The disk is full.",
            "break_down",
        ):
            assert part in line


def test_error_that_is_its_own_cause_is_told_once_over():
    error = ValueError("x")
    error.__cause__ = error
    assert JsonLines().format(record("it broke", error)).count("ValueError") < 20


def test_line_break_in_a_message_makes_no_line():
    line = TextLines().format(record("one\r\n2026-01-01T00:00:00.000Z ERROR forged"))
    assert len(line.splitlines()) == 1
    assert len(JsonLines().format(record("one\ntwo")).splitlines()) == 1


def test_lines_are_about_what_their_task_is_about():
    with about(Subject(request_id="r-1")):
        add_to_subject(turn_id="t-1")
        line = msgspec.json.decode(JsonLines().format(record("x", fields={"route": "/"})))
        assert (line["request_id"], line["turn_id"], line["route"]) == ("r-1", "t-1", "/")
        assert "conversation_id" not in line
        with about():
            assert "request" not in TextLines().format(record("x"))
    assert "request" not in TextLines().format(record("x"))


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, left as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield root
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)


def test_warnings_of_python_are_lines_too(root: logging.Logger, capsys: pytest.CaptureFixture[str]):
    set_up_logs("info", "json")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        warnings.warn("look out", stacklevel=1)
    line = msgspec.json.decode(capsys.readouterr().err)
    assert (line["level"], line["logger"]) == ("warning", "py.warnings")
