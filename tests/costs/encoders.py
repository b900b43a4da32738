"""The encoders of other protocols, each fed with a stored turn of 500 pieces: no server, no thread."""

from collections.abc import Callable, Mapping
from functools import partial

from tests.costs.paths import Prepare, Run
from tests.protocols.recorded import BEGINNING, COMPLETED, CONTEXT, turn
from threadkeep.domain.events import LogChunk, Text, Thought, TurnEvent
from threadkeep.log.format import encode_chunk
from threadkeep.protocols.ag_ui import encode as ag_ui
from threadkeep.protocols.agentx.encode import AGENTX
from threadkeep.protocols.ai_sdk.encode import UIMessageStream
from threadkeep.protocols.ai_sdk.parts import Reader
from threadkeep.protocols.openai.completions_encode import CompletionEncoder, CompletionHead
from threadkeep.protocols.openai.encode import ResponseEncoder, ResponseHead

Encode = Callable[[LogChunk], bytes]

PIECES = ([Text("word "), Thought("thought ")] * 50) + [Text("word ")] * 400


def _chunk(events: list[TurnEvent]) -> LogChunk:
    return LogChunk(CONTEXT.turn_id, events[0].seq, events[-1].seq, encode_chunk(events))


_EVENTS = turn(*BEGINNING, *PIECES, COMPLETED)
_LAST = len(BEGINNING)
_CHUNKS = [_chunk(_EVENTS[:_LAST]), _chunk(_EVENTS[_LAST:-1]), _chunk(_EVENTS[-1:])]


def _ag_ui() -> Encode:
    run = ag_ui.Run(thread_id="thread", run_id="run", is_1_0=True)
    return ag_ui.RunEncoder(run, CONTEXT.turn_id, CONTEXT.message_id).encode_chunk


def _ai_sdk() -> Encode:
    return UIMessageStream(CONTEXT, Reader(6, "http://here")).encode_chunk


def _responses() -> Encode:
    head = ResponseHead(turn_id=CONTEXT.turn_id, part=1, created_at=0, model="assistant", metadata={})
    return ResponseEncoder(head).encode_chunk


def _chat_completions() -> Encode:
    return CompletionEncoder(CompletionHead("chatcmpl-1", 1_800_000_000, "Advisor")).encode_chunk


def _agentx() -> Encode:
    return AGENTX.start(CONTEXT).encode_chunk


async def _prepare(start: Callable[[], Encode]) -> Run:
    encode = start()

    async def run() -> None:
        for chunk in _CHUNKS:
            encode(chunk)

    return run


ENCODERS: Mapping[str, Prepare] = {
    f"500 pieces for {name}": partial(_prepare, start)
    for name, start in {
        "AgentX": _agentx,
        "the AI SDK": _ai_sdk,
        "AG-UI": _ag_ui,
        "Responses": _responses,
        "chat completions": _chat_completions,
    }.items()
}
"""By name, like the hot paths."""
