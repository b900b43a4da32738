"""Replies that are to be JSON: how a model is asked for it, and asked again."""

from collections.abc import Mapping
from typing import Any

import msgspec

from threadkeep.context.prompt import Component
from threadkeep.ports.gateway import ModelMessage, TextBlock

OUTPUT = "output"
"""The component of a prompt that asks for it."""

_JSON_ONLY = "Reply with one JSON value, and nothing else, that matches this JSON schema:\n"


def asking_component(schema: Mapping[str, Any]) -> Component:
    """What asks a model for JSON of a schema: whole, however long, because a part of it means nothing."""
    return Component(OUTPUT, _JSON_ONLY + schema_text(schema))


def asking_for(schema: Mapping[str, Any], system: str) -> str:
    """A system prompt that also asks for JSON of a schema."""
    asked = asking_component(schema).text
    return f"{system}\n\n{asked}" if system else asked


def schema_text(schema: Mapping[str, Any]) -> str:
    """A schema as a receipt keeps it."""
    return msgspec.json.encode(schema).decode()


def asking_again(problem: str) -> str:
    """What a model reads whose reply doesn't match."""
    return f"This reply doesn't match the JSON schema: {problem} Reply again, with the whole JSON value only."


def with_repair(
    messages: tuple[ModelMessage, ...], reply: tuple[ModelMessage, ...], problem: str
) -> tuple[ModelMessage, ...]:
    """The messages that ask again: with the reply, unless it was empty, and what doesn't match in it."""
    asked = TextBlock(asking_again(problem))
    if reply:
        return (*messages, *reply, ModelMessage("user", (asked,)))
    *earlier, last = messages
    return (*earlier, ModelMessage(last.role, (*last.blocks, asked)))
