"""Replies and the logs of their turns: each can be made from the other."""

from dataclasses import replace

from threadkeep.domain.events import Done, EventBody, Failed, Text, TurnEvent, TurnStart
from threadkeep.domain.message import Message, MessageStatus, Usage
from threadkeep.domain.turn import Turn
from threadkeep.engine.fold import fold
from threadkeep.log.format import decode_chunk, encode_replayed
from threadkeep.ports.turn_log import LogChunk, TurnLogStore


async def written_so_far(log: TurnLogStore, message: Message) -> Message:
    """A reply that is being written, as far as its turn's log goes; any other message as it is."""
    if message.completed_at is not None or message.turn_id is None:
        return message
    chunks = await log.read(message.turn_id, 0)
    return fold(message, (event for chunk in chunks for event in decode_chunk(chunk.events)))


def replayed(turn: Turn, reply: Message) -> LogChunk:
    """The events of a turn whose log is gone, as far as its message remembers them."""
    end = Done("COMPLETED", reply.id, reply.usage or Usage(0, 0), "end_turn")
    if reply.error is not None:
        end = Failed(reply.error.code, reply.error.message, reply.error.retryable)
    elif reply.status is MessageStatus.CANCELLED:
        end = replace(end, status="CANCELLED", stop_reason="aborted")
    bodies: list[EventBody] = [TurnStart.of(turn)]
    if isinstance(reply.content, str) and reply.content:
        bodies.append(Text(reply.content))
    at = turn.ended_at or turn.started_at
    events = [TurnEvent(turn.id, seq, at, body) for seq, body in enumerate([*bodies, end], 1)]
    return LogChunk(turn.id, 1, len(events), encode_replayed(events))
