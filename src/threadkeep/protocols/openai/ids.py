"""OpenAI's ids, made of ours: a prefix, and a UUID without its dashes."""

import re
from uuid import UUID

from threadkeep.domain.ids import ConversationId, MessageId, PayloadId, TurnId

_RESPONSE = re.compile(r"resp_([0-9a-f]{32})(?:_([2-9]|[1-9][0-9]{1,3}))?")
_ITEM = re.compile(r"(?:msg|rs|fs|mcp|fc)_([0-9a-f]{32})(?:_.{1,200})?")
_UUID = re.compile(r"[0-9a-f]{32}")


def response_id(turn_id: TurnId, part: int = 1) -> str:
    """The id of a part of a turn, counted from 1."""
    return _numbered(f"resp_{_plain(turn_id)}", part)


def parse_response_id(id_: str) -> tuple[TurnId, int] | None:
    """The turn, and which part of it; None for what can't be a response of ours."""
    found = _RESPONSE.fullmatch(id_)
    return (TurnId(_dashed(found[1])), int(found[2] or 1)) if found else None


def conversation_id(id_: ConversationId) -> str:
    """The id of a conversation."""
    return f"conv_{_plain(id_)}"


def parse_conversation_id(id_: str) -> str:
    """Our id of a conversation, which may also be given as it is."""
    return _ours(id_, "conv_")


def message_item_id(id_: MessageId) -> str:
    """The id of a message that no turn wrote: a user's, or a reply that was added."""
    return f"msg_{_plain(id_)}"


def approval_id(request_id: str) -> str:
    """The id of a request to approve a call."""
    return f"mcpr_{_plain(request_id)}"


def parse_approval_id(id_: str) -> str:
    """Our id of a request."""
    return _ours(id_, "mcpr_")


def file_id(id_: PayloadId) -> str:
    """The id of a file."""
    return f"file-{_plain(id_)}"


def parse_file_id(id_: str) -> str:
    """Our id of a file, which may also be given as it is."""
    return _ours(id_, "file-")


def owner_of_item(id_: str) -> str | None:
    """The id of the turn or message that an item belongs to; None if the item's id doesn't say."""
    found = _ITEM.fullmatch(id_)
    return _dashed(found[1]) if found else None


class ItemIds:
    """The ids of the items of one turn, in the order in which they appear."""

    def __init__(self, turn_id: TurnId) -> None:
        self._turn = _plain(turn_id)
        self._counts: dict[str, int] = {}

    def next(self, prefix: str) -> str:
        """The id of the next item of a kind that has no id of its own."""
        count = self._counts[prefix] = self._counts.get(prefix, 0) + 1
        return _numbered(f"{prefix}_{self._turn}", count)

    def of_call(self, prefix: str, tool_call_id: str) -> str:
        """The id of a call's item."""
        return f"{prefix}_{self._turn}_{tool_call_id}"


def _numbered(id_: str, number: int) -> str:
    return id_ if number == 1 else f"{id_}_{number}"


def _plain(id_: str) -> str:
    return id_.replace("-", "")


def _dashed(digits: str) -> str:
    return str(UUID(digits))


def _ours(id_: str, prefix: str) -> str:
    """Our id; what isn't one stays as it is, and nobody will find it."""
    digits = id_.removeprefix(prefix)
    return _dashed(digits) if _UUID.fullmatch(digits) else id_
