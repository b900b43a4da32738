"""A model for the shop on OpenAI's wire, which replies to what a request says: a repeated one gets the same.

Processes that a test starts use its server; `model_url()` is its address for all of them.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from threadkeep.testing import Say, ScriptedModel, UseTool
from threadkeep.testing.script import Reply
from threadkeep.testing.scripted_model import Recorded

_ADDRESS = "MODEL_OF_THE_TESTS"
"""The variable in which a process finds the server of the test that started it."""


@dataclass
class Asked:
    """What a request says, on either of OpenAI's wires."""

    users: list[str] = field(default_factory=list[str])
    results: list[str] = field(default_factory=list[str])
    """What the tools have returned since the last message of the user."""
    earlier_results: int = 0
    assistant: list[str] = field(default_factory=list[str])
    system: str = ""
    tools: list[str] = field(default_factory=list[str])
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def question(self) -> str:
        """The last message of the user."""
        return self.users[-1] if self.users else ""


Answer = Callable[[Asked], Reply | None]
asked: list[Asked] = []
"""All that this process's server was asked."""
_answers: list[Answer] = []
_servers: list[ScriptedModel] = []


def model_url() -> str:
    """Where the model is; starts it, unless the process that started this one did."""
    if (known := os.environ.get(_ADDRESS)) is not None:
        return known
    server = ScriptedModel(otherwise=_reply, records=False)
    server.__enter__()
    _servers.append(server)
    os.environ[_ADDRESS] = f"{server.url}/v1"
    return os.environ[_ADDRESS]


class answering:  # noqa: N801 - used as a function
    """Inside the block, a function of the test replies first; None leaves the reply to the shop's."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __enter__(self) -> list[Asked]:
        asked.clear()
        _answers.append(self._answer)
        return asked

    def __exit__(self, *_: object) -> None:
        _answers.remove(self._answer)


def _reply(request: Recorded) -> Reply:
    said = read(request.body)
    asked.append(said)
    for answer in reversed(_answers):
        if (reply := answer(said)) is not None:
            return reply
    return shop_reply(said)


def shop_reply(said: Asked) -> Reply:
    """What the shop's model says."""
    turn = len(said.users)
    if "Refund" not in said.question:
        return [Say("It was order 7, "), Say(f"after {said.earlier_results} results.")]
    match len(said.results):
        case 0:
            calls = [UseTool(it, {"order_id": 7}, id=f"call_{it}_{turn}") for it in ("price", "stock")]
            return [Say("Let me "), Say("look. "), *calls]
        case 2:
            return [UseTool("note", {"order_id": 7, "text": "Wants a refund."}, id=f"call_note_{turn}")]
        case 3:
            return [Say("I refund it. "), UseTool("refund", {"order_id": 7}, id=f"call_refund_{turn}")]
        case _:
            return [Say("Done: "), Say(" ".join(said.results))]


def read(body: Mapping[str, Any]) -> Asked:
    """A request of chat completions, or of responses."""
    said = Asked(body=body)
    said.tools = [it.get("name") or it.get("function", {}).get("name") for it in body.get("tools") or ()]
    if isinstance(instructions := body.get("instructions"), str):
        said.system = instructions
    given = body.get("messages") or body.get("input") or ()
    for role, text in _said([{"role": "user", "content": given}] if isinstance(given, str) else given):
        match role:
            case "user":
                said.users.append(text)
                said.earlier_results += len(said.results)
                said.results = []
            case "tool":
                said.results.append(text)
            case "assistant":
                said.assistant.append(text)
            case _:
                said.system += text
    return said


def _said(items: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for item in items:
        match item.get("type"):
            case "function_call_output":
                yield "tool", _text(item["output"])
            case "function_call" | "reasoning":
                pass
            case _:
                yield item.get("role", ""), _text(item.get("content"))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(_text(it.get("text", "")) for it in cast("list[dict[str, Any]]", content))
    return content if isinstance(content, str) else json.dumps(content) if content is not None else ""
