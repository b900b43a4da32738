"""Replies that are to be JSON: how a model is asked for it, and asked again."""

from collections.abc import Mapping
from typing import Any

import msgspec

_JSON_ONLY = "Reply with one JSON value, and nothing else, that matches this JSON schema:\n"


def asking_for(schema: Mapping[str, Any], system: str) -> str:
    """A system prompt that also asks for JSON of a schema."""
    asked = _JSON_ONLY + msgspec.json.encode(schema).decode()
    return f"{system}\n\n{asked}" if system else asked


def asking_again(problem: str) -> str:
    """What a model reads whose reply doesn't match."""
    return f"This reply doesn't match the JSON schema: {problem} Reply again, with the whole JSON value only."


def json_in(text: str) -> bytes:
    """The JSON of a reply, which models put between fences."""
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.partition("\n")[2].removesuffix("```")
    return bare.strip().encode()
