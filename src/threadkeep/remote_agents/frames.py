"""AG-UI's events as another server sends them.

By hand, as what we send ourselves (`protocols/ag_ui/frames.py`): servers of all versions since 0.1 speak to
us, so nothing is required here that an older one leaves out, and what isn't known is passed over.
"""

from typing import Any

import msgspec
from msgspec import Struct


class Frame(Struct, frozen=True, rename="camel"):
    """Any event: each has some of these fields."""

    type: str
    message_id: str | None = None
    role: str | None = None
    delta: Any = None
    """Text of an event of text, operations of a change."""
    tool_call_id: str | None = None
    tool_call_name: str | None = None
    parent_message_id: str | None = None
    content: Any = None
    metadata: Any = None
    step_name: str | None = None
    name: str | None = None
    value: Any = None
    snapshot: Any = None
    messages: list[Any] | None = None
    message: str | None = None
    activity_type: str | None = None
    patch: Any = None
    outcome: Any = None
    subtype: str | None = None
    entity_id: str | None = None
    encrypted_value: str | None = None
    subagent_run_id: str | None = None
    title: str | None = None


class Interrupt(Struct, frozen=True, rename="camel"):
    """A request to the user, which the next run answers."""

    id: str
    reason: str = ""
    message: str | None = None
    tool_call_id: str | None = None
    response_schema: dict[str, Any] | None = None


class Interrupted(Struct, frozen=True):
    """The outcome of a run that waits for its user."""

    interrupts: list[Interrupt]


class RemoteMessage(Struct, frozen=True):
    """What every message of a snapshot has."""

    id: str
    role: str


decode_frame = msgspec.json.Decoder(Frame).decode
