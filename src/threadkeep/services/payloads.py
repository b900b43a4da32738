"""What pages show of stored tool calls: with the values that are in the payload store."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, takewhile
from typing import Any, TypeVar

import msgspec

from threadkeep.domain.ids import ConversationId, PayloadId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import ToolCallPart, with_calls
from threadkeep.domain.tool_call import ToolCall, ToolRecord, shown_refs
from threadkeep.log.values import load_values
from threadkeep.storage.payloads.database import SqlPayloads

MOST_TAKEN_APART_BYTES = 64 * 1024
MOST_VALUE_BYTES = 8 * 1024 * 1024
"""A page of messages or calls ends before the one whose values would be more; the first is always in it."""
MOST_VALUE_BYTES_OF_ONE = 32 * 1024 * 1024
"""What is shown of a single message with more; notes stand for its other values."""

_Shown = TypeVar("_Shown", Message, ToolRecord)
_Ref = tuple[ConversationId, PayloadId]


async def shown_messages(store: SqlPayloads, messages: Sequence[Message]) -> Sequence[Message]:
    """Messages as pages show them, with their tools' results."""
    refs = [ref for it in messages for ref in _refs_of(it)]
    if not refs:
        return messages
    found = await _load(store, refs)
    return await asyncio.to_thread(lambda: [_with_values(message, found) for message in messages])


async def shown_records(store: SqlPayloads, records: Sequence[ToolRecord]) -> Sequence[ToolRecord]:
    """Tool calls as pages show them, with their arguments and results."""
    found = await _load(store, [ref for it in records for ref in _refs_of(it)])
    return await asyncio.to_thread(
        lambda: [replace(record, call=_shown(record.call, found)) for record in records]
    )


async def fitting(store: SqlPayloads, items: Sequence[_Shown]) -> Sequence[_Shown]:
    """As many of the first messages or calls as a page has room for with their values; at least one."""
    refs = [_refs_of(it) for it in items]
    if not any(refs):
        return items
    sizes: dict[PayloadId, int] = {}
    for conversation_id, ids in _by_conversation(ref for its_refs in refs for ref in its_refs).items():
        sizes |= await store.sizes(conversation_id, ids)
    added_up = accumulate(sum(sizes.get(ref, 0) for _, ref in its_refs) for its_refs in refs)
    count = sum(1 for _ in takewhile(lambda size: size <= MOST_VALUE_BYTES, added_up))
    return items[: max(count, 1)]


async def _load(store: SqlPayloads, refs: Sequence[_Ref]) -> Mapping[PayloadId, bytes]:
    """Values by their ids, each from the conversation that names it."""
    found: dict[PayloadId, bytes] = {}
    for conversation_id, ids in _by_conversation(refs).items():
        found |= await load_values(store, conversation_id, ids, most_bytes=MOST_VALUE_BYTES_OF_ONE)
    return found


def _by_conversation(refs: Iterable[_Ref]) -> Mapping[ConversationId, Sequence[PayloadId]]:
    grouped: defaultdict[ConversationId, list[PayloadId]] = defaultdict(list)
    for conversation_id, ref in refs:
        grouped[conversation_id].append(ref)
    return grouped


def _refs_of(it: Message | ToolRecord) -> Sequence[_Ref]:
    calls = (it.call,) if isinstance(it, ToolRecord) else _calls(it)
    return [(it.conversation_id, ref) for call in calls if call.refs for ref in _refs(call)]


def _with_values(message: Message, found: Mapping[PayloadId, bytes]) -> Message:
    return replace(message, parts=with_calls(message.parts, lambda call: _shown(call, found)))


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
