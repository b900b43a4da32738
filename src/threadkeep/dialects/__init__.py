"""Ways to tell a turn to a client: pure mappings from events to frames. They know the domain only."""

from collections.abc import Callable, Mapping

from threadkeep.dialects.agentx import AGENTX
from threadkeep.dialects.events import EVENTS, decode_chunk, frames_of_chunk
from threadkeep.dialects.sse import START, Dialect, Position, TurnContext
from threadkeep.dialects.text import TEXT

DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in (EVENTS, TEXT, AGENTX)}


def chunk_encoder(
    dialect: Dialect, turn: TurnContext, after: Position = START
) -> Callable[[int, str], bytes]:
    """Makes a reader's frames of stored chunks: of their first seq and their text, in order."""
    if dialect is EVENTS:
        return lambda first_seq, events_text: frames_of_chunk(first_seq, events_text, after.seq)
    encoder = dialect.start(turn, after)
    return lambda first_seq, events_text: b"".join(map(encoder.encode, decode_chunk(events_text)))
