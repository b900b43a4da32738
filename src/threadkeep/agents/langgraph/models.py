"""Model calls of a graph, recorded: LangChain asks its cache before every call, and tells it what came."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Sequence
from contextvars import ContextVar
from typing import Any, cast
from uuid import UUID

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, Generation
from langchain_core.tracers._streaming import _StreamingCallbackHandler

from threadkeep.agents.langgraph.bridge import wait_for
from threadkeep.agents.langgraph.graph_run import GraphRun, is_in_tool, running
from threadkeep.agents.model_errors import broke_off, model_failed
from threadkeep.agents.replies import Result, Thought, Usage
from threadkeep.agents.values import content_hash

NOT_SHOWN = "nostream"
"""LangGraph's tag of models whose text is not the graph's."""
_VARYING = ("id", "usage_metadata", "response_metadata")
"""What of a message in a prompt isn't the same when it comes from the record."""

_starting: ContextVar["Starting | None"] = ContextVar("starting_call", default=None)
_open: ContextVar["ModelCall | None"] = ContextVar("open_call", default=None)


class Starting:
    """A model call that LangChain is about to make."""

    def __init__(self, id_: UUID, is_shown: bool, model: str) -> None:
        self.id = id_
        self.is_shown = is_shown
        self.model = model
        self.is_recorded = False


class ModelCall:
    """A model call that is made now: the step that records it ends when LangChain says what came."""

    def __init__(self, run: GraphRun, prompt: str, model: str, starting: Starting | None) -> None:
        self.place = prompt, model
        self.starting = starting
        self.has_begun: asyncio.Future[None] = run.loop.create_future()
        self.recorded: asyncio.Task[Any] | None = None
        self.is_over = False
        self._run = run
        self._pieces: asyncio.Queue[str | Thought | Usage | Result | BaseException] = asyncio.Queue()
        self._has_said = False

    @property
    def is_shown(self) -> bool:
        """Whether its text is part of the reply."""
        return self.starting is None or self.starting.is_shown

    async def stream(self) -> AsyncIterator[Any]:
        """What the step yields, until the call is over."""
        if not self.has_begun.done():
            self.has_begun.set_result(None)
        while True:
            piece = await self._pieces.get()
            if isinstance(piece, BaseException):
                raise piece
            yield piece
            if isinstance(piece, Result):
                return

    def say(self, message: BaseMessage) -> None:
        """A piece of the reply has come."""
        for piece in _pieces_of(message) if self.is_shown else ():
            self._has_said = True
            self._pieces.put_nowait(piece)

    async def end(self, generations: Sequence[Generation]) -> None:
        """Records what came; returns when that is recorded. Raises ModelFailed if it is only a part."""
        if not self.is_over and self.recorded is not None:
            if _is_cut_off(generations):
                error = broke_off()
                self.fail(error)
                await asyncio.wait({self.recorded})
                raise error
            self.is_over = True
            message = _message_of(generations)
            if message is not None:
                if not self._has_said:
                    self.say(message)
                if (usage := _usage_of(message, self.starting)) is not None:
                    self._pieces.put_nowait(usage)
            self._pieces.put_nowait(Result(_stored(self._run, generations, is_shown=self.is_shown)))
            _note_said(self._run, generations, is_shown=self.is_shown)
            await self.recorded

    def fail(self, error: BaseException) -> None:
        """Records that the call failed, or that nobody waits for it any more."""
        if self.is_over or self.recorded is None:
            return
        self.is_over = True
        _note_failed(self._run, self.starting, error)
        if isinstance(error, asyncio.CancelledError):
            self.recorded.cancel()
        else:
            self._pieces.put_nowait(model_failed(error) or error)


class JournalCache(BaseCache):
    """Records the model calls of graphs that run in a turn; others go to the cache that was there before."""

    def __init__(self, other: BaseCache | None) -> None:
        self.other = other

    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """What is recorded of a call; None if it is to be made now."""
        if (run := running()) is None:
            return None if self.other is None else await self.other.alookup(prompt, llm_string)
        call, found = await _look_up(run, prompt, llm_string)
        _open.set(call)
        if call is not None and (task := asyncio.current_task()) is not None:
            task.add_done_callback(lambda it: call.fail(_error_of(it)))
        return found

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Records what came of a call."""
        if running() is None:
            if self.other is not None:
                await self.other.aupdate(prompt, llm_string, return_val)
        elif (call := _open.get()) is not None and call.place == (prompt, llm_string):
            await call.end(return_val)

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """The same, for a node that isn't `async`, in its thread."""
        if (run := running()) is None:
            return None if self.other is None else self.other.lookup(prompt, llm_string)
        _open.set(None)
        if run.turn.function_run.is_on_its_loop:  # it blocks the loop, on which the record would be made
            return None
        call, found = wait_for(_look_up(run, prompt, llm_string), run.loop)
        _open.set(call)
        return found

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """The same, for a node that isn't `async`, in its thread."""
        if (run := running()) is None:
            if self.other is not None:
                self.other.update(prompt, llm_string, return_val)
        elif (call := _open.get()) is not None and call.place == (prompt, llm_string):
            wait_for(call.end(return_val), run.loop)

    def clear(self, **kwargs: Any) -> None:
        """Clears the cache that was there before; what is recorded stays."""
        if self.other is not None:
            self.other.clear(**kwargs)


class Listener(BaseCallbackHandler, _StreamingCallbackHandler[Any]):
    """Hears what a graph's nodes and models do. Its mark as a streaming handler makes `ainvoke` stream."""

    run_inline = True
    raise_error = True

    def __init__(self, run: GraphRun) -> None:
        self._run = run
        self._started: dict[UUID, Starting] = {}

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Passes on what it is given."""
        return output

    def tap_output_iter(self, run_id: UUID, output: Any) -> Any:
        """Passes on what it is given."""
        return output

    def on_chain_start(self, *_: Any, metadata: dict[str, Any] | None = None, **__: Any) -> None:
        """Notes where a task is in its graph."""
        at = metadata or {}
        if (namespace := at.get("langgraph_checkpoint_ns")) and running() is self._run:
            self._run.note_task(namespace, at["langgraph_node"], at["langgraph_step"], at["langgraph_path"])

    def on_chat_model_start(
        self,
        *_: Any,
        run_id: UUID,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **__: Any,
    ) -> None:
        """A model is about to be called."""
        if running() is self._run:
            model = str((metadata or {}).get("ls_model_name") or "model")
            is_shown = NOT_SHOWN not in (tags or ()) and not is_in_tool()
            starting = Starting(run_id, is_shown, model)
            self._started[run_id] = starting
            _starting.set(starting)

    def on_llm_new_token(self, *_: Any, chunk: Any = None, run_id: UUID, **__: Any) -> None:
        """A piece of a reply has come."""
        call = _open.get()
        message = getattr(chunk, "message", None)
        if call is None or call.starting is None or call.starting.id != run_id or message is None:
            return
        if self._run.turn.function_run.is_on_its_loop:
            call.say(message)
        else:
            self._run.loop.call_soon_threadsafe(call.say, message)

    def on_llm_end(self, *_: Any, run_id: UUID, **__: Any) -> None:
        """A call is over; it should have been recorded."""
        if (started := self._started.pop(run_id, None)) is not None and not started.is_recorded:
            self._run.tell_around()

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A call has failed. In a thread, nothing else says so."""
        self._started.pop(run_id, None)
        call = _open.get()
        if call is not None and call.starting is not None and call.starting.id == run_id:
            self._run.loop.call_soon_threadsafe(call.fail, error)


def record_model_calls() -> None:
    """Puts the record before LangChain's cache."""
    cache = get_llm_cache()
    if not isinstance(cache, JournalCache):
        set_llm_cache(JournalCache(cache))


async def _look_up(run: GraphRun, prompt: str, model: str) -> tuple[ModelCall | None, list[Any] | None]:
    starting = _starting.get()
    if starting is not None:
        starting.is_recorded = True
    call = ModelCall(run, prompt, model, starting)
    identity = content_hash([_same_every_time(prompt), model])
    next_ = run.next_call(run.place(), "model", identity)

    async def made() -> Any:
        title = None if starting is None else starting.model
        return await next_.turn.step(
            call.stream, name="model", key=identity, effect="idempotent", title=title
        )

    task = call.recorded = asyncio.create_task(run.once(next_.key, made))
    try:
        await asyncio.wait({task, call.has_begun}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if call.has_begun.done():
        task.add_done_callback(_forget_error)
        return call, None
    try:
        return None, _loaded(run, task.result())
    except Exception as exc:
        _note_failed(run, starting, exc)
        raise


def _note_failed(run: GraphRun, starting: Starting | None, error: BaseException) -> None:
    run.failed = ("model" if starting is None else starting.model), error


def _forget_error(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled():
        task.exception()  # who made the call has it already


def _error_of(task: "asyncio.Task[Any]") -> BaseException:
    if task.cancelled():
        return asyncio.CancelledError()
    return task.exception() or RuntimeError("The model's reply never came.")


def _same_every_time(prompt: str) -> Any:
    """A prompt without what differs between a reply that has just come and the same from the record."""
    try:
        messages = json.loads(prompt)
    except ValueError:
        return prompt
    if not isinstance(messages, list):
        return messages
    return [_without_varying(it) for it in cast("list[Any]", messages)]


def _without_varying(message: Any) -> Any:
    match message:
        case {"kwargs": dict()}:
            fields = cast("dict[str, Any]", message)
            return {**fields, "kwargs": {k: v for k, v in fields["kwargs"].items() if k not in _VARYING}}
        case _:
            return message


def _stored(run: GraphRun, generations: Sequence[Generation], *, is_shown: bool) -> dict[str, Any]:
    """What came of a call, as it is recorded."""
    kept = [
        (it.message if isinstance(it, ChatGeneration) else it.text, it.generation_info) for it in generations
    ]
    kind, value = run.saver.types.dumps_typed(kept)
    return {"kind": kind, "reply": value, "shown": is_shown}


def _loaded(run: GraphRun, stored: dict[str, Any]) -> list[Any]:
    kept = run.saver.types.loads_typed((stored["kind"], base64.b64decode(stored["reply"])))
    loaded = [
        ChatGeneration(message=it, generation_info=info)
        if isinstance(it, BaseMessage)
        else Generation(text=it, generation_info=info)
        for it, info in kept
    ]
    _note_said(run, loaded, is_shown=stored["shown"])
    return loaded


def _note_said(run: GraphRun, generations: Sequence[Generation], *, is_shown: bool) -> None:
    message = _message_of(generations)
    if is_shown and message is not None and message.id and message.id not in run.saver.now.said:
        run.saver.now.said.append(message.id)


def _is_cut_off(generations: Sequence[Generation]) -> bool:
    """Whether a stream of OpenAI's wire has ended early, which LangChain takes for its end."""
    message = _message_of(generations)
    if message is None or (isinstance(message, AIMessage) and message.usage_metadata):
        return False
    about = message.response_metadata
    return about.get("model_provider") == "openai" and not {"finish_reason", "status"} & about.keys()


def _message_of(generations: Sequence[Generation]) -> BaseMessage | None:
    return next((it.message for it in generations if isinstance(it, ChatGeneration)), None)


def _usage_of(message: BaseMessage, starting: Starting | None) -> Usage | None:
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    if usage is None:
        return None
    model = message.response_metadata.get("model_name") or (starting.model if starting else "model")
    cached = usage.get("input_token_details", {}).get("cache_read", 0)
    return Usage(str(model), usage["input_tokens"], usage["output_tokens"], cached)


def _pieces_of(message: BaseMessage) -> list[str | Thought]:
    """The texts and thoughts of a message, or of a piece of one."""
    if isinstance(message.content, str):
        thought = message.additional_kwargs.get("reasoning_content")
        pieces = [Thought(thought)] if isinstance(thought, str) and thought else []
        return [*pieces, *([message.content] if message.content else ())]
    pieces: list[str | Thought] = []
    for block in message.content_blocks:
        if block["type"] == "text" and block["text"]:
            pieces.append(block["text"])
        elif block["type"] == "reasoning" and (thought := block.get("reasoning")):
            pieces.append(Thought(thought))
    return pieces
