"""An event costs no more in other people's protocols than in AgentX's, measured in the same run."""

from collections.abc import Callable

from tests.costs.measuring import Cost, measure
from tests.costs.paths import Run
from tests.protocols.recorded import BEGINNING, COMPLETED, CONTEXT, turn
from threadkeep.domain.events import LogChunk, Text, Thought
from threadkeep.log.format import encode_chunk
from threadkeep.protocols.ag_ui import encode as ag_ui
from threadkeep.protocols.agentx.encode import AGENTX
from threadkeep.protocols.ai_sdk.encode import UIMessageStream
from threadkeep.protocols.ai_sdk.parts import Reader
from threadkeep.protocols.openai.completions_encode import CompletionEncoder, CompletionHead
from threadkeep.protocols.openai.encode import ResponseEncoder, ResponseHead

EVENTS = turn(*BEGINNING, *[Text("word "), Thought("thought ")] * 50, *[Text("word ")] * 400, COMPLETED)
CHUNK = LogChunk(CONTEXT.turn_id, 1, len(EVENTS), encode_chunk(EVENTS))

Encode = Callable[[LogChunk], bytes]


def _ag_ui() -> Encode:
    run = ag_ui.Run(thread_id="thread", run_id="run", is_1_0=True)
    return ag_ui.RunEncoder(run, CONTEXT.turn_id, CONTEXT.message_id).encode_chunk


def _ai_sdk() -> Encode:
    return UIMessageStream(CONTEXT, Reader(6, "http://here")).encode_chunk


def _openai() -> Encode:
    head = ResponseHead(turn_id=CONTEXT.turn_id, part=1, created_at=0, model="assistant", metadata={})
    return ResponseEncoder(head).encode_chunk


def _chat_completions() -> Encode:
    return CompletionEncoder(CompletionHead("chatcmpl-1", 1_800_000_000, "Advisor")).encode_chunk


async def _cost(start: Callable[[], Encode]) -> Cost:
    async def prepare() -> Run:
        encode = start()

        async def run() -> None:
            encode(CHUNK)

        return run

    return await measure(prepare)


async def test_no_encoder_costs_more_than_that_of_agentx():
    agentx = await _cost(lambda: AGENTX.start(CONTEXT).encode_chunk)
    others = {start.__name__: await _cost(start) for start in (_ag_ui, _ai_sdk, _openai, _chat_completions)}
    assert {
        name: (cost, agentx) for name, cost in others.items() if cost.instructions > agentx.instructions
    } == {}
