"""A turn's journal: what only the server needs to resume it.

It is stored with the log in the same commits. Entries have no numbers, and clients never see them.
"""

from typing import Any

from msgspec import Struct

from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.ports.gateway import TextBlock, ThinkingBlock


class UseNoted(Struct, frozen=True, omit_defaults=True, tag="use"):
    """Where in its reply the model asked for a tool; the call's event has the rest."""

    id: str
    problem: str | None = None


class CallFinished(Struct, frozen=True, omit_defaults=True, tag="call"):
    """A model call is complete. The blocks are sent back with the results of its tools."""

    iteration: int
    stop_reason: str
    blocks: tuple[TextBlock | ThinkingBlock | UseNoted, ...] = ()


class Dispatch(Struct, frozen=True, omit_defaults=True):
    """A call about to be passed to its tool, and the tool's effect if known."""

    id: str
    effect: ToolEffect = ToolEffect.WRITE
    attempt: int = 1


class Dispatched(Struct, frozen=True, tag="dispatched"):
    """Calls that their tools receive as soon as this is stored."""

    calls: tuple[Dispatch, ...]


class InputNoted(Struct, frozen=True, omit_defaults=True):
    """One question of a server to the user about a call, and the id of its request."""

    key: str
    request_id: str
    message: str
    schema: dict[str, Any] | None = None
    url: str | None = None


class InputAwaited(Struct, frozen=True, tag="input"):
    """A call returned because its server needs this input, and then the call again with `state`."""

    id: str
    state: str
    requests: tuple[InputNoted, ...]


class ModelChosen(Struct, frozen=True, tag="model"):
    """From here on, this model replies: the one before it failed."""

    model: str


class BegunByAdmin(Struct, frozen=True, tag="begun_by_admin"):
    """The turn's user was an admin when it began."""


JournalEntry = CallFinished | Dispatched | InputAwaited | ModelChosen | BegunByAdmin
JOURNAL_ENTRIES = (CallFinished, Dispatched, InputAwaited, ModelChosen, BegunByAdmin)
