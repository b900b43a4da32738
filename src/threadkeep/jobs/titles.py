"""Better titles from the model: requested once, after the first turn, in the background."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from threadkeep.context.completion import Complete
from threadkeep.context.titles import ask_for_title
from threadkeep.domain.agent import Agent
from threadkeep.domain.conversation import Conversation, TitleSource
from threadkeep.domain.errors import BudgetExceeded, GatewayNotConfigured, ModelNotAllowed, ModelNotFound
from threadkeep.domain.ids import ConversationId, UserId
from threadkeep.domain.message import Message, MessageRole, MessageStatus, MessageWindow
from threadkeep.domain.text import is_blank
from threadkeep.ports.models import ConnectedModel
from threadkeep.storage.store import Store

TITLE_JOB = "title"

CompleteFor = Callable[[ConnectedModel, Agent, UserId, str | None], Awaitable[Complete]]
"""How to ask a model for an agent; its user and their API key pay."""
OnTitled = Callable[[Conversation], Awaitable[None]]
ReplyingModel = Callable[[Agent], ConnectedModel]
"""The model that replies for an agent; raises if there is none."""


def title_job(conversation: Conversation, key_id: str | None = None) -> dict[str, str | None]:
    """The arguments of the job that gives a conversation its title, which the first turn's key pays for."""
    return {"user_id": conversation.user_id, "conversation_id": conversation.id, "key_id": key_id}


class Titles:
    """Gives conversations titles. Never reorders a conversation, and never replaces a user's own title."""

    def __init__(
        self,
        store: Store,
        models: ReplyingModel,
        on_titled: OnTitled,
        complete_for: CompleteFor,
    ) -> None:
        self._complete_for = complete_for
        self._store = store
        self._model_of = models
        self._on_titled = on_titled

    async def give(self, arguments: Mapping[str, Any]) -> None:
        """Asks the model for a title for a conversation that has a derived one."""
        user_id = UserId(arguments["user_id"])
        conversation_id = ConversationId(arguments["conversation_id"])
        conversation = await self._store.conversations.get(user_id, conversation_id)
        if conversation is None or conversation.title_source is not TitleSource.DERIVED:
            return
        first = await self._store.messages.page(conversation.id, MessageWindow(), offset=0, limit=10)
        asked, reply = _said(first, MessageRole.USER), _said(first, MessageRole.ASSISTANT)
        if asked is None or reply is None:
            return
        agent = await self._store.agents.get(conversation.agent_id)
        if agent is None:
            return
        try:
            model = self._model_of(agent)
        except (GatewayNotConfigured, ModelNotFound, ModelNotAllowed):
            return
        if not model.model.supports_tools:  # the demonstration model wouldn't do better than the rule
            return
        try:
            complete = await self._complete_for(model, agent, user_id, arguments.get("key_id"))
            title = await ask_for_title(complete, asked, reply)
        except (BudgetExceeded, ModelNotAllowed):  # the derived title will do
            return
        if title is not None:
            titled = await self._store.conversations.update(
                user_id, conversation_id, lambda current: _entitled(current, title)
            )
            if titled is not None:
                await self._on_titled(titled)


def _said(messages: Sequence[Message], role: MessageRole) -> str | None:
    completed = (it for it in messages if it.role is role and it.status is MessageStatus.COMPLETED)
    said = (it.text if not is_blank(it.text) else _file_names(it) for it in completed)
    return next((text for text in said if text), None)


def _file_names(message: Message) -> str:
    return ", ".join(part.file_name for part in message.files)


def _entitled(conversation: Conversation, title: str) -> Conversation:
    if conversation.title_source is not TitleSource.DERIVED:
        return conversation
    return replace(conversation, title=title, title_source=TitleSource.MODEL)
