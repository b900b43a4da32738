"""The conversation as another server knows it: what it said itself, and everything else as we have it.

`turn.state` keeps the messages of the runs, with the server's ids, as AG-UI's own clients keep them. What it
doesn't have (the first turn, other agents' replies, replies that broke off) is made of our messages, with
their ids.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from threadkeep.agents import Turn
from threadkeep.remote_agents.transcript import Json

STATE_KEY = "ag-ui"
MOST_HISTORY_BYTES = 2 * 1024 * 1024
"""Of older messages, the newest ones that fit are sent."""

_size = msgspec.json.Encoder().encode


async def messages_for(turn: Turn, kept: Json) -> list[Json]:
    """The messages of the thread up to the turn's own."""
    history = await turn.history()
    at = next((n for n, it in enumerate(history) if it["id"] == kept.get("after")), None)
    known = cast("list[Json]", kept.get("messages") or []) if at is not None else []
    if len(_size(known)) > MOST_HISTORY_BYTES:
        known = []
    # After the message that began the last turn comes its reply, which the server knows as it made it.
    left = history[at + 2 :] if at is not None and known else history
    return [*known, *_newest(left), {"id": turn.message.id, "role": "user", "content": await _question(turn)}]


async def _question(turn: Turn) -> str:
    """What the user sent, with the text of its files."""
    if not turn.files:
        return turn.text
    *_, own = await turn.history(as_context=True)
    if isinstance(own.content, str):
        return own.content
    texts = [str(it["text"]) for it in own.content if it.get("type") == "text"]
    return "\n\n".join(texts) or turn.text


def _newest(messages: Sequence[Json]) -> list[Json]:
    """As many of the newest messages as fit."""
    newest_first: list[Json] = []
    left = MOST_HISTORY_BYTES
    for message in reversed(messages):
        made = [*_made_of(message)]
        left -= sum(len(_size(it)) for it in made)
        if left < 0:
            break
        newest_first += reversed(made)
    return newest_first[::-1]


def _made_of(message: Json) -> Iterator[Json]:
    """One of our messages; what no longer counts is left out, and so are thoughts, which were another's."""
    id_, role = str(message["id"]), message["role"]
    if role != "assistant":
        text = message.get("content") or ""
        if text:
            yield {"id": id_, "role": "user" if role == "user" else "assistant", "content": text}
        return
    texts = 0
    for part in cast("list[Json]", message.get("parts") or []):
        if part.get("superseded"):
            continue
        match part.get("type"):
            case "text" if part.get("text"):
                texts += 1
                yield {"id": id_ if texts == 1 else f"{id_}-{texts}", "role": role, "content": part["text"]}
            case "tool_call":
                yield from _call(part)
            case "user_text":
                yield {"id": part["messageId"], "role": "user", "content": part["text"]}
            case _:
                pass


def _call(part: Json) -> Iterator[Json]:
    """A call with its result: a call without one would be asked for again."""
    id_ = part["toolCallId"]
    arguments = msgspec.json.encode(part.get("arguments") or {}).decode()
    function = {"name": part["toolName"], "arguments": arguments}
    yield {
        "id": id_,
        "role": "assistant",
        "toolCalls": [{"id": id_, "type": "function", "function": function}],
    }
    yield {"id": f"{id_}-result", "role": "tool", "toolCallId": id_, "content": _text(part)}


def _text(part: Json) -> str:
    if error := part.get("error"):
        return str(error)
    result: Any = part.get("result")
    if result is None:
        return "(no result)" if part.get("status") != "ok" else "ok"
    return result if isinstance(result, str) else msgspec.json.encode(result).decode()
