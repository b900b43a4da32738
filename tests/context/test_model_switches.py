"""Conversations that change models in the middle: every request is valid for the model that gets it."""

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.context.histories import AT, Conversation, call
from tests.gateways.asking import APIS, WIRES
from threadkeep.context.attachments import with_contents
from threadkeep.context.call_ids import CallIds
from threadkeep.context.cards import CardStyle
from threadkeep.context.request import ContextRules, Sources, build_request
from threadkeep.domain.file import PNG
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.image import ImageTokenRule
from threadkeep.domain.message import MessageRole, MessageStatus
from threadkeep.domain.parts import FilePart, Part, TextPart, ThoughtPart, ToolCallPart, UserTextPart
from threadkeep.domain.payload import Lost
from threadkeep.domain.tool_call import ToolCallStatus
from threadkeep.domain.uploaded_file import FOR_MODEL
from threadkeep.engine.model_call import FinishedCall, ModelCall, ModelReads, with_user_text
from threadkeep.engine.tools import clean_use
from threadkeep.gateways.encoding import encode
from threadkeep.gateways.quirks import ProviderQuirks
from threadkeep.ports.gateway import (
    ImageBlock,
    ModelRequest,
    TakenFiles,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolSpec,
    ToolUse,
)
from threadkeep.testing.provider_rules import (
    check_anthropic_request,
    check_openai_request,
    check_responses_request,
)

CHECKS = {
    "anthropic": check_anthropic_request,
    "openai": check_openai_request,
    "responses": check_responses_request,
}
TOOLS = (ToolSpec("sums__add", "Adds.", {"type": "object", "properties": {}}),)
PICTURE, DOCUMENT = b"\x89PNG and so on", b"%PDF-1.7 and so on"
CONTENTS: dict[PayloadId, bytes | Lost] = {
    PayloadId("image"): PICTURE,
    PayloadId("pdf"): DOCUMENT,
    PayloadId("lost"): Lost("The content is missing."),
}
IMAGE = FilePart(
    file_id=PayloadId("original"),
    file_name="dog\n.png",
    media_type=PNG,
    size=10,
    width=20,
    height=30,
    refs={FOR_MODEL: PayloadId("image")},
)
FILES = (
    IMAGE,
    replace(IMAGE, refs={FOR_MODEL: PayloadId("lost")}),
    FilePart(file_id=PayloadId("pdf"), file_name="plan.pdf", media_type="application/pdf", size=9, pages=1),
    FilePart(file_id=PayloadId("none"), file_name="a.zip", media_type="application/zip", size=9),
)


@dataclass(frozen=True)
class Chosen:
    """A model, and what it accepts."""

    wire: str
    name: str
    files: TakenFiles
    has_tools: bool

    @property
    def signer(self) -> str:
        return f"{self.wire}/{self.name}"


@dataclass(frozen=True)
class Said:
    """Something in a model's reply."""

    kind: str
    text: str
    arguments: dict[str, Any]
    outcome: ToolCallStatus
    returns_image: bool


@dataclass(frozen=True)
class Round:
    """One model call; perhaps repeated because it broke off, steered, or the last of its model."""

    said: Sequence[Said]
    broke_off: Sequence[Said]
    steer: str
    fallback: tuple[str, str] | None


@dataclass(frozen=True)
class Turn:
    """A question, and how a model replied."""

    question: str
    files: Sequence[FilePart]
    model: Chosen
    rounds: Sequence[Round]
    ended: MessageStatus


WORDS = st.sampled_from(["a", "b", " ", "\n", "工具", "😀", '"', "<thinking>", "[DONE]", "\x00"])
TEXT = st.lists(WORDS, max_size=4).map("".join)
NAMES = st.sampled_from(["m", "m2"])
ODD_IDS = ["call_1", "call_2", "", "a b", "x" * 65, "工具", "functions.add:0", "toolu_01", "\x00"]

MOSTLY = st.sampled_from([True, True, True, False])
TAKEN = st.builds(TakenFiles, images=st.sampled_from([None, *ImageTokenRule]), pdfs=st.booleans())
MODELS = st.builds(Chosen, wire=st.sampled_from(WIRES), name=NAMES, files=TAKEN, has_tools=MOSTLY)
SAID = st.builds(
    Said,
    kind=st.sampled_from(["call", "signed", "text", "thought", "call", "signed"]),
    text=st.one_of(TEXT, st.sampled_from(ODD_IDS)),
    arguments=st.dictionaries(TEXT, st.one_of(TEXT, st.integers(), st.none()), max_size=2),
    outcome=st.sampled_from(list(ToolCallStatus)),
    returns_image=st.booleans(),
)
ROUNDS = st.builds(
    Round,
    said=st.one_of(st.lists(SAID, min_size=3, max_size=5), st.lists(SAID, max_size=2)),
    broke_off=st.one_of(st.just(()), st.lists(SAID, max_size=2)),
    steer=st.one_of(st.just(""), TEXT.map(lambda text: "s" + text)),
    fallback=st.one_of(st.none(), st.tuples(st.sampled_from(WIRES), NAMES)),
)
TURNS = st.builds(
    Turn,
    question=TEXT.map(lambda text: "q" + text),
    files=st.lists(st.sampled_from(FILES), max_size=2),
    model=MODELS,
    rounds=st.lists(ROUNDS, min_size=2, max_size=4),
    ended=st.sampled_from([MessageStatus.COMPLETED, MessageStatus.FAILED, MessageStatus.CANCELLED]),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(turns=st.lists(TURNS, min_size=1, max_size=4), thoughts=st.booleans())
async def test_every_request_suits_the_model_that_gets_it(turns: Sequence[Turn], thoughts: bool):
    conversation = Conversation()
    for turn in turns:
        question = conversation.add(MessageRole.USER, (TextPart(text=turn.question), *turn.files))
        rules = ContextRules(
            cards=CardStyle(), context_tokens=100_000, thoughts=thoughts, files=turn.model.files
        )
        tools = TOOLS if turn.model.has_tools else ()
        sources = Sources(path=conversation.messages, question_id=question.id, tools=tools, payloads={})
        built = build_request(replace(sources, cache_key="c"), rules)
        running = RunningTurn(turn.model, with_contents(built.request, CONTENTS), f"t{question.seq}")
        parts = [part for number, it in enumerate(turn.rounds, 1) for part in await running.go_on(number, it)]
        said = any(isinstance(it, TextPart) and not it.superseded for it in parts)
        conversation.add(MessageRole.ASSISTANT, tuple(parts), turn.ended if said else MessageStatus.FAILED)


class RunningTurn:
    """A turn that goes on as long as its model calls tools, as the engine does it."""

    def __init__(self, model: Chosen, request: ModelRequest, turn_id: str) -> None:
        self._model = model
        self._request = request
        self._turn_id = turn_id
        self._call_ids = CallIds(request.messages)
        self._is_over = False
        self._signed = 0

    async def go_on(self, number: int, round_: Round) -> list[Part]:
        """A model call and its tools; returns what is stored of them."""
        if self._is_over:
            return []
        check_request(self._model, replace(self._request, model=self._model.name))
        broken = await self._reply(number, round_.broke_off)
        stored = [replace(part, superseded=True) for part in self._parts(number, broken, round_.broke_off)]
        finished = await self._reply(number, round_.said)
        stored += self._parts(number, finished, round_.said)
        self._is_over = not finished.tool_uses
        if self._is_over:
            return stored
        reads = list(self._reads(finished, round_.said))
        messages = finished.with_results(reads, as_blocks=self._model.has_tools)
        contents = {"image": PICTURE} if self._model.files.images else {}
        self._request = replace(
            self._request,
            messages=(*self._request.messages, *messages),
            contents={**self._request.contents, **contents},
        )
        if round_.steer:
            steered = with_user_text(self._request.messages, round_.steer)
            self._request = replace(self._request, messages=steered)
            stored.append(UserTextPart(message_id="s", text=round_.steer, at=AT, iteration=number))
        if round_.fallback:  # takes the request as it is
            wire, name = round_.fallback
            self._model = replace(self._model, wire=wire, name=name)
        check_request(self._model, replace(self._request, model=self._model.name))
        return stored

    async def _reply(self, number: int, said: Sequence[Said]) -> FinishedCall:
        reply = ModelCall(self._model.signer)
        for it in said:
            match it.kind:
                case "text":
                    reply.add_text(it.text)
                case "thought" | "signed":
                    reply.add_thought(it.text)
                    reply.end_thought(self._signature() if it.kind == "signed" else "")
                case _:
                    use = ToolUse(it.text, it.text, it.arguments)
                    reply.add_tool_use(await self._call_ids.settle(clean_use(use)))
        return reply.finished(number)

    def _signature(self) -> str:
        """What this provider signs with; chat completions sign nothing."""
        self._signed += 1
        signature = f"rs_{self._turn_id}_{self._signed}:{self._model.signer}"
        return "" if self._model.wire == "openai" else signature

    def _parts(self, number: int, finished: FinishedCall, said: Sequence[Said]) -> Iterator[Part]:
        outcomes = iter([it for it in said if it.kind == "call"])
        for block in finished.blocks:
            match block:
                case TextBlock(text):
                    yield TextPart(text=text, iteration=number)
                case ThinkingBlock(text):
                    yield ThoughtPart(text=text, started_at=AT, iteration=number)
                case ToolUse():
                    outcome = next(outcomes)
                    done = call(
                        block.id,
                        outcome.text,
                        turn=self._turn_id,
                        status=outcome.outcome,
                        arguments=dict(block.arguments),
                        model_name=block.name,
                    )
                    yield ToolCallPart(call=done, iteration=number)
                    if outcome.returns_image:
                        yield replace(IMAGE, tool_call_id=block.id, iteration=number)

    def _reads(self, finished: FinishedCall, said: Sequence[Said]) -> Iterator[ModelReads]:
        outcomes = [it for it in said if it.kind == "call"]
        for use, outcome in zip(finished.tool_uses, outcomes, strict=True):
            text = outcome.text if self._model.has_tools else "There is no such tool."
            result = ToolResultBlock(use.id, text, outcome.outcome is not ToolCallStatus.OK)
            image = ImageBlock("image", "drawn.png", 1, use.id)
            yield (result, image) if outcome.returns_image and self._model.files.images else (result,)


def check_request(model: Chosen, request: ModelRequest) -> None:
    """Checks a request as the model's provider would, and that it tells nobody else's secrets."""
    for quirks in (ProviderQuirks(), ProviderQuirks(takes_encrypted_reasoning=False)):
        content = encode(APIS[model.wire].body(request, model.signer, quirks))
        problems = CHECKS[model.wire](json.loads(content))
        assert not problems, (model, problems)
        sent = content.decode()
        for message in request.messages:
            for block in message.blocks:
                if isinstance(block, ThinkingBlock) and block.signed_by != model.signer:
                    assert block.signature not in sent
                    assert block.signature.partition(":")[0] not in sent
        assert model.files.images or b64encode(PICTURE).decode() not in sent
        assert model.files.pdfs or b64encode(DOCUMENT).decode() not in sent
