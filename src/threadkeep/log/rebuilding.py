"""Rebuilds version 1 replies as parts, from their turns' logs: only these know the order."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.message import Message
from threadkeep.domain.parts import Parts, RetrievalPart, TextPart, ThoughtStep
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.engine.fold import fold
from threadkeep.log.format import decode_chunk
from threadkeep.ports.turn_log import LogChunk


def rebuild(reply: Message, chunks: Sequence[LogChunk]) -> Message:
    """A finished reply as its turn's log describes it; unchanged if the log is missing or disagrees."""
    if not is_whole(chunks):
        return reply
    try:
        folded = fold(reply, [event for chunk in chunks for event in decode_chunk(chunk.events)])
    except (ThreadkeepError, LookupError):  # an unreadable log
        return reply
    folded = replace(folded, parts=_with_every_number(folded.parts))
    return folded if _shown(folded) == _shown(reply) else reply


def _with_every_number(parts: Parts) -> Parts:
    """Parts in which a chunk that was found again has its own number: version 1 cited it by that."""
    seen: set[str | None] = set()
    return tuple(
        replace(part, hits=tuple(_unless_seen(hit, seen) for hit in part.hits))
        if isinstance(part, RetrievalPart)
        else part
        for part in parts
    )


def _unless_seen(hit: RetrievalHit, seen: set[str | None]) -> RetrievalHit:
    if hit.chunk_id in seen:
        return replace(hit, chunk_id=None)
    seen.add(hit.chunk_id)
    return hit


def is_whole(chunks: Sequence[LogChunk]) -> bool:
    """Whether a log is complete, up to its end."""
    if not chunks or chunks[0].first_seq != 1:
        return False
    return all(after.first_seq == before.last_seq + 1 for before, after in pairwise(chunks))


def _shown(reply: Message) -> tuple[object, ...]:
    """What must be equal; step times and blank lines between texts may differ."""
    return (
        reply.status,
        "".join(part.text for part in reply.parts if isinstance(part, TextPart)),
        [_without_times(step) for step in reply.thought_process],
        reply.citations,
        sorted(reply.artifact_ids),
        [(call.tool_call_id, call.status) for call in reply.tool_calls],
    )


def _without_times(step: ThoughtStep) -> tuple[object, ...]:
    return step.kind, step.title, step.detail, step.tool_call_id
