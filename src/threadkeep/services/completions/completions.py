"""Completions: begins replies outside any conversation, within the same limits as turns."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from threadkeep.clock import Clock
from threadkeep.context.attachments import FileRules
from threadkeep.context.prompt import INSTRUCTIONS, Component, joined
from threadkeep.domain.agent import Agent
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.client_tool import ClientTool
from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.errors import ShuttingDown
from threadkeep.domain.events import Retrieval
from threadkeep.domain.message import check_user_content
from threadkeep.domain.money import Purpose
from threadkeep.domain.parts import FilePart
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.text import is_blank, storable
from threadkeep.domain.turn import BegunWith
from threadkeep.domain.user import User
from threadkeep.engine.large_values import LargeValues
from threadkeep.engine.loop import TurnLimits, TurnStep, TurnTools, run_turn
from threadkeep.engine.stop import Stop
from threadkeep.engine.tools import Toolbox
from threadkeep.engine.turn_models import TurnModels
from threadkeep.ports.allowances import ReplyPlace
from threadkeep.ports.gateway import ModelRequest, ToolSpec
from threadkeep.ports.models import ConnectedModel
from threadkeep.ports.schemas import Schemas
from threadkeep.ports.tools import Caller, ReturnedFile, Tool, ToolProvider
from threadkeep.runtime.node import Node
from threadkeep.runtime.spending import Spending
from threadkeep.services.client_tools import ClientTools, offered_client_tools
from threadkeep.services.completions.completion import Completion, Contents
from threadkeep.services.completions.given import GivenMessage, GivenRules, model_messages
from threadkeep.services.completions.tools import NobodyToAsk, OfferedTools
from threadkeep.services.files import Files
from threadkeep.services.model_choice import ModelChoice
from threadkeep.services.prompts import Prompts
from threadkeep.services.replies.passages import Passages
from threadkeep.services.reply_places import ReplyPlaces
from threadkeep.storage.store import Store
from threadkeep.tasks import end_tasks

CLOSE_S = 10.0

_NO_QUESTION = GivenMessage(role="user", text="(none)")
"""What a made-up turn replies to if the history has only calls and their results. No model sees it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """What a client asks of an agent."""

    agent: Agent
    model: str | None
    """The model that is to reply, among those that the agent offers; by default the agent's own."""
    history: Sequence[GivenMessage]
    instructions: str = ""
    """Instructions for the model, after its agent's own prompt."""
    tools: tuple[ClientTool, ...] = ()
    temperature: float | None = None
    max_tokens: int | None = None


class Completions:
    """The use cases of replies outside any conversation."""

    def __init__(
        self,
        store: Store,
        node: Node,
        choice: ModelChoice,
        prompts: Prompts,
        passages: Passages,
        tools: ToolProvider | None,
        client_tools: ClientTools,
        schemas: Schemas,
        files: Files,
        places: ReplyPlaces,
        spending: Spending,
        clock: Clock,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._store = store
        self._node = node
        self._choice = choice
        self._prompts = prompts
        self._passages = passages
        self._tools = tools
        self._client_tools = client_tools
        self._schemas = schemas
        self._files = files
        self._places = places
        self._spending = spending
        self._clock = clock
        self._caps = caps
        self._running: set[Completion] = set()

    async def begin(self, user: User, asked: CompletionRequest) -> Completion:
        """Begins a reply, or refuses it for the reasons that a turn would be refused for."""
        if self._node.is_draining:
            raise ShuttingDown("This process is shutting down. Try again in a moment.")
        agent = self._caps.limited(asked.agent)
        model = self._choice.chosen(agent, asked.model)
        begun = self._begun(user, agent, model, asked)
        await self._client_tools.check(user, agent, begun.conversation, begun.turn.begun_with)
        await self._spending.check(user, begun, agent)
        prompt = await self._prompts.assemble(agent, model.model, activated=agent.primary_role_id)
        is_question = asked.history[-1].role == "user"
        before = await self._passages.before(agent, begun.user_message if is_question else None, model.model)
        found = [hit for it in before if isinstance(it, Retrieval) for hit in it.hits]
        await self._store.users.meet(user.id, self._clock())  # the ledger needs the user, and nothing else
        place = await self._places.take(user.id)
        system = joined([*prompt.components, *_instructions(asked)])
        run = _Run(user, agent, model, begun, asked, system, found, Contents())
        stop = Stop()
        completion = Completion(begun.turn, self._steps(run, place, stop), stop, run.contents, self._clock)
        self._running.add(completion)
        completion.task.add_done_callback(lambda _: self._running.discard(completion))
        return completion

    async def drain(self, grace_s: float) -> None:
        """Lets running replies end, then interrupts them; `begin` refuses others meanwhile."""
        if self._running and grace_s:
            await asyncio.wait([it.task for it in self._running], timeout=grace_s)
        await self.close()

    async def close(self) -> None:
        """Interrupts the replies that are being made; what they have used is charged."""
        tasks = [it.task for it in self._running]
        for completion in self._running:
            completion.interrupt()
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        await end_tasks(*tasks)

    def _begun(self, user: User, agent: Agent, model: ConnectedModel, asked: CompletionRequest) -> BegunTurn:
        """The turn that the reply would be in a conversation, by which the loop and the tools know it."""
        question = next((it for it in reversed(asked.history) if it.role == "user"), _NO_QUESTION)
        if question is asked.history[-1]:
            most = agent.settings.max_message_chars
            check_user_content(question.text, most=most, has_files=bool(question.files))
        elif is_blank(question.text) and not question.files:
            question = _NO_QUESTION
        now = self._clock()
        return Conversation.start(user.id, agent.id, now).begin_turn(
            question.text,
            now,
            files=tuple(it.part for it in question.files),
            model=model.id,
            key_id=user.key_id,
            begun_with=BegunWith(tools=asked.tools),
        )

    async def _steps(self, run: "_Run", place: ReplyPlace, stop: Stop) -> AsyncGenerator[TurnStep]:
        """The agent's loop, as in a turn. Each model call is charged when it ends, however it ends."""
        for file in (file for message in run.asked.history for file in message.files):
            run.contents.by_id.update(file.contents)
        settings, caller = run.agent.settings, Caller(run.agent, run.user, run.begun.conversation)
        steps = run_turn(
            run.begun.turn,
            lambda tools: asyncio.to_thread(run.request, tools),  # the history may be long
            self._turn_models(run),
            self._turn_tools(run, caller),
            TurnLimits(settings.max_iterations, settings.generation_timeout_s, hands_off=False),
            stop,
            load=run.contents.load,
        )
        try:
            async with self._places.hold(place), aclosing(steps):
                async for step in steps:
                    yield step
        finally:
            if self._tools:
                self._tools.end(caller)

    def _turn_tools(self, run: "_Run", caller: Caller) -> TurnTools:
        session, client_tools = None, list[Tool]()
        if run.model.model.supports_tools:
            client_tools = offered_client_tools(run.agent, run.asked.tools)
            session = OfferedTools(self._tools.session(caller)) if self._tools else None

        async def keep_image(file: ReturnedFile) -> FilePart | None:
            if (loaded := await self._files.load_returned(run.user, file)) is None:
                return None
            run.contents.by_id.update(loaded.contents)
            return loaded.part

        turn = run.begun.turn
        toolbox = Toolbox(
            session,
            LargeValues(turn.conversation_id, self._clock, run.contents.keep),
            self._schemas,
            client_tools=client_tools,
            found=run.found,
            turn_id=turn.id,
            user_id=run.user.id,
            keep_image=keep_image,
            file_rules=run.file_rules,
            can_recall=False,
        )
        return TurnTools(toolbox, NobodyToAsk(turn, self._clock), run.agent.settings.tools)

    def _turn_models(self, run: "_Run") -> TurnModels:
        """The model that replies and those after it; under a budget, only those whose price is known."""
        user, agent, fallbacks = run.user, run.agent, self._choice.fallbacks(run.agent, run.model)
        if self._spending.limits_of(agent, user.key):
            fallbacks = [it for it in fallbacks if it.model.price is not None]
        models = (run.model, *fallbacks)
        first, *others = (self._spending.metered(it, agent, user, Purpose.COMPLETION) for it in models)
        return TurnModels(first, others)


@dataclass(frozen=True, slots=True)
class _Run:
    """What one reply is made from."""

    user: User
    agent: Agent
    model: ConnectedModel
    begun: BegunTurn
    asked: CompletionRequest
    system: str
    found: Sequence[RetrievalHit]
    contents: Contents

    @property
    def file_rules(self) -> FileRules:
        """The files that the model receives as is."""
        return FileRules(self.model.files, self.model.model.context_tokens)

    def request(self, tools: Sequence[ToolSpec]) -> ModelRequest:
        """The request of the first model call; the client can lower the agent's limit, and not raise it."""
        asked, settings = self.asked, self.agent.settings
        limits = [it for it in (settings.max_tokens, asked.max_tokens) if it]
        rules = GivenRules(
            files=self.file_rules,
            system=self.system,
            tools=tools,
            max_tokens=min(limits, default=None),
            found=self.found,
        )
        return ModelRequest(
            model=self.model.id,
            system=self.system,
            messages=model_messages(asked.history, rules),
            tools=tuple(tools),
            temperature=settings.temperature if asked.temperature is None else asked.temperature,
            max_tokens=rules.max_tokens,
            cache_key=self.begun.conversation.id,
        )


def _instructions(asked: CompletionRequest) -> Sequence[Component]:
    """The client's own instructions, whole: it expects the model to read every word of them."""
    return [Component(INSTRUCTIONS, storable(asked.instructions))] if asked.instructions else []
