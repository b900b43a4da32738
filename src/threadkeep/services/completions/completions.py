"""Completions: begins replies outside any conversation, within the same limits as turns."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from threadkeep.context.attachments import FileRules
from threadkeep.context.outputs import asking_component
from threadkeep.context.prompt import INSTRUCTIONS, Component, joined
from threadkeep.domain.agent import Agent
from threadkeep.domain.caps import NO_CAPS, OperatorCaps
from threadkeep.domain.conversation import BegunTurn, Conversation
from threadkeep.domain.errors import InvalidRequest, ShuttingDown
from threadkeep.domain.events import Retrieval
from threadkeep.domain.message import check_user_content
from threadkeep.domain.money import Purpose
from threadkeep.domain.parts import FilePart
from threadkeep.domain.retrieval import RetrievalHit
from threadkeep.domain.text import is_blank, storable
from threadkeep.domain.turn import BegunWith
from threadkeep.domain.user import User
from threadkeep.engine.loop import Surroundings, run_turn
from threadkeep.engine.outputs import output_check
from threadkeep.engine.tools import CallingTurn
from threadkeep.engine.turn_tools import TurnTools
from threadkeep.ports.allowances import ReplyPlace
from threadkeep.ports.gateway import ModelRequest, ToolSpec
from threadkeep.ports.models import ConnectedModel
from threadkeep.ports.tools import Caller, ReturnedFile
from threadkeep.runtime.runner import Runner
from threadkeep.services.client_tools import ClientTools, offered_client_tools
from threadkeep.services.completions.completion import Completion, Contents
from threadkeep.services.completions.given import GivenMessage, GivenRules, model_messages
from threadkeep.services.completions.tools import NobodyToAsk, OfferedTools
from threadkeep.services.equipment import Equipment, limits_of, output_of
from threadkeep.services.prompts import Prompts
from threadkeep.services.replies.passages import Passages
from threadkeep.services.replies.reply_places import ReplyPlaces
from threadkeep.storage.store import Store
from threadkeep.tasks import end_tasks

CLOSE_S = 10.0

_NO_QUESTION = GivenMessage(role="user", text="(none)")
"""What a made-up turn replies to if the history has only calls and their results. No model sees it."""


class Completions:
    """The use cases of replies outside any conversation."""

    def __init__(
        self,
        store: Store,
        runner: Runner,
        equipment: Equipment,
        prompts: Prompts,
        passages: Passages,
        client_tools: ClientTools,
        places: ReplyPlaces,
        caps: OperatorCaps = NO_CAPS,
    ) -> None:
        self._store = store
        self._runner = runner
        self._equipment = equipment
        self._prompts = prompts
        self._passages = passages
        self._client_tools = client_tools
        self._places = places
        self._caps = caps
        self._running: set[Completion] = set()

    async def begin(
        self,
        user: User,
        agent: Agent,
        history: Sequence[GivenMessage],
        begun_with: BegunWith,
        *,
        model: str | None = None,
    ) -> Completion:
        """Begins a reply, or refuses it for the reasons that a turn would be refused for.

        `model` is to reply, among those that the agent offers; by default the agent's own.
        """
        if agent.program is not None:  # no model must answer in its place
            raise InvalidRequest(
                "This agent is a program, and programs run in conversations only: use the Responses API with "
                "`store: true`, or another API.",
                param="model",
            )
        if self._runner.is_draining:
            raise ShuttingDown("This process is shutting down. Try again in a moment.")
        agent = self._caps.limited(agent)
        chosen = self._equipment.choice.chosen(agent, model)
        begun = self._begun(user, agent, chosen, history, begun_with)
        await self._client_tools.check(user, agent, begun.conversation, begun_with)
        await self._equipment.spending.check(user, begun, agent)
        prompt = await self._prompts.assemble(agent, chosen.model, activated=agent.primary_role_id)
        asked = begun.user_message if history[-1].role == "user" else None
        before = await self._passages.before(agent, asked, chosen.model)
        output = output_of(agent, begun_with)
        await self._store.users.meet(
            user.id, self._equipment.clock()
        )  # the ledger needs the user, and nothing else
        place = await self._places.take(user.id)
        run = _Run(
            user,
            agent,
            chosen,
            begun,
            history,
            begun_with,
            system=joined([*prompt.components, *_instructions(begun_with), *_asking(output)]),
            output=output,
            found=[hit for it in before if isinstance(it, Retrieval) for hit in it.hits],
        )
        completion = self._completion(run, place)
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

    def _begun(
        self,
        user: User,
        agent: Agent,
        model: ConnectedModel,
        history: Sequence[GivenMessage],
        begun_with: BegunWith,
    ) -> BegunTurn:
        """The turn that the reply would be in a conversation, by which the loop and the tools know it."""
        question = next((it for it in reversed(history) if it.role == "user"), _NO_QUESTION)
        if question is history[-1]:
            most = agent.settings.max_message_chars
            check_user_content(question.text, most=most, has_files=bool(question.files))
        elif is_blank(question.text) and not question.files:
            question = _NO_QUESTION
        now = self._equipment.clock()
        return Conversation.start(user.id, agent.id, now).begin_turn(
            question.text,
            now,
            files=tuple(it.part for it in question.files),
            model=model.id,
            key_id=user.key_id,
            begun_with=begun_with,
        )

    def _completion(self, run: "_Run", place: ReplyPlace) -> Completion:
        """The agent's loop, as in a turn. Each model call is charged when it ends, however it ends."""
        caller = Caller(run.agent, run.user, run.begun.conversation)
        files = (file.contents for message in run.history for file in message.files)
        contents = Contents({id_: content for it in files for id_, content in it.items()})
        around = Surroundings(
            models=self._equipment.turn_models(run.agent, run.model),
            tools=self._turn_tools(run, caller, contents),
            limits=limits_of(run.agent),
            spending=self._equipment.spending.account(run.user, run.agent, Purpose.COMPLETION),
            load=contents.load,
            check_output=output_check(self._equipment.schemas, run.user.id),
            tool_choice=run.begun_with.tool_choice,
        )

        async def build(tools: Sequence[ToolSpec]) -> ModelRequest:
            return await asyncio.to_thread(run.request, tools)  # the history may be long

        held = self._held(place, caller)
        steps = run_turn(run.begun.turn, build, around)
        return Completion(run.begun.turn, steps, around.stop, contents, self._equipment.clock, held)

    @asynccontextmanager
    async def _held(self, place: ReplyPlace, caller: Caller) -> AsyncGenerator[None]:
        try:
            async with self._places.hold(place):
                yield
        finally:
            if self._equipment.tools:
                self._equipment.tools.end(caller)

    def _turn_tools(self, run: "_Run", caller: Caller, contents: Contents) -> TurnTools:
        turn, equipment = run.begun.turn, self._equipment

        async def keep_image(file: ReturnedFile) -> FilePart | None:
            if (loaded := await equipment.files.load_returned(run.user, file)) is None:
                return None
            contents.by_id.update(loaded.contents)
            return loaded.part

        calling = CallingTurn(
            id=turn.id,
            user_id=run.user.id,
            client_tools=offered_client_tools(run.agent, turn, run.model.model),
            found=run.found,
            keep_image=keep_image,
            reads=run.file_rules,
        )
        session = equipment.session(caller, run.model)
        toolbox = equipment.toolbox(session and OfferedTools(session), turn, calling, contents.keep)
        return TurnTools(toolbox, NobodyToAsk(turn, equipment.clock), run.agent.settings.tools)


@dataclass(frozen=True, slots=True)
class _Run:
    """What one reply is made from."""

    user: User
    agent: Agent
    model: ConnectedModel
    begun: BegunTurn
    history: Sequence[GivenMessage]
    begun_with: BegunWith
    system: str
    output: Mapping[str, Any] | None
    found: Sequence[RetrievalHit]

    @property
    def file_rules(self) -> FileRules:
        """The files that the model receives as is."""
        return FileRules(self.model.files, self.model.model.context_tokens)

    def request(self, tools: Sequence[ToolSpec]) -> ModelRequest:
        """The request of the first model call; the client can lower the agent's limit, and not raise it."""
        asked, settings = self.begun_with, self.agent.settings
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
            messages=model_messages(self.history, rules),
            tools=tuple(tools),
            temperature=settings.temperature if asked.temperature is None else asked.temperature,
            max_tokens=rules.max_tokens,
            output=self.output,
            cache_key=self.begun.conversation.id,
        )


def _asking(output: Mapping[str, Any] | None) -> Sequence[Component]:
    """What asks the model for JSON, if it is to be that."""
    return [] if output is None else [asking_component(output)]


def _instructions(asked: BegunWith) -> Sequence[Component]:
    """The client's own instructions, whole: it expects the model to read every word of them."""
    return [Component(INSTRUCTIONS, storable(asked.instructions))] if asked.instructions else []
