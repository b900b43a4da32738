"""A turn's state from its log and journal; pure. The loop continues from there."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from threadkeep.context.attachments import NO_FILES, FileRules
from threadkeep.context.cards import CardStyle
from threadkeep.context.estimates import estimate_request_tokens
from threadkeep.context.history import Rendering
from threadkeep.context.outputs import with_repair
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    IterationRestart,
    IterationStart,
    Notice,
    TurnEvent,
    TurnResumed,
    UserMessage,
)
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Usage
from threadkeep.domain.parts import FilePart, NoticePart, QuestionPart, RetrievalPart, TextPart, ToolCallPart
from threadkeep.domain.payload import Lost
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall, ToolCallStatus
from threadkeep.engine.call_state import CallState
from threadkeep.engine.ending import spent_in
from threadkeep.engine.fold import Folding
from threadkeep.engine.journal import (
    CallFinished,
    Dispatch,
    Dispatched,
    InputAwaited,
    JournalEntry,
    ModelChosen,
    OutputRefused,
    UseNoted,
)
from threadkeep.engine.model_call import FinishedCall, ModelReads, with_user_text
from threadkeep.engine.permissions import Signature, signature
from threadkeep.ports.gateway import ModelMessage, ModelRequest, ToolResultBlock, ToolUse


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A model call whose tools have not all returned."""

    call: FinishedCall
    states: Mapping[str, CallState] = field(default_factory=dict[str, CallState])
    """The progress of each call, by its id."""


@dataclass(frozen=True, slots=True)
class TurnState:
    """A turn's state; empty for a new turn."""

    request: ModelRequest | None = None
    """The next model request; None before the turn's receipt is stored."""
    iteration: int = 0
    """The model call that started last."""
    restart_from: int | None = None
    """The number of that call's first event, if the call was cut off."""
    batch: OpenBatch | None = None
    stop_reason: str | None = None
    """Why the model stopped, if its last call asks for no tools: only the end is missing."""
    usage: Usage = field(default_factory=lambda: Usage(0, 0))
    unreported: Usage | None = None
    """The usage of the call that was cut off, if not yet reported."""
    has_spoken: bool = False
    last_text: str = ""
    """What the model's last call has said."""
    was_refused: bool = False
    """Whether a reply wasn't the JSON that was asked for, so that the model was asked again."""
    found: tuple[RetrievalHit, ...] = ()
    """All passages, in the order in which the model cites them."""
    open_calls: tuple[ToolCall, ...] = ()
    unknown: frozenset[Signature] = frozenset()
    """Calls that may have taken effect, though they returned no result."""
    used_servers: frozenset[str] = frozenset()
    model: str | None = None
    """The model that replies instead of the one asked for, which failed."""
    noticed: frozenset[Notice] = frozenset()
    """The notices that the turn's user has already received."""
    ran_ms: int = 0

    @property
    def waiting(self) -> frozenset[str]:
        """The calls that wait for the user's decision."""
        states = self.batch.states.items() if self.batch else ()
        return frozenset(id_ for id_, state in states if state.open_requests)

    @property
    def open_requests(self) -> list[str]:
        """The open requests to the user."""
        states = self.batch.states.values() if self.batch else ()
        return [request_id for state in states for request_id in sorted(state.open_requests)]

    @property
    def is_new(self) -> bool:
        """Whether the turn hasn't reached its first request."""
        return self.request is None


NEW_TURN = TurnState()


def replay(
    entries: Iterable[TurnEvent | JournalEntry],
    request: ModelRequest | None,
    payloads: Mapping[PayloadId, bytes | Lost],
    files: FileRules = NO_FILES,
) -> TurnState:
    """The state of a turn's loop; `request` is its receipt's, `payloads` the values its calls refer to."""
    replaying = Replaying()
    for entry in entries:
        replaying.add(entry)
    return replaying.state(request, payloads, files)


class Replaying:
    """Collects a turn's events and journal entries, in order."""

    def __init__(self) -> None:
        self._folding = Folding()
        self._steps: list[CallFinished | OutputRefused | UserMessage] = []
        self._dispatches: dict[str, Dispatch] = {}
        self._awaited: dict[str, InputAwaited] = {}
        self._rounds: dict[str, int] = {}
        self._used: set[str] = set()
        self._undecided: set[str] = set()
        self._began_at: int | None = None
        self._iteration = 0
        self._model: str | None = None
        self._last_at: int | None = None
        self._ran_ms = 0

    def add(self, entry: TurnEvent | JournalEntry) -> None:
        """The next entry."""
        match entry:
            case TurnEvent():
                self._add_event(entry)
            case CallFinished() | OutputRefused():
                self._steps.append(entry)
                self._began_at = None
            case Dispatched(calls):
                for call in calls:
                    self._dispatches[call.id] = call
                    if self._awaited.pop(call.id, None) is None:
                        self._rounds[call.id] = 0
                self._used |= {call.id for call in calls}
            case InputAwaited():
                self._dispatches.pop(entry.id, None)
                self._awaited[entry.id] = entry
                self._rounds[entry.id] = self._rounds.get(entry.id, 0) + 1
            case ModelChosen(model):
                self._model = model
            case _:
                pass

    def _add_event(self, event: TurnEvent) -> None:
        self._count_time(event)
        self._folding.add(event)
        match event.body:
            case IterationStart(iteration) | IterationRestart(iteration):
                self._iteration, self._began_at = iteration, event.seq
            case UserMessage() as body:
                self._steps.append(body)
            case ApprovalRequest(request_id):
                self._undecided.add(request_id)
            case ApprovalResponse(request_id):
                self._undecided.discard(request_id)
            case _:
                pass

    def _count_time(self, event: TurnEvent) -> None:
        """Adds the time since the previous event, unless no node ran the turn or it waited for its user."""
        is_idle = self._is_waiting or isinstance(event.body, TurnResumed | ApprovalResponse)
        if self._last_at is not None and not is_idle:
            self._ran_ms += max(event.at - self._last_at, 0)
        self._last_at = event.at

    @property
    def _is_waiting(self) -> bool:
        """Whether nothing can continue before the user decides."""
        if not self._undecided:
            return False
        return not any(call.tool_call_id in self._dispatches for call in self._folding.open_calls)

    def state(
        self, request: ModelRequest | None, payloads: Mapping[PayloadId, bytes | Lost], files: FileRules
    ) -> TurnState:
        if request is None:  # it is prepared again, and shows nothing twice
            return TurnState(
                model=self._model, found=self._found(), noticed=self._noticed(), ran_ms=self._ran_ms
            )
        parts = [part for part in self._folding.parts if isinstance(part, ToolCallPart)]
        known = self._known(
            Rendering(
                CardStyle(),
                thoughts=False,
                calls_as_blocks=bool(request.tools),
                files=files,
                payloads=payloads,
            )
        )
        messages, batch, last = known.with_results(request.messages, self._steps)
        return TurnState(
            request=replace(request, messages=messages),
            iteration=self._iteration,
            restart_from=self._began_at,
            batch=batch,
            stop_reason=last.stop_reason if last and not last.blocks and self._began_at is None else None,
            usage=self._folding.usage,
            unreported=self._unreported(request),
            has_spoken=any(map(self._is_said, self._folding.parts)),
            last_text=self._last_text(),
            was_refused=any(isinstance(it, OutputRefused) for it in self._steps),
            found=self._found(),
            open_calls=tuple(self._folding.open_calls),
            unknown=frozenset(
                signature(part.call.server, part.call.tool_name, arguments)
                for part in parts
                if self._may_have_taken_effect(part.call)
                for arguments in known.all_arguments_of(part)
            ),
            used_servers=frozenset(it.call.server for it in parts if it.call.tool_call_id in self._used),
            model=self._model,
            noticed=self._noticed(),
            ran_ms=self._ran_ms,
        )

    @property
    def folding(self) -> Folding:
        """The reply so far."""
        return self._folding

    @property
    def ran_ms(self) -> int:
        """How long the turn has run, without the time that it waited."""
        return self._ran_ms

    def calls(
        self, payloads: Mapping[PayloadId, bytes | Lost], files: FileRules = NO_FILES
    ) -> Mapping[str, CallState]:
        """How far each tool call has come, by its id."""
        rendering = Rendering(
            CardStyle(), thoughts=False, calls_as_blocks=True, files=files, payloads=payloads
        )
        return self._known(rendering).states()

    def _known(self, rendering: Rendering) -> "_KnownCalls":
        return _KnownCalls(self._folding, self._dispatches, self._awaited, self._rounds, rendering)

    def _may_have_taken_effect(self, call: ToolCall) -> bool:
        """Whether nobody knows, though the call has ended: repeating it would require approval."""
        if call.status is ToolCallStatus.TIMEOUT:
            dispatch = self._dispatches.get(call.tool_call_id)
            return dispatch is None or not dispatch.effect.is_repeatable
        return call.status is ToolCallStatus.UNKNOWN

    def _unreported(self, request: ModelRequest) -> Usage | None:
        if self._began_at is None or self._folding.open_iteration is None:
            return None
        return spent_in(self._iteration, self._folding.parts, estimate_request_tokens(request))

    def _is_said(self, part: object) -> bool:
        is_cut_off = self._began_at is not None
        return (
            isinstance(part, TextPart)
            and not part.superseded
            and not (is_cut_off and part.iteration == self._iteration)
            and not is_blank(part.text)
        )

    def _last_text(self) -> str:
        texts = (it for it in self._folding.parts if isinstance(it, TextPart) and not it.superseded)
        return "".join(it.text for it in texts if it.iteration == self._iteration)

    def _noticed(self) -> frozenset[Notice]:
        return frozenset(
            Notice(part.code, part.message) for part in self._folding.parts if isinstance(part, NoticePart)
        )

    def _found(self) -> tuple[RetrievalHit, ...]:
        parts = (part for part in self._folding.parts if isinstance(part, RetrievalPart))
        return tuple(hit for part in parts if not part.superseded for hit in part.hits)


class _KnownCalls:
    """A turn's tool calls, from its log."""

    def __init__(
        self,
        folding: Folding,
        dispatches: Mapping[str, Dispatch],
        awaited: Mapping[str, InputAwaited],
        rounds: Mapping[str, int],
        rendering: Rendering,
    ) -> None:
        self._parts = {it.call.tool_call_id: it for it in folding.parts if isinstance(it, ToolCallPart)}
        self._questions = [it for it in folding.parts if isinstance(it, QuestionPart)]
        self._dispatches = dispatches
        self._awaited = awaited
        self._rounds = rounds
        self._images = [it for it in folding.parts if isinstance(it, FilePart)]
        self._rendering = rendering

    def with_results(
        self, messages: Sequence[ModelMessage], steps: Iterable[CallFinished | OutputRefused | UserMessage]
    ) -> tuple[tuple[ModelMessage, ...], OpenBatch | None, CallFinished | None]:
        """The messages so far, the call whose tools have not all returned, and the last finished call."""
        history, batch, last = tuple(messages), None, None
        for step in steps:
            if isinstance(step, UserMessage):
                history = with_user_text(history, step.content)
                continue
            if isinstance(step, OutputRefused):
                said = (ModelMessage("assistant", step.blocks),) if step.blocks else ()
                history = with_repair(history, said, step.problem)
                continue
            last = step
            call = self._finished(step)
            states = {use.id: self._state(use.id) for use in call.tool_uses}
            reads = [state.reads for state in states.values() if state.reads]
            if len(reads) < len(states):
                batch = OpenBatch(call, states)
            elif states:
                history = (*history, *call.with_results(reads, as_blocks=self._rendering.calls_as_blocks))
        return history, batch, last

    def states(self) -> Mapping[str, CallState]:
        """How far each call has come."""
        return {id_: self._state(id_) for id_ in self._parts}

    def all_arguments_of(self, part: ToolCallPart) -> Sequence[Mapping[str, object]]:
        """A call's arguments, wherever they are stored: the model's, and the user's if they changed them."""
        decision = part.approval.decision if part.approval else None
        edited = decision.arguments if decision else None
        return [self._rendering.arguments_of(part.call), *([edited] if edited is not None else ())]

    def _finished(self, entry: CallFinished) -> FinishedCall:
        blocks = tuple(self._use(it) if isinstance(it, UseNoted) else it for it in entry.blocks)
        return FinishedCall(entry.iteration, entry.stop_reason, blocks)

    def _use(self, noted: UseNoted) -> ToolUse:
        call = self._parts[noted.id].call
        return ToolUse(noted.id, call.model_name, self._rendering.arguments_of(call), noted.problem)

    def _state(self, id_: str) -> CallState:
        part, awaited = self._parts[id_], self._awaited.get(id_)
        questions = [it for it in self._questions if it.tool_call_id == id_]
        about_call = [part.approval] if part.approval else questions
        client_request = part.client_request
        asked = (*about_call, *questions, *([client_request] if client_request else ()))
        requests = {it.request_id: it.decision for it in asked}
        awaited_ids = {it.request_id for it in awaited.requests} if awaited else set[str]()
        return CallState(
            dispatch=self._dispatches.get(id_),
            asked=frozenset(requests),
            undecided=frozenset(it for it, decision in requests.items() if decision is None),
            decision=next((it.decision for it in about_call if it.decision), None),
            client_decision=client_request.decision if client_request else None,
            awaited=awaited,
            inputs={it: decision for it, decision in requests.items() if decision and it in awaited_ids},
            rounds=self._rounds.get(id_, 0),
            reads=self._reads(part.call),
        )

    def _reads(self, call: ToolCall) -> ModelReads | None:
        if call.status is ToolCallStatus.RUNNING:
            return None
        is_error = call.status is not ToolCallStatus.OK
        result = ToolResultBlock(call.tool_call_id, self._rendering.reads(call), is_error)
        images = [it for it in self._images if it.tool_call_id == call.tool_call_id]
        return (result, *self._rendering.files.image_blocks(images, call.tool_call_id))
