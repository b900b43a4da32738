"""Whether a reply is the JSON that was asked for."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from threadkeep.domain.errors import OutputInvalid
from threadkeep.domain.ids import UserId
from threadkeep.domain.outputs.json_text import json_in
from threadkeep.engine.model_call import FinishedCall
from threadkeep.ports.gateway import TextBlock
from threadkeep.ports.schemas import NOT_CHECKED, Schemas

CheckOutput = Callable[[Mapping[str, Any], str], Awaitable[str | None]]
"""Why a text isn't JSON of a schema; None if it is."""

EMPTY = "It is empty."
NOT_JSON = "It isn't JSON."


def output_check(schemas: Schemas, user_id: UserId) -> CheckOutput:
    """Checks replies to a user, within the budget of all strangers' schemas."""

    async def problem(schema: Mapping[str, Any], text: str) -> str | None:
        bare = json_in(text)
        if not bare:
            return EMPTY
        try:
            value = await asyncio.to_thread(msgspec.json.decode, bare)
        except (msgspec.DecodeError, RecursionError):
            return NOT_JSON
        return await schemas.problem(user_id, schema, value)

    return problem


def output_in(text: str) -> Any:
    """The value of a reply that was checked; None where there is none."""
    try:
        return msgspec.json.decode(json_in(text))
    except (msgspec.DecodeError, RecursionError):
        return None


def text_of(call: FinishedCall) -> str:
    """What a model call has said."""
    return "".join(it.text for it in call.blocks if isinstance(it, TextBlock))


def invalid(problem: str) -> OutputInvalid:
    """The error of a reply that doesn't fit."""
    if problem == NOT_CHECKED:
        return OutputInvalid(
            "The model's reply can't be checked against its JSON schema, because that takes too long or too "
            "much memory. Simplify the schema."
        )
    return OutputInvalid(f"The model's reply doesn't match the JSON schema: {problem}")


def cannot_be_repaired(call: FinishedCall, problem: str) -> OutputInvalid | None:
    """The error of a reply that needn't be asked for again; None if that may help."""
    if problem == NOT_CHECKED:
        return invalid(problem)
    if call.stop_reason == "max_tokens":
        return OutputInvalid(
            "The model's reply was cut off at its limit of tokens, so it isn't the JSON that was asked for. "
            "Allow longer replies, or ask for less."
        )
    return None
