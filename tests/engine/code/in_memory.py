"""Turns of agents in code without a server: the log is a list, and crashes come wherever a test likes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from tests.engine.in_memory import InMemoryGateway, InMemoryTools, Kept, large_values
from threadkeep.agents import Agent
from threadkeep.agents.local import LocalPrograms
from threadkeep.domain.approval import ApprovalAction, Decision
from threadkeep.domain.errors import AgentNotFound
from threadkeep.domain.events import (
    Done,
    EventBody,
    Failed,
    IterationRestart,
    IterationStart,
    TurnEvent,
    TurnResumed,
)
from threadkeep.domain.file import FileKind
from threadkeep.domain.ids import ConversationId, MessageId, PayloadId, TurnId, UserId
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.payload import Lost
from threadkeep.domain.receipt import TurnReceipt
from threadkeep.domain.turn import Turn, TurnStatus
from threadkeep.engine.code.check import difference
from threadkeep.engine.code.means import AgentMeans, FoundAgent
from threadkeep.engine.code.replay import CodeState, replay_code
from threadkeep.engine.code.run import run_code
from threadkeep.engine.code.running import CodeSurroundings
from threadkeep.engine.fold import Folding
from threadkeep.engine.journal import JOURNAL_ENTRIES, CallPaid, CodeStarted, JournalEntry
from threadkeep.engine.loop import HandOff, Pause, StateLeft, Together, TurnLimits
from threadkeep.engine.outputs import output_check
from threadkeep.engine.spending import FreeSpending
from threadkeep.engine.steering import nobody_steers
from threadkeep.engine.stop import Stop
from threadkeep.engine.tools import Toolbox
from threadkeep.engine.turn_models import TurnModels
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.engine.user_requests import Asking
from threadkeep.log.format import decode_entries, encode_chunk
from threadkeep.ports.tools import Grant
from threadkeep.schemas.checker import SchemaChecker
from threadkeep.wire.programs import Start, StartConversation, StartMessage, StartUser

TURN = Turn(TurnId("t"), ConversationId("c"), MessageId("q"), MessageId("a"), TurnStatus.RUNNING, 0)

Answer = Callable[[Asking], Decision]


def answers(*contents: Any) -> Answer:
    """A user who answers questions with these, in turn."""
    left = list(contents)
    return lambda asking: Decision(action=ApprovalAction.ANSWER, at=0, content=left.pop(0))


def allows(asking: Asking) -> Decision:
    """A user who allows every call."""
    return Decision(action=ApprovalAction.ALLOW, at=0)


class Asked:
    """The turn's user: decides at once, or when the test says so."""

    expires_at = 10**15

    def __init__(self, answer: Answer | None) -> None:
        self.answer = answer
        self.open: dict[str, Asking] = {}
        self.decided: dict[str, Decision] = {}
        self.times_asked: list[str] = []
        self._arrived = asyncio.Event()

    def request_id(self, tool_call_id: str) -> str:
        """The id of a request."""
        return f"request of {tool_call_id}"

    def expires_in(self, seconds: float) -> int:
        """When a request expires."""
        return self.expires_at

    async def granted(self) -> frozenset[Grant]:
        """Nothing is granted."""
        return frozenset()

    async def ask(self, asking: Asking) -> None:
        """Stores a request, once."""
        id_ = asking.request.request_id
        if id_ in self.decided:
            return
        self.times_asked.append(id_)
        self.open[id_] = asking
        if self.answer is not None:
            self.decide(id_, self.answer(asking))

    def decide(self, request_id: str, decision: Decision) -> None:
        """The user decides."""
        self.decided[request_id] = decision
        self._arrived.set()

    async def withdraw(self, request_id: str) -> bool:
        """Expires a request."""
        return self.open.pop(request_id, None) is not None and request_id not in self.decided

    async def decisions(self) -> Mapping[str, Decision]:
        """The decisions so far."""
        return self.decided

    async def arrived(self) -> None:
        """Returns when there is another one."""
        await self._arrived.wait()
        self._arrived.clear()


class NoOthers:
    """No other agents."""

    async def find(self, wanted: str) -> FoundAgent:
        """None."""
        raise AgentNotFound(f"There is no agent `{wanted}`.")

    async def means(self, ids: Sequence[str]) -> AgentMeans:
        """None."""
        raise AgentNotFound("There are no agents.")


Entry = TurnEvent | JournalEntry


@dataclass
class CodeTurn:
    """One turn of an agent in code, run as often as it takes."""

    agents: Sequence[Agent]
    text: str = ""
    gateway: Callable[[], InMemoryGateway] = InMemoryGateway
    tools: InMemoryTools | None = None
    answer: Answer | None = None
    entries: list[Entry] = field(default_factory=list[Entry])
    payloads: Kept = field(default_factory=dict[PayloadId, bytes])
    values: dict[str, bytes] = field(default_factory=dict[str, bytes])
    end: Done | Failed | None = None
    state: bytes = b""
    runs: int = 0
    model: InMemoryGateway | None = None
    limits: TurnLimits = field(default_factory=lambda: TurnLimits(0, 0))
    most_steps: int = 1_000
    on_step: Callable[[Any], Awaitable[None] | None] = lambda step: None
    """Called with each step before it is written."""

    def __post_init__(self) -> None:
        self.requests = Asked(self.answer)
        self.model = self.gateway()

    @property
    def events(self) -> list[EventBody]:
        """The turn's events."""
        return [it.body for it in self.entries if isinstance(it, TurnEvent)]

    @property
    def reply(self) -> Message:
        """What has become of the turn."""
        folding = Folding()
        for entry in self.entries:
            if isinstance(entry, TurnEvent):
                folding.add(entry)
        return folding.message(_EMPTY)

    @property
    def shown(self) -> str:
        """The text of the reply."""
        return self.reply.text

    async def run(self, *, commits: int | None = None, stop: Stop | None = None) -> "CodeTurn":
        """Runs the turn to its end, or kills it after it has written so often to its log."""
        while self.end is None:
            left = await self._run_once(commits, stop or Stop())
            if left == "killed":
                return self
            assert left != "paused" or self.requests.answer is not None, "the turn waits for its user"
        return self

    async def check(self) -> str | None:
        """What the program does otherwise when it runs once more, after the turn's end."""
        assert self.end is not None
        programs = LocalPrograms(self.agents)
        state = replay_code(self.entries, self.payloads)
        try:
            return await difference(
                TURN, programs.start(self._start(state, is_check=True)), state, self._value, self.end
            )
        finally:
            await programs.close()

    async def _run_once(self, most: int | None, stop: Stop) -> str:
        programs = LocalPrograms(self.agents)
        state = replay_code(self.entries, self.payloads)
        self.runs += 1
        around = self._around(programs, state, stop)
        opening = (TurnResumed(self.runs - 1),) if state.code else ()
        if state.code is None:
            self._add(CodeStarted(self.agents[0].key, 1))
        count = 0
        try:
            async with aclosing(run_code(TURN, around, state=state, opening=opening)) as steps:
                async for step in steps:
                    if (held := self.on_step(step)) is not None:
                        await held
                    match step:
                        case Pause():
                            return "paused"
                        case HandOff():
                            return "handed off"
                        case StateLeft(left):
                            self.state = left
                        case TurnReceipt():
                            pass
                        case Together(entries):  # one commit: all of them or none
                            for entry in entries:
                                self._add(entry)
                        case _:
                            self._add(step)
                            if isinstance(step, Done | Failed):
                                self.end = step
                    count += 1
                    if most is not None and count >= most and self.end is None:
                        return "killed"
        finally:
            await programs.close()
        return "ended"

    def _add(self, body: Any) -> None:
        if isinstance(body, JOURNAL_ENTRIES):
            self._store(body)
            return
        events = [it for it in self.entries if isinstance(it, TurnEvent)]
        if isinstance(body, IterationRestart) and not body.from_seq:
            begun = [it.seq for it in events if isinstance(it.body, IterationStart | IterationRestart)]
            body = replace(body, from_seq=begun[-1])
        self._store(TurnEvent(TURN.id, len(events) + 1, 1_000 + len(self.entries), body))

    def _store(self, entry: Entry) -> None:
        """Adds an entry as the log gives it back, which is a text of lines."""
        (stored,) = decode_entries(encode_chunk([entry]))
        self.entries.append(stored)

    async def _keep_value(self, content: bytes) -> str:
        id_ = f"value {len(self.values)}"
        self.values[id_] = content
        return id_

    async def _value(self, id_: str) -> bytes | None:
        return self.values.get(id_)

    def _around(self, programs: LocalPrograms, state: CodeState, stop: Stop) -> CodeSurroundings:
        assert self.model is not None
        model = self.model

        async def load(ids: Iterable[PayloadId]) -> Mapping[PayloadId, bytes | Lost]:
            return {it: self.payloads.get(it, Lost("gone")) for it in ids}

        async def history(
            limit: int | None, as_context: bool, files: Sequence[FileKind] | None
        ) -> Sequence[Mapping[str, Any]]:
            if not as_context:
                return []
            return [{"role": "user", "content": self.text}]

        def toolbox(session: Any) -> Toolbox:
            return Toolbox(session, large_values(self.payloads), SchemaChecker())

        return CodeSurroundings(
            program=programs.start(self._start(state)),
            agents=NoOthers(),
            models=lambda name: TurnModels(model.model),
            spending=lambda call: FreeSpending(),
            own_call=lambda cost: CallPaid("a call", 0, is_reported=True),
            tools=TurnTools(toolbox(self.tools), self.requests),
            toolbox=toolbox,
            rules={},
            requests=self.requests,
            keep_value=self._keep_value,
            value=self._value,
            load=load,
            history=history,
            result_tokens=5_000,
            limits=self.limits,
            clock=lambda: 0,
            stop=stop,
            steering=nobody_steers,
            check_output=output_check(SchemaChecker(), UserId("ada")),
            most_steps=self.most_steps,
            patience_s=0.2,
        )

    def _start(self, state: CodeState, *, is_check: bool = False) -> Start:
        return Start(
            turn=TURN.id,
            run=0 if is_check else self.runs,
            agent=self.agents[0].key,
            version=1,
            user=StartUser("ada"),
            conversation=StartConversation(TURN.conversation_id, "A title"),
            message=StartMessage(TURN.user_message_id, self.text),
            at=0,
            is_resumed=state.code is not None,
            saved={scope: it.value for scope, it in state.saved.items()},
            is_check=is_check,
        )


_EMPTY = Message(
    MessageId("a"), ConversationId("c"), 2, TURN.id, MessageRole.ASSISTANT, (), MessageStatus.PENDING, 0
)


async def killed_everywhere(make: Callable[[], CodeTurn]) -> tuple[CodeTurn, list[CodeTurn]]:
    """A turn that runs through, and the same turn killed after each of its writes and resumed."""
    whole = await make().run()
    killed: list[CodeTurn] = []
    while True:
        turn = await make().run(commits=len(killed) + 1)
        if turn.end is not None:
            return whole, killed
        killed.append(await turn.run())
