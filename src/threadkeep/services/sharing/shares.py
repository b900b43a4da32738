"""Shares: a user shares a conversation up to a message; everyone with the link can read it."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from threadkeep.clock import Clock
from threadkeep.domain.errors import (
    FileNotFound,
    Forbidden,
    LimitNotAllowed,
    MessageNotFound,
    ShareNotFound,
    TurnInProgress,
)
from threadkeep.domain.ids import ConversationId, MessageId, PayloadId, ShareId, TurnId, is_uuid, new_uuid
from threadkeep.domain.markdown.plain_text import plain_text
from threadkeep.domain.message import ENDS, Message, MessageRole
from threadkeep.domain.sharing.share import (
    MOST_SHARES,
    Share,
    ShareDraft,
    Sharing,
    new_token,
    runs_of,
    token_hash,
)
from threadkeep.domain.sharing.shown import files_of, shown_of
from threadkeep.domain.turn import ENDS as TURN_ENDS
from threadkeep.domain.turn import Turn
from threadkeep.domain.user import User
from threadkeep.log.replies import replayed
from threadkeep.ports.messages import MessageWindow
from threadkeep.ports.store import Store
from threadkeep.ports.turn_log import LogChunk
from threadkeep.services.access import own_conversation
from threadkeep.services.files import Files, OpenedFile
from threadkeep.services.path import messages_up_to
from threadkeep.services.payloads import shown_messages

MOST_PREVIEW_CHARACTERS = 200
_NOBODYS = MessageId("")
"""Events name the messages of their turn; a share's events don't."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What chats show for a link to a share before someone opens it."""

    title: str
    text: str


class Shares:
    """The use cases of shares."""

    def __init__(self, store: Store, files: Files, clock: Clock, sharing: Sharing) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._sharing = sharing

    async def create(self, user: User, conversation_id: str, draft: ShareDraft) -> tuple[Share, str]:
        """A new share of the user's conversation, and its token, which is shown only now."""
        if self._sharing is Sharing.OFF:
            raise Forbidden("Sharing is off on this server. The operator can turn it on: THREADKEEP_SHARING.")
        now = self._clock()
        draft.check_expiry(now)
        conversation = await own_conversation(self._store, user, conversation_id)
        last_id = draft.message_id or conversation.tip_id
        if last_id is None:
            raise MessageNotFound("The conversation has no messages yet.")
        messages = await messages_up_to(self._store, user, conversation, last_id)
        if any(message.status not in ENDS for message in messages):
            raise TurnInProgress("The agent is still answering. Share the conversation when it has finished.")
        share = Share(
            id=ShareId(new_uuid()),
            conversation_id=conversation.id,
            message_id=messages[-1].id,
            title=conversation.title or "",
            runs=runs_of(message.seq for message in messages),
            files=await asyncio.to_thread(_files_in, messages, with_tools=draft.with_tools),
            with_tools=draft.with_tools,
            created_at=now,
            expires_at=draft.expires_at,
        )
        token = new_token()
        if not await self._store.shares.add(share, token_hash(token), most=MOST_SHARES):
            await own_conversation(self._store, user, conversation_id)  # it may be gone meanwhile
            raise LimitNotAllowed(
                f"This conversation has {MOST_SHARES} shares, the most allowed. Revoke one of them.",
                details={"limit": "shares", "most": MOST_SHARES},
            )
        return share, token

    async def list(self, user: User, conversation_id: str) -> Sequence[Share]:
        """The shares of one of the user's conversations, newest first, expired ones too."""
        conversation = await own_conversation(self._store, user, conversation_id)
        return await self._store.shares.of_conversation(conversation.id)

    async def revoke(self, user: User, share_id: str) -> None:
        """Deletes a share of one of the user's conversations: its link stops working at once."""
        id_ = ShareId(share_id.lower())
        if not is_uuid(share_id) or not await self._store.shares.remove(user.id, id_):
            raise ShareNotFound

    async def open(self, token: str) -> Share:
        """The share that a token opens; ShareNotFound if it is unknown, expired or revoked."""
        share = None
        if self._sharing is not Sharing.OFF:
            share = await self._store.shares.find(token_hash(token))
        if share is None or share.has_expired(self._clock()):
            raise ShareNotFound
        return share

    async def messages(self, share: Share, *, after_seq: int, limit: int) -> Sequence[Message]:
        """The next messages of a share, as it shows them."""
        found: list[Message] = []
        for first, last in share.runs_after(after_seq):
            found += await self._store.messages.page(
                share.conversation_id,
                MessageWindow(first - 1, last + 1, with_overwritten=True),
                offset=0,
                limit=limit - len(found),
            )
            if len(found) == limit:
                break
        shown = [shown_of(message, with_tools=share.with_tools) for message in found]
        return await shown_messages(self._store.payloads, shown)

    async def replay(self, share: Share, position: int) -> LogChunk:
        """The events of a reply, made from what the share shows of it, so that they show nothing else.

        MessageNotFound if the share has no reply at this position, or doesn't show what the agent did.
        """
        seq = share.seq_at(position) if share.with_tools else None
        found = await self.messages(share, after_seq=seq - 1, limit=1) if seq is not None else ()
        if not found or found[0].role is not MessageRole.ASSISTANT:
            raise MessageNotFound
        reply = replace(found[0], id=_NOBODYS)
        turn = Turn(
            id=TurnId(str(position)),
            conversation_id=ConversationId(""),
            user_message_id=_NOBODYS,
            assistant_message_id=_NOBODYS,
            status=TURN_ENDS[reply.status],
            started_at=reply.created_at,
            ended_at=reply.completed_at,
        )
        return replayed(turn, reply)

    async def file(self, token: str, file_id: str, *, preview: bool) -> OpenedFile:
        """A file of a share."""
        share = await self.open(token)
        id_ = PayloadId(file_id.lower())
        if id_ not in share.files:
            raise FileNotFound
        return await self._files.open_used(share.conversation_id, id_, preview=preview)

    async def preview(self, token: str) -> Preview | None:
        """What everyone may see of a share; None if only users may open it, or it no longer exists."""
        if self._sharing is not Sharing.ANYONE:
            return None
        try:
            share = await self.open(token)
        except ShareNotFound:
            return None
        messages = await self.messages(share, after_seq=0, limit=2)
        text = " ".join(" ".join(map(_shown_text, messages)).split())
        shortened = text[: MOST_PREVIEW_CHARACTERS - 1].rstrip() + "…"
        return Preview(share.title, text if len(text) <= MOST_PREVIEW_CHARACTERS else shortened)


def _shown_text(message: Message) -> str:
    """What a reader sees: models write Markdown, and what a person writes is shown as it is."""
    return plain_text(message.text) if message.role is MessageRole.ASSISTANT else message.text


def _files_in(messages: Iterable[Message], *, with_tools: bool) -> frozenset[PayloadId]:
    """The files that a share of messages shows; a long conversation has many messages."""
    return frozenset(id_ for it in messages for id_ in files_of(shown_of(it, with_tools=with_tools)))
