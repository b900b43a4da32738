"""The embedded demonstration model, or any other GGUF file, in this process."""

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from threadkeep.domain.model import DEFAULT_GATEWAY, Model
from threadkeep.domain.money import FREE
from threadkeep.domain.text import storable
from threadkeep.gateways.encoding import decode, encode
from threadkeep.gateways.llama import Llama, demonstration_weights, open_llama
from threadkeep.gateways.outputs import NAME as OUTPUT_NAME
from threadkeep.gateways.outputs import is_strict
from threadkeep.ports.gateway import (
    DEMONSTRATION_MODEL,
    GatewayError,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelStopped,
    ModelUsage,
    TextBlock,
    TextDelta,
    ThoughtDelta,
)

DEFAULT_MAX_TOKENS = 512
DEMONSTRATION_MAX_TOKENS = 200
"""Such a small model has nothing more to say."""
REPEATED_CHARACTERS = 60
"""A reply that repeats this much is looping, and ends."""

_CHINESE = re.compile("[\u4e00-\u9fff]")
_SPEAKS_ENGLISH = {
    True: "这个演示模型很小，只会英文。请用英文提问，或者选择智能体 Guide，它会用中文展示各项功能。"
    "连接真正的模型后，就可以用中文对话。",
    False: "This small demonstration model only understands English. Ask in English, or choose the agent "
    "Guide for a tour. Connect a real model to write in any language.",
}

# The engine counts four bytes as a token, and no token is shorter than a byte: with this much room,
# what fits under `context_tokens` fits in any language.
_WINDOW_PER_CONTEXT_TOKEN = 4
_BYTES_PER_TOKEN_AT_MOST = 16  # of any text that people write; more is refused unread
# So small a model's second choices are poor, and it tends to loop.
_FOR_THE_DEMONSTRATION = {"temperature": 0.1, "top_p": 0.9, "dry_multiplier": 0.8, "dry_allowed_length": 4}

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


class LocalGateway:
    """A model in this process. Turns get their replies one at a time, first come, first served."""

    def __init__(
        self,
        model_path: Path | None = None,
        *,
        name: str = DEFAULT_GATEWAY,
        threads: int = 1,
        context_tokens: int = 2048,
    ) -> None:
        self._model_path = model_path
        self._threads = threads
        self.model = Model(
            gateway=name,
            name=model_path.stem if model_path else DEMONSTRATION_MODEL,
            context_tokens=context_tokens,
            supports_tools=False,
            price=FREE,
        )
        self._window = context_tokens * _WINDOW_PER_CONTEXT_TOKEN
        self._max_tokens = DEFAULT_MAX_TOKENS if model_path else DEMONSTRATION_MAX_TOKENS
        self._loading: asyncio.Future[Llama] | None = None
        self._free = asyncio.Lock()
        self._reply: _Reply | None = None
        self._calls = 0
        self._is_retired = False
        self._is_closed = False

    def describe(self, model: str) -> Model:
        """Its one model, whatever it is called."""
        return self.model

    def signer(self, model: str) -> str:
        """It signs nothing."""
        return self.model.id

    async def load(self) -> None:
        """Loads the model now, unless it is loaded; otherwise the first request does."""
        await self._llama()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Calls the model; raises GatewayError, ends with ModelStopped. Closing it stops the model."""
        if self._model_path is None and (said := _unspoken(request)):
            yield TextDelta(said)
            yield ModelStopped("end_turn")
            return
        body = encode(self._body(request))
        if len(body) > self._window * _BYTES_PER_TOKEN_AT_MOST:
            raise GatewayError(
                f"The request is too long for this model, which accepts {self._window} tokens."
            )
        self._calls += 1
        try:
            replying = self._reply_to(body)
            try:
                async for event in replying:
                    yield event
            finally:
                await replying.aclose()
        finally:
            self._calls -= 1
            if self._is_retired and self._calls == 0:
                await self.close()

    async def _reply_to(self, body: bytes) -> AsyncGenerator[ModelEvent]:
        llama = await self._llama()
        await self._free.acquire()
        if self._is_closed:
            self._free.release()
            raise _closed()
        reply = self._reply = _Reply(self._free.release, may_repeat=self._model_path is not None)
        try:
            reply.begin(llama, body)
            while not reply.goes_round and (chunk := await reply.next()) is not None:
                for event in reply.read(chunk):
                    yield event
            for event in reply.end():
                yield event
        finally:
            reply.stop()

    async def retire(self) -> None:
        """Frees the model once its last reply has ended."""
        self._is_retired = True
        if self._calls == 0:
            await self.close()

    async def close(self) -> None:
        """Stops the current reply, refuses those that wait, and frees the model."""
        self._is_closed = True
        if self._reply is not None:
            self._reply.stop()
        async with self._free:
            if self._reply is not None:
                self._reply.join()
        loading, self._loading = self._loading, None
        if loading is not None:
            with suppress(GatewayError):
                (await loading).close()

    async def _llama(self) -> Llama:
        if self._is_closed:
            raise _closed()
        loading = self._loading
        if loading is None:
            loop = asyncio.get_running_loop()
            loading = self._loading = loop.run_in_executor(None, self._open)
        try:
            return await asyncio.shield(loading)
        except GatewayError:
            if self._loading is loading:
                self._loading = None  # what is missing may be installed meanwhile
            raise

    def _open(self) -> Llama:
        path = self._model_path or demonstration_weights()
        return open_llama(path, threads=self._threads, window=self._window)

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        system = [{"role": "system", "content": storable(request.system)}] if request.system else []
        body: dict[str, Any] = {
            "messages": [*system, *map(_message, request.messages)],
            "max_tokens": request.max_tokens or self._max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # sends chunks while it reads, so that it can be stopped
        }
        if request.output is not None and is_strict(request.output, may_refer=False):
            # As a grammar, made in this process: of schemas that can't make it grow.
            described = {"name": OUTPUT_NAME, "schema": request.output}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        if self._model_path is None:
            body |= _FOR_THE_DEMONSTRATION
        if request.temperature is not None:
            body["temperature"] = request.temperature
        return body


def _unspoken(request: ModelRequest) -> str | None:
    """The demonstration model's reply to a question in a language that it doesn't know."""
    texts = [block.text for block in request.messages[-1].blocks if isinstance(block, TextBlock)]
    letters = [it for it in (texts[-1] if texts else "") if it.isalpha()]
    if not letters or sum(it.isascii() for it in letters) * 2 > len(letters):
        return None
    return _SPEAKS_ENGLISH[_CHINESE.search("".join(letters)) is not None]


def _message(message: ModelMessage) -> dict[str, str]:
    said = (block.text for block in message.blocks if isinstance(block, TextBlock))
    return {"role": message.role, "content": storable("\n\n".join(said))}


def _closed() -> GatewayError:
    return GatewayError("The local model is shut down.", retryable=True)


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Error(msgspec.Struct):
    message: str = ""
    n_prompt_tokens: int | None = None
    n_ctx: int | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: _Error | None = None


_chunk = msgspec.json.Decoder(_Chunk)


class _Reply:
    """One reply, generated in its own thread and read in the event loop."""

    def __init__(self, ended: Callable[[], None], *, may_repeat: bool) -> None:
        self._may_repeat = may_repeat
        self._said = ""
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[bytes | GatewayError | None] = asyncio.Queue()
        self._ended = ended
        self._is_stopped = False
        self._usage: _Usage | None = None
        self._finish_reason: str | None = None
        self._thread: threading.Thread | None = None

    def begin(self, llama: Llama, body: bytes) -> None:
        """Starts the thread; `ended` is called when it ends."""
        # Not a daemon: Python would end it inside the library, and crash the process.
        thread = threading.Thread(target=self._run, args=(llama, body), name="threadkeep-local-model")
        try:
            thread.start()
        except RuntimeError as exc:
            self._ended()
            raise GatewayError(
                "Couldn't start a thread for the model on this machine.", retryable=True
            ) from exc
        self._thread = thread

    async def next(self) -> bytes | None:
        """The next chunk, None at the end."""
        chunk = await self._chunks.get()
        if isinstance(chunk, GatewayError):
            raise chunk
        return chunk

    def read(self, data: bytes) -> Sequence[ModelEvent]:
        """The meaning of a chunk."""
        chunk = decode(_chunk, data)
        if chunk.error is not None:
            raise _failure(chunk.error)
        self._usage = chunk.usage or self._usage
        if not chunk.choices:
            return ()
        choice = chunk.choices[0]
        self._finish_reason = choice.finish_reason or self._finish_reason
        delta = choice.delta or _Delta()
        if delta.reasoning_content:
            return (ThoughtDelta(delta.reasoning_content),)
        self._said += delta.content or ""
        return (TextDelta(delta.content),) if delta.content else ()

    @property
    def goes_round(self) -> bool:
        """Whether the reply repeats itself."""
        tail = self._said[-REPEATED_CHARACTERS:]
        is_long = len(self._said) >= 2 * REPEATED_CHARACTERS
        return not self._may_repeat and is_long and tail in self._said[:-REPEATED_CHARACTERS]

    def end(self) -> Sequence[ModelEvent]:
        """The final events after the model has stopped, or was stopped for looping."""
        if self.goes_round:
            return (ModelStopped("end_turn"),)
        if self._finish_reason is None:
            raise GatewayError("The model's response ended early.", retryable=True)
        usage = self._usage or _Usage()
        return (
            ModelUsage(usage.prompt_tokens, usage.completion_tokens),
            ModelStopped(_STOP_REASONS.get(self._finish_reason, "other")),
        )

    def stop(self) -> None:
        """Ends the reply at the current token."""
        self._is_stopped = True

    def join(self) -> None:
        """Waits for the thread, which has nothing left to do."""
        if self._thread is not None:
            self._thread.join()

    def _run(self, llama: Llama, body: bytes) -> None:
        try:
            llama.chat(body, self._take)
        except Exception as exc:  # noqa: BLE001  (whatever C++ throws; here the reply ends)
            self._call_in_loop(self._chunks.put_nowait, GatewayError(f"The local model failed: {exc}"))
        self._call_in_loop(self._finish)

    def _take(self, chunk: bytes) -> bool:
        """Passes on a chunk; true ends the reply. Python waits for this thread when it exits."""
        is_exiting = not threading.main_thread().is_alive()
        return self._is_stopped or is_exiting or not self._call_in_loop(self._chunks.put_nowait, chunk)

    def _finish(self) -> None:
        self._chunks.put_nowait(None)
        self._ended()

    def _call_in_loop(self, callback: Callable[..., None], *args: object) -> bool:
        try:
            self._loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            return False  # the loop is closed, and nobody listens
        return True


def _failure(error: _Error) -> GatewayError:
    if error.n_prompt_tokens is not None:
        return GatewayError(
            f"The request is too long for this model: {error.n_prompt_tokens} tokens of {error.n_ctx}."
        )
    return GatewayError(f"The local model failed: {error.message}")
