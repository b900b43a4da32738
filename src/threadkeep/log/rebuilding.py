"""Replies of version 1 in parts, from the logs of their turns: only these know what came before what."""

from collections.abc import Sequence
from itertools import pairwise

from threadkeep.domain.errors import ThreadkeepError
from threadkeep.domain.message import Message
from threadkeep.domain.parts import TextPart, ThoughtStep
from threadkeep.engine.fold import fold
from threadkeep.log.format import decode_chunk
from threadkeep.ports.turn_log import LogChunk


def rebuild(reply: Message, chunks: Sequence[LogChunk]) -> Message:
    """A finished reply as its turn's log describes it, or as it is where the log is gone or disagrees."""
    if not _is_whole(chunks):
        return reply
    try:
        folded = fold(reply, [event for chunk in chunks for event in decode_chunk(chunk.events)])
    except (ThreadkeepError, LookupError):  # a log that nobody can read
        return reply
    return folded if _shown(folded) == _shown(reply) else reply


def _is_whole(chunks: Sequence[LogChunk]) -> bool:
    if not chunks or chunks[0].first_seq != 1:
        return False
    return all(after.first_seq == before.last_seq + 1 for before, after in pairwise(chunks))


def _shown(reply: Message) -> tuple[object, ...]:
    """What must be the same; the times of steps and the blank lines between texts need not."""
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
