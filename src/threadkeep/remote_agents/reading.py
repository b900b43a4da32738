"""What the events of a run mean, and in which order they may come.

| event | what becomes of it |
|---|---|
| `TEXT_MESSAGE_*`, `REASONING_MESSAGE_*`, `THINKING_TEXT_MESSAGE_*` | text, thought |
| `TOOL_CALL_*` | a call that is shown; of a tool of our client, a call that we make when the run has ended |
| `STEP_*`, `SUBAGENT_*` | a step |
| `ACTIVITY_SNAPSHOT` | a step that has ended; our own sources: passages |
| `STATE_SNAPSHOT`, `STATE_DELTA` | the state, once the run has ended |
| `MESSAGES_SNAPSHOT` | the messages of the thread |
| `RUN_FINISHED`, `RUN_ERROR` | the end: nothing behind it counts |
| `CUSTOM` | LangGraph's `on_interrupt`, a request to the user; others nothing, as all that isn't known |
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, cast

import msgspec

from threadkeep.agents.replies import Thought
from threadkeep.remote_agents.errors import RemoteFailed
from threadkeep.remote_agents.frames import Frame, Interrupt, Interrupted, RemoteMessage
from threadkeep.remote_agents.json_patch import Patcher, PatchRefused
from threadkeep.remote_agents.limits import RunLimits
from threadkeep.remote_agents.transcript import Json, Transcript
from threadkeep.wire.programs import (
    HitItem,
    HitsItem,
    RemoteCallItem,
    RemoteItem,
    RemoteResultItem,
    RemoteStepItem,
)

Shown = str | Thought | RemoteItem | HitsItem

MOST_ID_CHARACTERS = 512
MOST_ERROR_CHARACTERS = 1_000
SOURCES = "threadkeep.sources"
SUPERSEDED = "threadkeep.superseded"
LEGACY_INTERRUPT = "on_interrupt"
_TITLES = ("title", "message", "text", "status", "description")


class RunReader:
    """Reads the events of one run, in order."""

    def __init__(
        self,
        transcript: Transcript,
        state: Any,
        limits: RunLimits,
        *,
        run_key: str,
        client_tools: frozenset[str] = frozenset(),
        earlier_calls: Mapping[str, str] | None = None,
        step_numbers: Iterator[int] | None = None,
    ) -> None:
        self.state = state
        self.transcript = transcript
        self.pending: dict[str, tuple[str, Json]] = {}
        """The calls of our client's tools, by the server's id: name and arguments."""
        self.interrupts: list[Interrupt] = []
        self.is_over = False
        self.has_spoken = False
        self.shown_calls = dict(earlier_calls or {})
        """Calls without a result so far: our id by the server's."""
        self._limits = limits
        self._run_key = run_key
        self._client_tools = client_tools
        self._step_numbers = step_numbers or count(1)
        self._has_begun = False
        self._events = 0
        self._characters = 0
        self._texts: dict[str, str] = {}
        """The roles of the messages that are open, by id."""
        self._thoughts: set[str] = set()
        self._chunk_id = ""
        self._last = ""
        """The message whose piece was shown last, unless something else was shown since."""
        self._calls: dict[str, tuple[str, str | None, list[str]]] = {}
        self._call_counts: dict[str, int] = {}
        self._steps: dict[str, tuple[int, str]] = {}
        self._activities: set[str] = set()
        self._call_count = self._step_count = 0
        self._snapshot: list[Json] = []
        self._patcher = Patcher()
        self._handlers: Mapping[str, Callable[[Frame], Iterator[Shown]]] = {
            "TEXT_MESSAGE_START": self._begin_text,
            "TEXT_MESSAGE_CONTENT": self._grow_text,
            "TEXT_MESSAGE_END": self._end_text,
            "TEXT_MESSAGE_CHUNK": self._chunk,
            "REASONING_MESSAGE_START": self._begin_thought,
            "REASONING_MESSAGE_CONTENT": self._grow_thought,
            "REASONING_MESSAGE_END": self._end_thought,
            "REASONING_MESSAGE_CHUNK": self._chunk,
            "THINKING_TEXT_MESSAGE_START": self._begin_thought,
            "THINKING_TEXT_MESSAGE_CONTENT": self._grow_thought,
            "THINKING_TEXT_MESSAGE_END": self._end_thought,
            "REASONING_ENCRYPTED_VALUE": self._note_encrypted,
            "TOOL_CALL_START": self._begin_call,
            "TOOL_CALL_ARGS": self._grow_call,
            "TOOL_CALL_END": self._end_call,
            "TOOL_CALL_CHUNK": self._chunk_call,
            "TOOL_CALL_RESULT": self._result,
            "STEP_STARTED": self._begin_step,
            "STEP_FINISHED": self._end_step,
            "SUBAGENT_STARTED": self._begin_step,
            "SUBAGENT_FINISHED": self._end_step,
            "SUBAGENT_ERROR": self._end_step,
            "ACTIVITY_SNAPSHOT": self._activity,
            "STATE_SNAPSHOT": self._take_state,
            "STATE_DELTA": self._change_state,
            "MESSAGES_SNAPSHOT": self._take_messages,
            "CUSTOM": self._custom,
            "RUN_FINISHED": self._finish,
            "RUN_ERROR": self._fail,
        }

    def read(self, frame: Frame) -> list[Shown]:
        """What the next event shows; raises RemoteFailed."""
        self._events += 1
        if self._events > self._limits.events:
            raise RemoteFailed(f"The agent's server sent more than {self._limits.events:,} events.")
        if frame.type == "RUN_STARTED":
            self._check(not self._has_begun, "the run began twice")
            self._has_begun = True
            return []
        self._check(self._has_begun or frame.type == "RUN_ERROR", "the first event must be RUN_STARTED")
        handler = self._handlers.get(frame.type)
        return [*handler(frame)] if handler is not None else []

    def left_open(self, status: str) -> list[Shown]:
        """How the steps end that the server has left open."""
        left, self._steps = self._steps, {}
        return [
            RemoteStepItem(number, name, "ok" if status == "ok" else "error")
            for number, name in left.values()
        ]

    def _check(self, is_fine: bool, problem: str) -> None:
        if not is_fine:
            raise RemoteFailed(f"The agent's server doesn't follow AG-UI: {problem}.")

    def _id(self, value: str | None, what: str) -> str:
        self._check(bool(value) and len(value or "") <= MOST_ID_CHARACTERS, f"{what} has no usable id")
        return value or ""

    # Text and thoughts

    def _begin_text(self, frame: Frame) -> Iterator[Shown]:
        id_ = self._id(frame.message_id, "a message")
        self._check(id_ not in self._texts, "a message began twice")
        role = self._texts[id_] = frame.role or "assistant"
        if role == "assistant":
            self.transcript.begin(id_, role)
        return iter(())

    def _grow_text(self, frame: Frame) -> Iterator[Shown]:
        id_ = frame.message_id or ""
        self._check(id_ in self._texts, "a piece belongs to a message that didn't begin")
        text = self._piece(frame)
        if text and self._texts[id_] == "assistant":
            self.transcript.grow(id_, text)
            self.has_spoken = self.has_spoken or not text.isspace()
            yield self._apart(f"text {id_}", text)

    def _end_text(self, frame: Frame) -> Iterator[Shown]:
        self._check(frame.message_id in self._texts, "a message ended that didn't begin")
        self._texts.pop(frame.message_id or "")
        return iter(())

    def _chunk(self, frame: Frame) -> Iterator[Shown]:
        is_text = frame.type == "TEXT_MESSAGE_CHUNK"
        id_ = self._chunk_id = frame.message_id or self._chunk_id
        whole = msgspec.structs.replace(frame, message_id=id_)
        if is_text and id_ not in self._texts:
            yield from self._begin_text(whole)
        if not is_text and id_ not in self._thoughts:
            yield from self._begin_thought(whole)
        if frame.delta is not None:
            yield from (self._grow_text if is_text else self._grow_thought)(whole)

    def _begin_thought(self, frame: Frame) -> Iterator[Shown]:
        id_ = frame.message_id or ""  # THINKING events have none
        self._check(id_ not in self._thoughts, "a thought began twice")
        self._thoughts.add(id_)
        if id_:
            self.transcript.begin(self._id(id_, "a thought"), "reasoning")
        return iter(())

    def _grow_thought(self, frame: Frame) -> Iterator[Shown]:
        id_ = frame.message_id or ""
        self._check(id_ in self._thoughts, "a piece belongs to a thought that didn't begin")
        if text := self._piece(frame):
            self.transcript.grow(id_, text)
            yield Thought(self._apart(f"thought {id_}", text))

    def _end_thought(self, frame: Frame) -> Iterator[Shown]:
        self._check((frame.message_id or "") in self._thoughts, "a thought ended that didn't begin")
        self._thoughts.discard(frame.message_id or "")
        return iter(())

    def _piece(self, frame: Frame) -> str:
        self._check(isinstance(frame.delta, str), "a piece has no text")
        self._characters += len(frame.delta)
        if self._characters > self._limits.text_characters:
            raise RemoteFailed(
                f"The agent's server sent more than {self._limits.text_characters:,} characters of text."
            )
        return frame.delta

    def _apart(self, what: str, text: str) -> str:
        """A piece, with an empty line before it if another message of its kind was shown just before."""
        kind = what.partition(" ")[0]
        is_next = self._last not in ("", what) and self._last.partition(" ")[0] == kind
        self._last = what
        return f"\n\n{text}" if is_next else text

    # Calls

    def _begin_call(self, frame: Frame) -> Iterator[Shown]:
        id_ = self._id(frame.tool_call_id, "a call")
        self._check(id_ not in self._calls, "a call began twice")
        self._check(bool(frame.tool_call_name), "a call names no tool")
        self._call_count += 1
        if self._call_count > self._limits.calls:
            raise RemoteFailed(
                f"The agent's server called tools more than {self._limits.calls} times in a run."
            )
        self._calls[id_] = frame.tool_call_name or "", frame.parent_message_id, []
        return iter(())

    def _grow_call(self, frame: Frame) -> Iterator[Shown]:
        self._check(frame.tool_call_id in self._calls, "arguments belong to a call that didn't begin")
        self._check(isinstance(frame.delta, str), "arguments are no text")
        pieces = self._calls[frame.tool_call_id or ""][2]
        pieces.append(frame.delta)
        if len(pieces) % 100 == 0:
            pieces[:] = ["".join(pieces)]
        if sum(map(len, pieces)) > self._limits.argument_characters:
            raise RemoteFailed("The agent's server called a tool with arguments that are too long.")
        return iter(())

    def _end_call(self, frame: Frame) -> Iterator[Shown]:
        self._check(frame.tool_call_id in self._calls, "a call ended that didn't begin")
        return self._whole_call(frame.tool_call_id or "")

    def _chunk_call(self, frame: Frame) -> Iterator[Shown]:
        id_ = self._chunk_id = frame.tool_call_id or self._chunk_id
        whole = msgspec.structs.replace(frame, tool_call_id=id_)
        if id_ not in self._calls:
            yield from self._begin_call(whole)
        if frame.delta is not None:
            yield from self._grow_call(whole)

    def _whole_call(self, id_: str) -> Iterator[Shown]:
        name, parent_id, pieces = self._calls.pop(id_)
        text = "".join(pieces)
        self.transcript.call(id_, name, parent_id, text)
        arguments = _object_in(text)
        if name in self._client_tools:
            self.pending[id_] = name, arguments
            return
        yield self._shown_call(id_, name, arguments)

    def _shown_call(self, id_: str, name: str, arguments: Json) -> Shown:
        number = self._call_counts[id_] = self._call_counts.get(id_, 0) + 1
        digest = hashlib.sha256(f"{self._run_key}/{id_}/{number}".encode()).hexdigest()
        shown = self.shown_calls[id_] = f"remote_{digest[:32]}"
        self._last = ""
        return RemoteCallItem(shown, name, arguments)

    def _result(self, frame: Frame) -> Iterator[Shown]:
        id_ = self._id(frame.tool_call_id, "a result")
        if id_ in self._calls:
            yield from self._whole_call(id_)
        if id_ in self.pending:  # the server has run it itself
            yield self._shown_call(id_, *self.pending.pop(id_))
        self.transcript.result(frame.message_id or f"{id_}-result", id_, frame.content)
        if (shown := self.shown_calls.pop(id_, None)) is not None:
            self._last = ""
            text = _text_of(frame.content)
            if _has_failed(frame.metadata):
                yield RemoteResultItem(shown, error=text or "The tool failed.")
            else:
                yield RemoteResultItem(shown, _value_in(text))

    # Steps

    def _begin_step(self, frame: Frame) -> Iterator[Shown]:
        name = frame.step_name or frame.name or ""
        self._step_count += 1
        if name and self._step_count <= self._limits.steps:
            place = frame.subagent_run_id or name if frame.type == "SUBAGENT_STARTED" else name
            number = next(self._step_numbers)
            self._steps[place] = number, name
            yield RemoteStepItem(number, name, "running")

    def _end_step(self, frame: Frame) -> Iterator[Shown]:
        place = frame.subagent_run_id if frame.type.startswith("SUBAGENT") else frame.step_name
        if (step := self._steps.pop(place or "", None)) is not None:
            yield RemoteStepItem(*step, "error" if frame.type == "SUBAGENT_ERROR" else "ok")

    def _activity(self, frame: Frame) -> Iterator[Shown]:
        id_, kind = frame.message_id or "", frame.activity_type or ""
        content = _object(frame.content)
        if kind == SOURCES:
            yield from _sources(content)
        elif kind and kind != SUPERSEDED and id_ not in self._activities:
            self._activities.add(id_)
            self._step_count += 1
            if self._step_count <= self._limits.steps:
                title = next((it for it in map(content.get, _TITLES) if isinstance(it, str) and it), None)
                number = next(self._step_numbers)
                yield RemoteStepItem(number, kind, "running", title)
                yield RemoteStepItem(number, kind, "ok", title)

    # What the thread consists of

    def _take_state(self, frame: Frame) -> Iterator[Shown]:
        self.state = frame.snapshot
        return iter(())

    def _change_state(self, frame: Frame) -> Iterator[Shown]:
        self._check(isinstance(frame.delta, list), "a change of the state is a list")
        try:
            self.state = self._patcher.apply({} if self.state is None else self.state, frame.delta)
        except (PatchRefused, msgspec.ValidationError, TypeError, RecursionError) as exc:
            why = str(exc) if isinstance(exc, PatchRefused) else "it can't be applied"
            self._check(False, f"a change doesn't fit the state: {why}")
        return iter(())

    def _take_messages(self, frame: Frame) -> Iterator[Shown]:
        try:
            msgspec.convert(frame.messages, list[RemoteMessage])
        except msgspec.ValidationError:
            self._check(False, "a message of a snapshot has no id or role")
        self._snapshot = cast("list[Json]", frame.messages)
        self.transcript.replace(self._snapshot)
        return iter(())

    def _note_encrypted(self, frame: Frame) -> Iterator[Shown]:
        self.transcript.note_encrypted(frame)
        return iter(())

    # The end

    def _custom(self, frame: Frame) -> Iterator[Shown]:
        if frame.name == LEGACY_INTERRUPT:
            value = frame.value if isinstance(frame.value, str) else json.dumps(frame.value)
            self.interrupts.append(Interrupt("", LEGACY_INTERRUPT, value))
        return iter(())

    def _finish(self, frame: Frame) -> Iterator[Shown]:
        self.is_over = True
        for id_ in list(self._calls):
            yield from self._whole_call(id_)
        outcome = _object(frame.outcome) or {"type": frame.outcome}
        if outcome.get("type") == "cancelled":
            raise RemoteFailed("The agent's server cancelled the run.", is_retryable=True)
        if outcome.get("type") == "interrupt":
            try:
                self.interrupts = msgspec.convert(outcome, Interrupted).interrupts
            except msgspec.ValidationError:
                self._check(False, "a request to the user has no id")
        if len(self.interrupts) > self._limits.interrupts:
            raise RemoteFailed(
                f"The agent's server asks the user more than {self._limits.interrupts} things at once."
            )
        yield from self.left_open("ok")
        if not self.has_spoken:
            yield from self._unstreamed()

    def _unstreamed(self) -> Iterator[Shown]:
        """The reply of a server that doesn't stream, but says what the thread now consists of."""
        users = [at for at, it in enumerate(self._snapshot) if it["role"] == "user"]
        for message in self._snapshot[users[-1] + 1 :] if users else ():
            text = message.get("content")
            if message["role"] == "assistant" and isinstance(text, str) and text:
                self.has_spoken = True
                yield self._apart(f"text {message['id']}", self._piece(Frame("", delta=text)))

    def _fail(self, frame: Frame) -> Iterator[Shown]:
        self.is_over = True
        said = (frame.message or "").strip()[:MOST_ERROR_CHARACTERS] or "it gave no reason"
        raise RemoteFailed(f"The agent's server reports an error: {said}", is_retryable=True)


def _object(value: Any) -> Json:
    """An object, or an empty one in place of anything else."""
    return cast("Json", value) if isinstance(value, dict) else {}


def _has_failed(metadata: Any) -> bool:
    """Whether a result says that its call has failed, as ours do."""
    return _object(metadata).get("status") not in (None, "ok")


def _text_of(content: Any) -> str:
    """The text of a result, which can be a list of parts."""
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    texts = (cast("Json", it).get("text") for it in parts if isinstance(it, dict))
    return "\n".join(it for it in texts if isinstance(it, str))


def _value_in(text: str) -> Any:
    """A result that is JSON as its value."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _object_in(text: str) -> Json:
    """The arguments of a call; what isn't an object is shown as it is."""
    if not text:
        return {}
    value = _value_in(text)
    return cast("Json", value) if isinstance(value, dict) else {"arguments": value}


def _sources(content: Json) -> Iterator[HitsItem]:
    """Passages that another Threadkeep cites."""
    listed = content.get("sources")
    sources = map(_object, cast("list[Any]", listed) if isinstance(listed, list) else [])
    hits = [HitItem(str(it.get("snippet") or ""), str(it.get("title") or "")) for it in sources if it]
    if hits:
        yield HitsItem(tuple(hits[:50]))
