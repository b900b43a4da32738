"""What pages show of stored tool calls: with the values that are in the payload store."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from threadkeep.domain.ids import ConversationId, PayloadId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import ToolCallPart, with_calls
from threadkeep.domain.tool_call import ToolCall, shown_refs
from threadkeep.log.values import load_values
from threadkeep.ports.messages import ToolRecord
from threadkeep.ports.payloads import PayloadStore

MOST_TAKEN_APART_BYTES = 64 * 1024


async def shown_messages(store: PayloadStore, messages: Sequence[Message]) -> Sequence[Message]:
    """Messages as pages show them, with their tools' results."""
    refs = [(it.conversation_id, ref) for it in messages for call in _calls(it) for ref in _refs(call)]
    if not refs:
        return messages
    found = await _load(store, refs)
    return [
        replace(message, parts=with_calls(message.parts, lambda call: _shown(call, found)))
        for message in messages
    ]


async def shown_records(store: PayloadStore, records: Sequence[ToolRecord]) -> Sequence[ToolRecord]:
    """Tool calls as pages show them, with their arguments and results."""
    found = await _load(store, [(it.conversation_id, ref) for it in records for ref in _refs(it.call)])
    return [replace(record, call=_shown(record.call, found)) for record in records]


async def _load(
    store: PayloadStore, refs: Sequence[tuple[ConversationId, PayloadId]]
) -> Mapping[PayloadId, bytes]:
    """Values by their ids, each from the conversation that names it."""
    found: dict[PayloadId, bytes] = {}
    for conversation_id in dict.fromkeys(it for it, _ in refs):
        own = (ref for it, ref in refs if it == conversation_id)
        found |= await load_values(store, conversation_id, own)
    return found


def _refs(call: ToolCall) -> Collection[PayloadId]:
    return shown_refs(call.refs).values()


def _calls(message: Message) -> Iterator[ToolCall]:
    """All tool calls of a message, including those of superseded model calls."""
    return (part.call for part in message.parts if isinstance(part, ToolCallPart))


def _shown(call: ToolCall, found: Mapping[PayloadId, bytes]) -> ToolCall:
    values = {name: _value(found[ref]) for name, ref in shown_refs(call.refs).items()}
    return replace(call, **values, refs={}) if values else call


def _value(content: bytes) -> Any:
    """Large values stay encoded JSON: decoding them would delay every turn, and they are only passed on."""
    return msgspec.Raw(content) if len(content) > MOST_TAKEN_APART_BYTES else msgspec.json.decode(content)
