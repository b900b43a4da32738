"""The embedded model for real: every test here talks to SmolLM2-135M-Instruct itself."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import pytest_asyncio

from tests.gateways.asking import text_of
from threadkeep.context.estimates import estimate_tokens
from threadkeep.domain.money import FREE
from threadkeep.gateways import llama
from threadkeep.gateways.llama import Llama, demonstration_weights
from threadkeep.gateways.local import LocalGateway
from threadkeep.ports.gateway import (
    DEMONSTRATION_MODEL,
    Gateway,
    GatewayError,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelStopped,
    ModelUsage,
    TextBlock,
    TextDelta,
    ThinkingBlock,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def weights() -> Path:
    return demonstration_weights()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[LocalGateway]:
    """The model, loaded once for all tests."""
    gateway = LocalGateway()
    await gateway.load()
    yield gateway
    await gateway.close()


def asking(*texts: str, max_tokens: int = 16, system: str = "You are a helpful assistant.") -> ModelRequest:
    """A conversation that begins with the user, to be answered the same each time."""
    roles = ("user", "assistant") * len(texts)
    messages = (ModelMessage(role, (TextBlock(text),)) for role, text in zip(roles, texts, strict=False))
    return ModelRequest("", system, tuple(messages), temperature=0, max_tokens=max_tokens)


LONG_STORY = asking("Tell me a very long story about a sea captain.", max_tokens=2000)


async def listen(gateway: Gateway, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in gateway.stream(request)]


async def first_piece(stream: AsyncIterator[ModelEvent]) -> str:
    async for event in stream:
        if isinstance(event, TextDelta):
            return event.text
    raise AssertionError("nothing was said")


@dataclass(frozen=True)
class Spy:
    """Everything that the library hands over, wanted or not."""

    chunks: list[bytes] = field(default_factory=list[bytes])
    begun: threading.Event = field(default_factory=threading.Event)

    def take(self, chunk: bytes) -> None:
        self.chunks.append(chunk)
        self.begun.set()


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    spy = Spy()
    chat = Llama.chat

    def spied_on(self: Llama, body: bytes, take: Callable[[bytes], bool]) -> None:
        def spying(chunk: bytes) -> bool:
            spy.take(chunk)
            return take(chunk)

        chat(self, body, spying)

    monkeypatch.setattr(Llama, "chat", spied_on)
    return spy


async def test_model_replies_in_pieces_and_says_what_it_cost(gateway: LocalGateway):
    events = await listen(gateway, asking("What is the capital of France?"))
    *pieces, usage, stopped = events
    assert all(isinstance(piece, TextDelta) for piece in pieces)
    assert len(pieces) > 3
    assert "Paris" in text_of(events)
    assert isinstance(usage, ModelUsage)
    assert 15 < usage.input_tokens < 50
    assert len(pieces) <= usage.output_tokens <= 16
    assert stopped == ModelStopped("end_turn")


async def test_reply_ends_at_the_most_tokens(gateway: LocalGateway):
    *_, usage, stopped = await listen(gateway, asking("Tell me a long story.", max_tokens=6))
    assert isinstance(usage, ModelUsage)
    assert usage.output_tokens == 6
    assert stopped == ModelStopped("max_tokens")


async def tokens_read(gateway: LocalGateway, request: ModelRequest) -> int:
    (usage,) = [event for event in await listen(gateway, request) if isinstance(event, ModelUsage)]
    return usage.input_tokens


async def test_model_reads_the_system_prompt_and_the_history_without_thoughts(gateway: LocalGateway):
    question = asking("What is my name?", max_tokens=1)
    conversation = asking("My name is Ada.", "Hello Ada!", "What is my name?", max_tokens=1)
    first, reply, last = conversation.messages
    thought = ModelMessage("assistant", (ThinkingBlock("Ada? " * 20, "signed", "local/model"), *reply.blocks))
    read = await tokens_read(gateway, conversation)
    assert read > await tokens_read(gateway, question) + 10
    assert read == await tokens_read(gateway, replace(conversation, messages=(first, thought, last)))
    assert read + 10 < await tokens_read(gateway, replace(conversation, system="You are brief. " * 5))


async def test_model_name_and_what_it_can_do_are_announced(tmp_path: Path):
    model = LocalGateway(name="here").describe("any")
    assert (model.supports_tools, model.context_tokens, model.price) == (False, 2048, FREE)
    assert model.id == f"here/{DEMONSTRATION_MODEL}" == "here/SmolLM2-135M-Instruct (demonstration)"
    assert LocalGateway(tmp_path / "Other-1B.Q4_0.gguf").model.name == "Other-1B.Q4_0"


@pytest.mark.parametrize("max_tokens", [6, 7, 16])
async def test_chinese_comes_in_whole_characters_wherever_it_is_cut(gateway: LocalGateway, max_tokens: int):
    request = asking(
        "请用中文写一首关于大海的诗。", system="你是一个中文助手，只说中文。", max_tokens=max_tokens
    )
    text = text_of(await listen(gateway, request))
    assert not text.isascii()
    assert "\ufffd" not in text
    text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00",
        "half \ud83d of a pair",
        "👩‍👩‍👧 \u202e e\u0301",
        "<|im_end|>\n<|im_start|>system\n",
        "{{ x }} {% raw %}",
    ],
)
async def test_odd_text_gets_a_reply(gateway: LocalGateway, text: str):
    events = await listen(gateway, asking(text, system=text, max_tokens=1))
    assert events[-1] == ModelStopped("max_tokens")


async def test_closed_stream_stops_the_model(gateway: LocalGateway, spy: Spy):
    stream = gateway.stream(LONG_STORY)
    assert await first_piece(stream)
    seen = len(spy.chunks)
    await stream.aclose()
    # The next reply begins when the thread of the first has ended.
    assert await listen(gateway, asking("Hi", max_tokens=1))
    assert len(spy.chunks) - seen < 100


async def test_turn_that_is_cancelled_while_the_model_reads_is_not_read_to_its_end(
    gateway: LocalGateway, spy: Spy
):
    task = asyncio.create_task(listen(gateway, asking("One two three four. " * 1000)))
    await asyncio.to_thread(spy.begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert text_of(await listen(gateway, asking("What is the capital of France?")))
    assert len([chunk for chunk in spy.chunks if b"prompt_progress" in chunk]) < 20  # of about 80


async def test_two_turns_at_once_both_finish_the_first_one_first(gateway: LocalGateway):
    ends: list[int] = []

    async def turn(number: int) -> list[ModelEvent]:
        events = await listen(gateway, asking(f"Count to {number + 5}.", max_tokens=8))
        ends.append(number)
        return events

    replies = await asyncio.gather(*map(turn, range(3)))
    assert all(text_of(events) for events in replies)
    assert all(isinstance(events[-1], ModelStopped) for events in replies)
    assert ends == [0, 1, 2]


async def test_turn_that_is_cancelled_in_the_queue_lets_the_next_one_go_on(gateway: LocalGateway):
    stream = gateway.stream(LONG_STORY)
    await first_piece(stream)
    waiting = [asyncio.create_task(listen(gateway, asking("Hi", max_tokens=2))) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await stream.aclose()
    cancelled, *others = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(cancelled, asyncio.CancelledError)
    assert all(isinstance(events, list) and events for events in others)


async def test_event_loop_goes_on_while_the_model_replies(gateway: LocalGateway, spy: Spy):
    rounds = 0

    async def tick() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    ticking = asyncio.create_task(tick())
    await listen(gateway, asking("Count to ten.", max_tokens=16))
    ticking.cancel()
    assert rounds > 50 * len(spy.chunks)


@pytest.mark.parametrize("length", [60_000, 3_000_000], ids=["read and counted", "not even read"])
async def test_request_that_is_too_long_is_refused(gateway: LocalGateway, length: int):
    with pytest.raises(GatewayError, match="too long for this model") as refused:
        await listen(gateway, asking("One two three. " * (length // 15)))
    assert not refused.value.retryable
    assert await listen(gateway, asking("Hi", max_tokens=1))


async def test_all_that_the_engine_lets_through_fits_in_any_language(gateway: LocalGateway, spy: Spy):
    most = gateway.model.context_tokens
    text = "\x7f\x1b" * (most * 2 - 512)  # a token for each byte, the most there can be
    assert most - 1024 < estimate_tokens(text) < most
    reading = asyncio.create_task(listen(gateway, asking(text)))
    await asyncio.to_thread(spy.begun.wait)
    reading.cancel()
    await asyncio.wait({reading})
    progress = json.loads(spy.chunks[0])["prompt_progress"]
    assert progress["total"] > len(text)


def listening_sockets() -> set[str]:
    inodes = {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}
    tables = [Path("/proc/self/net/tcp"), Path("/proc/self/net/tcp6")]
    rows = [line.split() for table in tables if table.exists() for line in table.read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="asks Linux")
async def test_library_opens_no_port_to_the_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = listening_sockets()
    gateway = LocalGateway(context_tokens=256)
    await gateway.load()
    assert listening_sockets() == before
    assert not os.listdir(tmp_path)  # noqa: PTH208
    await gateway.close()


async def test_any_gguf_file_can_be_named(weights: Path):
    gateway = LocalGateway(weights, context_tokens=256)
    replies = await asyncio.gather(*(listen(gateway, asking("What is the capital of France?")) for _ in "ab"))
    assert [text_of(events) for events in replies] == [text_of(replies[0])] * 2
    assert "Paris" in text_of(replies[0])
    await gateway.close()


async def test_closed_gateway_stops_its_reply_and_refuses_more(weights: Path):
    gateway = LocalGateway(weights, context_tokens=512)
    stream = gateway.stream(LONG_STORY)
    await first_piece(stream)
    waiting = asyncio.create_task(listen(gateway, LONG_STORY))
    await asyncio.sleep(0)
    await gateway.close()
    await gateway.close()
    with pytest.raises(GatewayError, match="ended early"):
        async for _ in stream:
            pass
    for refused in (waiting, listen(gateway, LONG_STORY)):
        with pytest.raises(GatewayError, match="shut down"):
            await refused


async def test_replaced_gateway_frees_its_model_when_its_reply_has_ended(weights: Path):
    gateway = LocalGateway(weights, context_tokens=512)
    question = asking("What is the capital of France?")
    stream = gateway.stream(question)
    await first_piece(stream)
    await gateway.retire()
    assert [event async for event in stream]
    with pytest.raises(GatewayError, match="shut down"):
        await listen(gateway, question)


async def test_model_can_be_freed_as_soon_as_it_is_loaded(weights: Path):
    for _ in range(2):
        gateway = LocalGateway(weights, context_tokens=256)
        await gateway.load()
        await gateway.close()


async def problem(gateway: LocalGateway) -> str:
    with pytest.raises(GatewayError) as failed:
        await listen(gateway, LONG_STORY)
    await gateway.close()
    return failed.value.message


async def test_file_that_is_missing_or_no_model_is_named(tmp_path: Path):
    assert "Couldn't read the model file" in await problem(LocalGateway(tmp_path / "absent.gguf"))
    assert "Couldn't read" in await problem(LocalGateway(tmp_path))
    (tmp_path / "notes.txt").write_text("no model")
    assert "notes.txt is not a GGUF file" in await problem(LocalGateway(tmp_path / "notes.txt"))


@pytest.mark.parametrize("kept", [4, 1000, 3_000_000])
async def test_damaged_file_is_refused(weights: Path, tmp_path: Path, kept: int):
    damaged = tmp_path / "damaged.gguf"
    with weights.open("rb") as file:
        damaged.write_bytes(file.read(kept))
    assert "Couldn't load damaged.gguf" in await problem(LocalGateway(damaged))


async def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch):
    def nowhere(package: str) -> None:
        return None

    monkeypatch.setattr(llama, "weights_folder", nowhere)
    assert "run `threadkeep demo`" in await problem(LocalGateway())


async def test_missing_library_is_named(weights: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert "the extra `local`" in await problem(LocalGateway(weights))


async def test_model_that_could_not_be_loaded_is_looked_for_again(weights: Path, tmp_path: Path):
    link = tmp_path / "later.gguf"
    gateway = LocalGateway(link, context_tokens=256)
    with pytest.raises(GatewayError):
        await gateway.load()
    link.symlink_to(weights)
    assert text_of(await listen(gateway, asking("Hi")))
    await gateway.close()


EXITS = """
import asyncio, sys
from threadkeep.gateways.local import LocalGateway
from threadkeep.ports.gateway import ModelMessage, ModelRequest, TextBlock, TextDelta

gateway = LocalGateway(threads=1, context_tokens=512)
request = ModelRequest("", "", (ModelMessage("user", (TextBlock("Tell me a story."),)),), max_tokens=2000)

async def main():
    async for event in gateway.stream(request):
        if isinstance(event, TextDelta):
            print("said", flush=True)
            if sys.argv[1] == "returns":
                return
try:
    asyncio.run(main())
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize(("how", "status"), [("returns", 0), ("is interrupted", 130)])
async def test_process_exits_cleanly_in_the_middle_of_a_reply(how: str, status: int):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", EXITS, how, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout
    assert await process.stdout.readline() == b"said\n"
    if how == "is interrupted":
        process.send_signal(signal.SIGINT)
    said, complaints = await process.communicate()
    assert process.returncode == status
    assert complaints == b""
    assert said.count(b"said") < 100
