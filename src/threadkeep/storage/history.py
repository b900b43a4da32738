"""The search index of messages and titles, maintained by its own job.

Texts are tokenised between the plans that read and write, not within them: a plan holds a connection.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from threadkeep.domain.ids import FIRST_UUID, AgentId, ConversationId, MessageId, UserId
from threadkeep.domain.markdown.plain_text import plain_text
from threadkeep.domain.message import MessageRole, SaidHit
from threadkeep.search.query import Query, read_query
from threadkeep.search.reading import first_places, terms_of
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Row, Rows, Statement
from threadkeep.storage.messages import text_of
from threadkeep.storage.path_moves import on_path
from threadkeep.storage.terms import collection_of, match_query, numbered


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """Which messages and titles to search; None is any."""

    agents: frozenset[AgentId] | None = None
    """Those in conversations with one of these."""
    since: int | None = None
    until: int | None = None
    """Those created before this time."""


EVERYTHING = SearchFilter()


# Only the beginning of a longer message is searchable: PostgreSQL takes a megabyte of terms per row.
MOST_CHARACTERS = 20_000
SNIPPET_CHARACTERS = 240
BEFORE_THE_FIRST = 60
# How much of a hit is read: the searchable text, and a snippet around a word at its end.
MOST_SHOWN = MOST_CHARACTERS + SNIPPET_CHARACTERS
# How much text one search highlights; a hit beyond that shows its beginning.
MOST_HIGHLIGHTED = 200_000
_NO_LIMIT = 2**63 - 1

# Conversations whose index lacks messages or has another title, a page at a time.
BEHIND = Statement(
    """SELECT conversation.id FROM tk_conversations AS conversation
    LEFT JOIN tk_searchable AS known ON known.conversation_id = conversation.id
    WHERE conversation.id > :after AND conversation.deleted_at IS NULL
        AND (known.to_seq IS NULL OR known.to_seq < conversation.last_seq
            OR COALESCE(known.title, '') <> COALESCE(conversation.title, ''))
    ORDER BY conversation.id LIMIT :limit"""
)
# The user, the conversation, then its entries: the order in which deleting the user locks them. Any other
# order could deadlock.
_HOLD_OWNER = Statement(
    """SELECT owner.id FROM tk_users AS owner
    JOIN tk_conversations AS conversation ON conversation.user_id = owner.id
    WHERE conversation.id = :conversation_id""",
    locks="FOR KEY SHARE OF owner",
)
_CONVERSATION = """SELECT conversation.user_id, conversation.title, COALESCE(known.to_seq, 0), known.title
    FROM tk_conversations AS conversation
    LEFT JOIN tk_searchable AS known ON known.conversation_id = conversation.id
    WHERE conversation.id = :conversation_id AND conversation.deleted_at IS NULL"""
# First read without a lock, since taking texts apart takes a while; then held while the index changes.
_READ_CONVERSATION = Statement(_CONVERSATION)
_HOLD_CONVERSATION = Statement(_CONVERSATION, locks="FOR KEY SHARE OF conversation")
# The texts to take apart. While the conversation is held, `_NUMBERS` reads the same messages without texts,
# to see what has ended since.
_MESSAGES = Statement(
    """SELECT id, seq, CASE content_type
        WHEN 'text' THEN SUBSTR(content, 1, CAST(:longest AS INTEGER)) ELSE content END, content_type,
        completed_at FROM tk_messages
    WHERE conversation_id = :conversation_id AND seq > :to_seq ORDER BY seq LIMIT :limit"""
)
_NUMBERS = Statement(
    """SELECT id, seq, completed_at FROM tk_messages
    WHERE conversation_id = :conversation_id AND seq > :to_seq ORDER BY seq LIMIT :limit"""
)
# Adds nothing if the id is taken, or if another node was faster; the next two statements show which.
_ADD = Statement(
    """INSERT INTO tk_entries (id, conversation_id, message_id, terms)
    VALUES (:id, :conversation_id, :message_id, :terms) ON CONFLICT DO NOTHING RETURNING id"""
)
_HAS_ENTRY = Statement("SELECT 1 FROM tk_entries WHERE message_id = :message_id")
_HAS_TITLE = Statement(
    "SELECT 1 FROM tk_entries WHERE conversation_id = :conversation_id AND message_id IS NULL"
)
# The entry without a message is the title's.
_FORGET_TITLE = Statement(
    "DELETE FROM tk_entries WHERE conversation_id = :conversation_id AND message_id IS NULL"
)
# How much of the conversation the index has, for BEHIND and for the next run.
_KNOW = Statement(
    """INSERT INTO tk_searchable (conversation_id, to_seq, title) VALUES (:conversation_id, :to_seq, :title)
    ON CONFLICT (conversation_id) DO UPDATE SET to_seq = excluded.to_seq, title = excluded.title"""
)
# The entry of a title has no message: it has the conversation's text and time.
_FOUND = f"""entry.id, entry.conversation_id, conversation.agent_id, conversation.title, message.id,
    message.seq, message.role,
    COALESCE(CASE message.content_type
        WHEN 'text' THEN SUBSTR(message.content, 1, CAST(:longest AS INTEGER)) ELSE message.content
        END, conversation.title), COALESCE(message.content_type, 'text'),
    COALESCE(message.created_at, conversation.created_at),
    COALESCE({on_path("message", "message.conversation_id")}, TRUE)"""
_WITHIN_TIME = """COALESCE(message.created_at, conversation.created_at) >= :since
        AND COALESCE(message.created_at, conversation.created_at) < :until"""


# The newest entries of a user that have all terms. PostgreSQL would rather walk back over all users' entries
# until enough contain a common word. Ordering by `place`, which no index has, makes it use the index of
# terms; only the hits are joined.
def _search_statement(condition: str = "") -> Statement:
    return Statement(
        f"""SELECT {_FOUND}
    FROM tk_entry_terms AS found CROSS JOIN tk_entries AS entry ON entry.id = found.rowid
    JOIN tk_conversations AS conversation ON conversation.id = entry.conversation_id
    LEFT JOIN tk_messages AS message ON message.id = entry.message_id
    WHERE found.tk_entry_terms MATCH :query AND found.rowid < :before AND conversation.deleted_at IS NULL
        AND conversation.user_id = :user_id AND {_WITHIN_TIME} {condition}
    ORDER BY found.rowid DESC LIMIT :limit""",
        postgres=f"""SELECT {_FOUND}
    FROM (SELECT id, id + 0 AS place, conversation_id, message_id FROM tk_entries
        WHERE array_to_tsvector(string_to_array(terms, ' ')) @@ CAST(:query AS tsquery) AND id < :before
        ORDER BY place DESC OFFSET 0) AS entry
    JOIN tk_conversations AS conversation ON conversation.id = entry.conversation_id
    LEFT JOIN tk_messages AS message ON message.id = entry.message_id
    WHERE conversation.deleted_at IS NULL AND conversation.user_id = :user_id AND {_WITHIN_TIME} {condition}
    ORDER BY entry.place DESC LIMIT :limit""",
    )


SEARCH = _search_statement()
# The same in conversations with some agents.
SEARCH_WITHIN = _search_statement("AND conversation.agent_id IN ({ids})")


class SqlHistory:
    """The index of all messages and titles; it follows the store and is not part of an append."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def behind(self, *, after: str | None, limit: int) -> Sequence[ConversationId]:
        """Conversations with finished messages that aren't indexed yet, by id."""
        rows = await self._database.fetch(BEHIND(after=after or FIRST_UUID, limit=limit))
        return [id_ for (id_,) in rows]

    async def follow(self, conversation_id: ConversationId, *, limit: int) -> bool:
        """Indexes some more of a conversation; returns whether there may be more to do."""
        said = await self._database.read(lambda: _unsearchable(conversation_id, limit))
        taken_apart = await _take_apart(said)
        return await self._database.write(lambda: _follow(conversation_id, limit, taken_apart))

    async def search(
        self,
        user_id: UserId,
        query: str,
        *,
        before: int | None,
        limit: int,
        which: SearchFilter = EVERYTHING,
    ) -> Sequence[SaidHit]:
        """Matches with all words of the query, newest first, in conversations that aren't deleted. The last
        word finds all that it begins.
        """
        if not (asked := read_query(query)):
            return ()
        rows = await self._database.read(
            lambda: self._search(user_id, asked, _NO_LIMIT if before is None else before, limit, which)
        )
        return await _hits(rows, asked)

    def _search(
        self, user_id: UserId, query: Query, before: int, limit: int, which: SearchFilter
    ) -> Plan[Rows]:
        rows = yield _NUMBER(user_id=user_id)
        if not rows:
            return ()
        values = {
            "query": match_query(self._database.dialect, rows[0][0], query),
            "user_id": user_id,
            "before": before,
            "since": -_NO_LIMIT if which.since is None else which.since,
            "until": _NO_LIMIT if which.until is None else which.until,
            "limit": limit,
            "longest": MOST_SHOWN,
        }
        if which.agents is None:
            return (yield SEARCH(**values))
        return (yield SEARCH_WITHIN(**values, ids=to_json(which.agents)))


# A user without a collection has nothing to search yet.
_NUMBER = Statement("SELECT number FROM tk_collections WHERE user_id = :user_id")


@dataclass(frozen=True, slots=True)
class _Said:
    """What is not searchable yet: a new title, and messages by id."""

    title: str | None
    messages: Mapping[MessageId, str]


@dataclass(frozen=True, slots=True)
class _TakenApart:
    """The terms of a title and messages."""

    title: str | None
    title_terms: Sequence[str]
    by_message: Mapping[MessageId, Sequence[str]]


def _unsearchable(conversation_id: ConversationId, limit: int) -> Plan[_Said]:
    rows = yield _READ_CONVERSATION(conversation_id=conversation_id)
    if not rows:
        return _Said(None, {})
    _, title, to_seq, known_title = rows[0]
    messages = yield _MESSAGES(
        conversation_id=conversation_id, to_seq=to_seq, limit=limit, longest=MOST_CHARACTERS
    )
    ended = takewhile(lambda row: row[-1] is not None, messages)  # the next is still being written
    texts = {id_: text_of(content, content_type) for id_, _, content, content_type, _ in ended}
    return _Said(title if title != known_title else None, texts)


async def _take_apart(said: _Said) -> _TakenApart:
    by_message = {id_: await _distinct_terms(text) for id_, text in said.messages.items()}
    return _TakenApart(said.title, await _distinct_terms(said.title or ""), by_message)


async def _distinct_terms(text: str) -> list[str]:
    return list(dict.fromkeys(await terms_of(text[:MOST_CHARACTERS])))


def _follow(conversation_id: ConversationId, limit: int, said: _TakenApart) -> Plan[bool]:
    yield _HOLD_OWNER(conversation_id=conversation_id)
    rows = yield _HOLD_CONVERSATION(conversation_id=conversation_id)
    if not rows:
        return False
    user_id, title, to_seq, known_title = rows[0]
    number = yield from collection_of(user_id, "user_id")
    if title != known_title and title in {None, said.title}:
        yield _FORGET_TITLE(conversation_id=conversation_id)
        if title:
            yield from _add_entry(number, conversation_id, None, said.title_terms)
        known_title = title
    messages = yield _NUMBERS(conversation_id=conversation_id, to_seq=to_seq, limit=limit)
    has_more = len(messages) == limit
    for message_id, seq, completed_at in messages:
        if message_id not in said.by_message:
            has_more = completed_at is not None  # it has ended since the texts were read
            break
        yield from _add_entry(number, conversation_id, message_id, said.by_message[message_id])
        to_seq = seq
    yield _KNOW(conversation_id=conversation_id, to_seq=to_seq, title=known_title)
    return has_more or title != known_title


def _add_entry(
    number: int, conversation_id: ConversationId, message_id: str | None, found_by: Sequence[str]
) -> Plan[None]:
    found = " ".join(numbered(number, found_by))
    id_ = entry_number(message_id or conversation_id)
    whose = {"conversation_id": conversation_id, "message_id": message_id}
    while not (yield _ADD(id=id_, terms=found, **whose)):
        if (yield (_HAS_ENTRY if message_id else _HAS_TITLE)(**whose)):
            return  # another node was faster
        id_ += 1  # taken by an entry of the same millisecond, as imports may have


def entry_number(uuid: str) -> int:
    """A number that ascends as UUIDv7 do: the newest is found first, without sorting.

    It consists of the time and the next 15 bits, which also ascend within one process.
    """
    digits = uuid.replace("-", "")
    first, then = int(digits[13:16], 16), int(digits[16:18], 16) & 0x3F
    return int(digits[:12], 16) << 15 | first << 3 | then >> 3


async def _hits(rows: Rows, query: Query) -> list[SaidHit]:
    left = MOST_HIGHLIGHTED
    hits: list[SaidHit] = []
    for row in rows:
        text = text_of(row[7], row[8])
        # Models write Markdown; what a person writes is shown as it is.
        if row[6] == MessageRole.ASSISTANT:
            text = await asyncio.to_thread(plain_text, text[: max(left, SNIPPET_CHARACTERS)]) or text
        looked_at = text[: min(left, MOST_CHARACTERS)]
        places = await first_places(looked_at, query, within=SNIPPET_CHARACTERS)
        left -= min(len(looked_at), places[0][0] + SNIPPET_CHARACTERS) if places else len(looked_at)
        hits.append(_hit(row, text, places))
    return hits


def _hit(row: Row, text: str, places: Sequence[tuple[int, int]]) -> SaidHit:
    entry_id, conversation_id, agent_id, title, message_id, seq, role, _, _, created_at, on_path = row
    begin = max(0, places[0][0] - BEFORE_THE_FIRST) if places else 0
    end = begin + SNIPPET_CHARACTERS
    return SaidHit(
        entry_id=entry_id,
        conversation_id=conversation_id,
        agent_id=agent_id,
        title=title,
        message_id=message_id,
        seq=seq,
        role=MessageRole(role) if role else None,
        snippet=text[begin:end],
        highlights=[(first - begin, last - begin) for first, last in places if last <= end],
        created_at=created_at,
        on_path=bool(on_path),
    )
