"""Shares: a user shares a conversation up to a message; everyone with the link can read it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from threadkeep.clock import Clock
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.errors import (
    ConversationChanging,
    FileNotFound,
    Forbidden,
    LimitNotAllowed,
    MessageNotFound,
    ShareNotFound,
    TurnInProgress,
)
from threadkeep.domain.events import LogChunk
from threadkeep.domain.ids import (
    ConversationId,
    MessageId,
    PayloadId,
    ShareId,
    TurnId,
    UserId,
    is_uuid,
    new_uuid,
)
from threadkeep.domain.markdown.plain_text import plain_text
from threadkeep.domain.message import ENDS, Message, MessageRole, MessageWindow
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
from threadkeep.fair_slots import FairSlots
from threadkeep.log.replies import replayed
from threadkeep.services.access import branch_up_to, own_conversation
from threadkeep.services.files import Files, OpenedFile
from threadkeep.services.path import TRIES, branch_pages
from threadkeep.services.payloads import fitting, shown_messages
from threadkeep.storage.messages import MOST_PAGE_BYTES
from threadkeep.storage.store import Store

MOST_PREVIEW_CHARACTERS = 200
MOST_PREVIEW_SOURCE = 2_000
"""How many characters of a message its preview is made from, with the marks that it leaves out."""
PREVIEWED_MESSAGES = 2
READ_AT_ONCE = 2
"""How many conversations are read for a new share, and replies for a replay, on a node; one of each user."""
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
        self._reads = FairSlots(READ_AT_ONCE, of_one=1)

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
        async with self._reads.slot(user.id):
            shown = await self._read(user, conversation, last_id, with_tools=draft.with_tools)
        share = Share(
            id=ShareId(new_uuid()),
            conversation_id=conversation.id,
            message_id=shown.last_id,
            title=conversation.title or "",
            runs=runs_of(shown.seqs),
            files=frozenset(shown.files),
            with_tools=draft.with_tools,
            created_at=now,
            expires_at=draft.expires_at,
            preview=shortened(shown.texts),
        )
        token = new_token()
        if not await self._store.shares.add(share, token_hash(token), most=MOST_SHARES):
            await own_conversation(self._store, user, conversation_id)  # it may be gone meanwhile
            raise LimitNotAllowed(
                f"This conversation has {MOST_SHARES} shares, the most allowed. Revoke one of them.",
                details={"limit": "shares", "most": MOST_SHARES},
            )
        return share, token

    async def _read(
        self, user: User, conversation: Conversation, last_id: str, *, with_tools: bool
    ) -> "_Snapshot":
        """What a share keeps of a conversation up to a message, read page by page."""
        for _ in range(TRIES):
            branch = await branch_up_to(self._store, conversation, last_id)
            snapshot = _Snapshot(with_tools=with_tools)
            async for page in branch_pages(self._store.messages, conversation.id, branch):
                await asyncio.to_thread(snapshot.add, page)  # its texts may be long
            if await self._store.branches.up_to(conversation.id, branch.tip_id) == branch:
                return snapshot
            # the path changed or was purged while we read it: read again
            conversation = await own_conversation(self._store, user, conversation.id)
        raise ConversationChanging

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

    async def messages(self, share: Share, *, after_seq: int, limit: int) -> tuple[Sequence[Message], bool]:
        """The next messages of a share, as it shows them, fewer where they are large; and whether others
        follow.
        """
        found: list[Message] = []
        for first, last in share.runs_after(after_seq):
            page = await self._store.messages.page(
                share.conversation_id,
                MessageWindow(first - 1, last + 1, with_overwritten=True),
                offset=0,
                limit=limit - len(found),
            )
            found += page
            if len(found) == limit or page.is_cut or sum(len(it.text) for it in found) >= MOST_PAGE_BYTES:
                break
        shown = await asyncio.to_thread(
            lambda: [shown_of(message, with_tools=share.with_tools) for message in found]
        )
        kept = await fitting(self._store.payloads, shown)
        has_more = bool(kept) and any(share.runs_after(kept[-1].seq))
        return await shown_messages(self._store.payloads, kept), has_more

    async def replay(self, user_id: UserId, share: Share, position: int) -> Sequence[LogChunk]:
        """The events of a reply, made from what the share shows of it, so that they show nothing else.

        MessageNotFound if the share has no reply at this position, or doesn't show what the agent did.
        """
        async with self._reads.slot(user_id):
            return await self._replayed(share, position)

    async def _replayed(self, share: Share, position: int) -> Sequence[LogChunk]:
        seq = share.seq_at(position) if share.with_tools else None
        found, _ = await self.messages(share, after_seq=seq - 1, limit=1) if seq is not None else ((), False)
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
        return await replayed(turn, reply)

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
            found = await self._store.shares.preview(token_hash(token))
            if found is None or found.has_expired(self._clock()):
                return None
            return Preview(found.title, await self._preview_of(token) if found.text is None else found.text)
        except ShareNotFound:
            return None

    async def _preview_of(self, token: str) -> str:
        """How a share of an earlier version begins; kept with it, so that the next reader costs nothing."""
        share = await self.open(token)
        messages, _ = await self.messages(share, after_seq=0, limit=PREVIEWED_MESSAGES)
        text = shortened(await asyncio.to_thread(lambda: [begin_of(it) for it in messages]))
        await self._store.shares.keep_preview(share.id, text)
        return text


@dataclass(slots=True)
class _Snapshot:
    """What a share keeps of the messages that it shows."""

    with_tools: bool
    last_id: MessageId = _NOBODYS
    seqs: list[int] = field(default_factory=list[int])
    files: set[PayloadId] = field(default_factory=set[PayloadId])
    texts: list[str] = field(default_factory=list[str])

    def add(self, messages: Sequence[Message]) -> None:
        """Adds the next messages; TurnInProgress if one isn't complete."""
        for message in messages:
            if message.status not in ENDS:
                raise TurnInProgress(
                    "The agent is still answering. Share the conversation when it has finished.",
                    message.turn_id,
                )
            shown = shown_of(message, with_tools=self.with_tools)
            self.last_id = message.id
            self.seqs.append(message.seq)
            self.files.update(files_of(shown))
            if len(self.texts) < PREVIEWED_MESSAGES:
                self.texts.append(begin_of(shown))


def begin_of(message: Message) -> str:
    """The beginning of what a reader sees: models write Markdown, and people's words stay as they are."""
    begin = message.text[:MOST_PREVIEW_SOURCE]
    return plain_text(begin) if message.role is MessageRole.ASSISTANT else begin


def shortened(texts: Sequence[str]) -> str:
    """Texts as one line of a preview."""
    text = " ".join(" ".join(texts).split())
    if len(text) <= MOST_PREVIEW_CHARACTERS:
        return text
    return text[: MOST_PREVIEW_CHARACTERS - 1].rstrip() + "…"
