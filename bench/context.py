"""What a turn pays for its request, and how much of it a provider's prompt cache can reuse."""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from tests.context.histories import Conversation, call

from bench.measure import Effort
from bench.table import Aim, Times
from threadkeep.context.cards import CardStyle
from threadkeep.context.history import Rendering
from threadkeep.context.prompt import Component
from threadkeep.context.request import ContextRules, Sources, build_request
from threadkeep.domain.message import Message, MessageStatus
from threadkeep.domain.parts import Part, TextPart, ToolCallPart
from threadkeep.domain.receipt import Receipt
from threadkeep.gateways.encoding import encode
from threadkeep.gateways.openai import openai_body
from threadkeep.ports.gateway import ModelRequest, ToolSpec

TOOLS = tuple(
    ToolSpec(f"server__tool_{number}", "Looks something up. " * 5, {"type": "object", "properties": {}})
    for number in range(10)
)
PROMPT = Component("systemPrompt", "You answer briefly and name your sources. " * 40)
ROWS = [{"region": f"region {number}", "sum": number * 11} for number in range(8)]
TURNS, CALLS = 30, 3
AIM = Aim("≤", 3_000, "P50")


def _add_pair(conversation: Conversation, number: int) -> None:
    """A question, and an answer of three model calls with two tool calls in each of the first two."""
    conversation.ask(f"How did region {number} do last year, and why? " * 3)
    parts: list[Part] = []
    for iteration in (1, 2):
        parts.append(TextPart(text="I look that up first. " * 3, iteration=iteration))
        parts += [
            ToolCallPart(
                call=call(
                    f"call_{number}_{iteration}_{which}",
                    {"rows": ROWS},
                    arguments={"query": f"region {number}", "year": 2026},
                    model_name="server__tool_1",
                ),
                iteration=iteration,
            )
            for which in range(2)
        ]
    conversation.reply(*parts, TextPart(text="It grew, mostly in the second half. " * 15, iteration=3))


def _sources(path: Sequence[Message], prior: Receipt | None = None) -> Sources:
    return Sources(
        path=path, question_id=path[-1].id, components=[PROMPT], tools=TOOLS, prior=prior, model="m"
    )


def _long() -> tuple[Sources, ContextRules]:
    """200 messages with 400 tool calls, and room for all of them."""
    conversation = Conversation()
    for number in range(100):
        _add_pair(conversation, number)
    conversation.ask("And now?")
    return _sources(conversation.messages[-200:]), ContextRules(cards=CardStyle(), context_tokens=1_000_000)


async def build_forever() -> None:
    """Makes the request again and again, to be watched; prints a line when it begins."""
    sources, rules = _long()
    print(flush=True)
    while True:
        build_request(sources, rules)


def _build_times(effort: Effort) -> list[float]:
    """Microseconds of processor time for a request of 200 messages with 400 tool calls."""
    sources, rules = _long()
    times: list[float] = []
    for _ in range(max(effort.read_rounds, 50)):
        begun = time.thread_time()
        build_request(sources, rules)
        times.append((time.thread_time() - begun) * 1e6)
    return times


def _prefix_share() -> float:
    """How much of the input of turns 2 to 30 is the beginning that a request shares with the previous one."""
    conversation, bodies = Conversation(), list[bytes]()
    rules = ContextRules(cards=CardStyle(), context_tokens=200_000, context_messages=20, result_tokens=32_000)
    prior, first_turn = None, 0
    for number in range(TURNS):
        _add_pair(conversation, number)
        reply = conversation.messages.pop()
        built = build_request(_sources(conversation.messages[-20:], prior), rules)
        bodies += [_body(built.request, reply, calls) for calls in range(CALLS)]
        conversation.messages.append(reply)
        prior, first_turn = built.receipt, first_turn or len(bodies)
    shared = [_common(before, after) for before, after in pairwise(bodies)]
    return sum(shared[first_turn - 1 :]) / sum(map(len, bodies[first_turn:]))


def _body(request: ModelRequest, reply: Message, calls: int) -> bytes:
    """The request of a turn's next model call, after some calls of the model and their tools."""
    parts = tuple(it for it in reply.parts if it.iteration <= calls)
    made = replace(reply, parts=parts, status=MessageStatus.STREAMING)
    said = Rendering(CardStyle(), thoughts=False, calls_as_blocks=True).messages_of(made) if calls else []
    return encode(openai_body(replace(request, messages=(*request.messages, *said)), "m"))


def _common(before: bytes, after: bytes) -> int:
    return next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))


async def measure(effort: Effort, databases: Sequence[str]) -> Sequence[Times]:
    """Building a request, and what of it stays the same from turn to turn."""
    times = _build_times(effort)
    share = _prefix_share()
    return [
        Times.of("request of 200 messages with 400 tool calls", times, unit="µs", aim=AIM),
        Times.of(f"beginning shared with the previous request, {TURNS} turns", [share * 100], unit="%"),
    ]
