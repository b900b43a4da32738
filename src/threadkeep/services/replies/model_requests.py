"""Model requests: loads what a turn's first request contains."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from threadkeep.context.attachments import MOST_TEXT_BYTES, FileRules, form_key
from threadkeep.context.cards import CardStyle
from threadkeep.context.history import read_refs
from threadkeep.context.outputs import asking_component
from threadkeep.context.prompt import joined
from threadkeep.context.request import BuiltRequest, ContextRules, Sources, build_request
from threadkeep.domain.agent import Agent
from threadkeep.domain.compaction import Compaction
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.events import Notice, Retrieval
from threadkeep.domain.file import is_image
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.message import Message, MessageWindow
from threadkeep.domain.parts import FilePart
from threadkeep.domain.payload import Lost
from threadkeep.domain.text import is_blank
from threadkeep.domain.tool_call import ToolCall
from threadkeep.domain.turn import BegunWith
from threadkeep.engine.code.means import AskedFirst
from threadkeep.engine.replay import TurnState
from threadkeep.ports.gateway import ToolSpec
from threadkeep.ports.models import ConnectedModel
from threadkeep.services.equipment import output_of
from threadkeep.services.path import latest_messages
from threadkeep.services.prompts import Prompts
from threadkeep.services.replies.passages import Passages
from threadkeep.storage.store import Store
from threadkeep.storage.turn_log import HeldTurn

MOST_MESSAGES = 10_000  # of a context without a limit of its own
MOST_MESSAGES_AT_ONCE = 300
MOST_BYTES_AT_ONCE = 128 * 1024
"""Up to this many messages, and bytes of results, become a request without delaying other work."""

_UNSEEN = "This model doesn't accept images; it sees only the name of {}."
_UNREAD = "The model sees only the name of {}, which contains images but no text."


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request before its tools are known, and the events that come before it."""

    sources: Sources
    rules: ContextRules
    opening: Sequence[Notice | Retrieval]
    is_large: bool
    """Whether building it would delay other work."""

    async def build(self, tools: Sequence[ToolSpec]) -> BuiltRequest:
        """The request with its tools."""
        sources = replace(self.sources, tools=tools)
        if self.is_large:
            return await asyncio.to_thread(build_request, sources, self.rules)
        return build_request(sources, self.rules)


class ModelRequests:
    """Loads the messages, files, passages and prompt that the model receives."""

    def __init__(self, store: Store, prompts: Prompts, passages: Passages, cards: CardStyle) -> None:
        self._store = store
        self._prompts = prompts
        self._passages = passages
        self._cards = cards

    async def prepare(
        self, agent: Agent, held: HeldTurn, model: ConnectedModel, state: TurnState
    ) -> PreparedRequest:
        """Prepares a turn's request, perhaps again: its node may have died after it showed some of this."""
        conversation, asked_id = held.conversation, held.turn.user_message_id
        # Loaded again: it may have been compacted, or that undone, since the turn began.
        compaction = None
        if conversation.archived_to_seq:
            compaction = await self._store.compactions.current(conversation.id)
        path = await self._path(agent, held, compaction)
        # A role stays active until the agent changes: its owner may have given it another one.
        activated = await self._activated_role(agent, conversation)
        summary = compaction.summary if compaction else None
        begun_with = held.turn.begun_with
        prompt = await self._prompts.assemble(
            agent,
            model.model,
            activated=activated,
            of_user=await self._of_user(agent, conversation),
            instructions=begun_with.instructions if begun_with else None,
            summary=summary,
        )
        asked = next((message for message in path if message.id == asked_id), None)
        # Passages that were shown keep their numbers: another search may find others.
        found = () if state.found else await self._passages.before(agent, asked, model.model)
        newest = await self._store.receipts.newest(conversation.id)
        prior = newest.receipt if newest else None
        rules = self._rules(agent, model, begun_with or BegunWith())
        shortened = frozenset(prior.shortened if prior else ())
        calls = [call for message in path for call in message.tool_calls]
        sources = Sources(
            path=path,
            question_id=asked_id,
            components=prompt.components,
            output=output_of(agent, begun_with),
            found=state.found or [hit for it in found if isinstance(it, Retrieval) for hit in it.hits],
            payloads={
                # Without tools, results are sent as text, whatever form they had before.
                **await self._large_values(
                    conversation, calls, shortened if model.model.supports_tools else frozenset()
                ),
                **await self._texts_of_files(conversation, path, rules, shortened),
            },
            prior=prior,
            is_new_window=newest is not None and not newest.is_current,
            model=model.id,
            cache_key=conversation.id,
        )
        notices = _file_notices(asked.files, rules) if asked else ()
        opening = (*prompt.notices, *notices, *found)
        is_large = len(path) > MOST_MESSAGES_AT_ONCE or _result_bytes(sources, calls) > MOST_BYTES_AT_ONCE
        unseen = [it for it in opening if it not in state.noticed]
        return PreparedRequest(sources, rules, unseen, is_large)

    async def asked_first(
        self, agent: Agent, conversation: Conversation, model: ConnectedModel
    ) -> AskedFirst:
        """What an agent's model receives before anything else, where another agent asks it."""
        of_user = await self._of_user(agent, conversation)
        prompt = await self._prompts.assemble(agent, model.model, of_user=of_user)
        settings = agent.settings
        asking = () if settings.output is None else (asking_component(settings.output),)
        components = (it for it in (*prompt.components, *asking) if not is_blank(it.text))
        return AskedFirst(joined(components), settings.temperature, settings.max_tokens, settings.output)

    async def _path(self, agent: Agent, held: HeldTurn, compaction: Compaction | None) -> Sequence[Message]:
        """The latest messages of the active path, oldest first, with the question."""
        window = MessageWindow(
            after_seq=compaction.to_seq if compaction else 0,
            before_seq=held.reply.seq,
        )
        latest = await latest_messages(
            self._store.messages,
            held.conversation.id,
            window,
            most=agent.settings.context_messages or MOST_MESSAGES,
        )
        asked_id = held.turn.user_message_id
        if any(message.id == asked_id for message in latest):
            return latest
        # The question has since been archived, and gets another reply.
        asked = await self._store.messages.get(held.conversation.id, asked_id)
        return [*([asked] if asked else ()), *latest]

    async def _activated_role(self, agent: Agent, conversation: Conversation) -> str | None:
        call = await self._store.messages.activated_role(conversation.id, since=agent.updated_at)
        role_id = call.arguments.get("role") if call else None
        return role_id if isinstance(role_id, str) else None

    async def _of_user(self, agent: Agent, conversation: Conversation) -> str:
        """What the user tells every agent."""
        if not agent.settings.user_instructions:
            return ""
        return await self._store.users.instructions(conversation.user_id)

    async def _large_values(
        self, conversation: Conversation, calls: Sequence[ToolCall], shortened: Collection[str]
    ) -> Mapping[PayloadId, bytes | Lost]:
        """The values of calls in the payload store, if the model receives them."""
        if not any(call.refs for call in calls):
            return {}
        refs = (ref for call in calls for ref in read_refs(call, is_short=call.sent_id in shortened))
        return await self._store.payloads.load(conversation.id, refs)

    async def _texts_of_files(
        self,
        conversation: Conversation,
        path: Sequence[Message],
        rules: ContextRules,
        shortened: Collection[str],
    ) -> Mapping[PayloadId, bytes | Lost]:
        """The texts of the path's files, if the model receives them."""
        files = FileRules(rules.files, rules.context_tokens)
        sent = (part for message in path for part in message.files if form_key(part) not in shortened)
        texts: dict[PayloadId, bytes | Lost] = {}
        for ref in dict.fromkeys(ref for it in sent if (ref := files.content_ref(it))):
            # One by one: each may have 100 MB.
            content = (await self._store.payloads.load(conversation.id, [ref]))[ref]
            texts[ref] = content if isinstance(content, Lost) else content[:MOST_TEXT_BYTES]
        return texts

    def _rules(self, agent: Agent, model: ConnectedModel, begun_with: BegunWith) -> ContextRules:
        settings, temperature = agent.settings, begun_with.temperature
        limits = [it for it in (settings.max_tokens, begun_with.max_tokens) if it]
        return ContextRules(
            cards=self._cards,
            context_tokens=model.model.context_tokens,
            context_messages=settings.context_messages,
            result_tokens=settings.tool_result_tokens,
            thoughts=settings.context_thoughts,
            files=model.files,
            temperature=settings.temperature if temperature is None else temperature,
            max_tokens=min(limits, default=None),
        )


def _file_notices(files: Sequence[FilePart], rules: ContextRules) -> Iterator[Notice]:
    """Notices about files that the model receives only as a line."""
    given = FileRules(rules.files, rules.context_tokens)
    if unseen := [it.file_name for it in files if is_image(it.media_type) and not rules.files.images]:
        yield Notice("IMAGES_NOT_TAKEN", _UNSEEN.format(", ".join(unseen)))
    if scans := [it.file_name for it in files if given.is_unread_scan(it)]:
        yield Notice("PDF_WITHOUT_TEXT", _UNREAD.format(", ".join(scans)))


def _result_bytes(sources: Sources, calls: Sequence[ToolCall]) -> int:
    """The approximate size of a request's results; structured ones in rows are small."""
    loaded = (len(content) for content in (sources.payloads or {}).values() if isinstance(content, bytes))
    return sum(loaded) + sum(len(call.result) for call in calls if isinstance(call.result, str))
