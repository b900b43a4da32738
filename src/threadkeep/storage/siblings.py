"""Siblings in the database: the messages with the same parent, versions of a question or answers to it.

A message can have any number of them, so what is read of them is bounded, for one message and for a page.
"""

from collections.abc import Iterable, Mapping, Sequence

from threadkeep.domain.ids import ConversationId, MessageId
from threadkeep.domain.message import Message
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Plan, Statement

MOST_SIBLINGS = 1_000
"""Of one message, including itself. If there are more, these are the nearest."""
MOST_SIBLINGS_A_PAGE = 10_000
"""A page of messages ends before the one with which their siblings would be more."""

Siblings = Mapping[MessageId, Sequence[MessageId]]
"""For each message, the ids of the messages with the same parent, including itself, oldest first."""
FamilySizes = Mapping[MessageId | None, int]
"""How many children a parent has, if several: at most `MOST_SIBLINGS` are counted."""

_COUNT = Statement(
    """SELECT parent.value, (SELECT COUNT(*) FROM (SELECT 1 FROM tk_messages
        WHERE parent_id = parent.value AND conversation_id = :conversation_id LIMIT :most) AS child)
    FROM ({ids}) AS parent"""
)
# `+seq` keeps the databases from reading the whole conversation, which would be in this order.
_CHILDREN = Statement(
    """SELECT parent_id, id FROM tk_messages
    WHERE conversation_id = :conversation_id AND parent_id IN ({ids}) ORDER BY +seq"""
)
# First messages have no parent, and NULL equals nothing, so they need statements of their own.
_COUNT_FIRSTS = Statement(
    """SELECT COUNT(*) FROM (SELECT 1 FROM tk_messages
        WHERE parent_id IS NULL AND conversation_id = :conversation_id LIMIT :most) AS child"""
)


def _near(whose: str, where: str, order: str) -> Statement:
    # Ordered as the index is: PostgreSQL doesn't take `IS NULL` for one value.
    return Statement(
        f"""SELECT id FROM tk_messages
        WHERE {whose} AND conversation_id = :conversation_id AND seq {where} :seq
        ORDER BY parent_id {order}, conversation_id {order}, seq {order} LIMIT :most"""
    )


_OLDER = _near("parent_id = :parent_id", "<", "DESC")
_NEWER = _near("parent_id = :parent_id", ">=", "ASC")
_OLDER_FIRSTS = _near("parent_id IS NULL", "<", "DESC")
_NEWER_FIRSTS = _near("parent_id IS NULL", ">=", "ASC")


def family_sizes(conversation_id: ConversationId, messages: Iterable[Message]) -> Plan[FamilySizes]:
    """How many children the parents of these messages have."""
    parents = {it.parent_id for it in messages}
    ids = to_json([it for it in parents if it is not None])
    counts = yield _COUNT(conversation_id=conversation_id, ids=ids, most=MOST_SIBLINGS)
    sizes: dict[MessageId | None, int] = dict(counts)
    if None in parents:
        ((sizes[None],),) = yield _COUNT_FIRSTS(conversation_id=conversation_id, most=MOST_SIBLINGS)
    return {parent_id: size for parent_id, size in sizes.items() if size > 1}


def siblings(
    conversation_id: ConversationId, messages: Sequence[Message], sizes: FamilySizes
) -> Plan[Siblings]:
    """Of each message that has siblings, all of them, or the nearest."""
    members: dict[MessageId | None, list[Message]] = {}
    for it in messages:
        if it.parent_id in sizes:
            members.setdefault(it.parent_id, []).append(it)
    few = [it for it in members if it is not None and sizes[it] < MOST_SIBLINGS]
    families: dict[MessageId | None, list[MessageId]] = {it: [] for it in few}
    if few:
        for parent_id, id_ in (yield _CHILDREN(conversation_id=conversation_id, ids=to_json(few))):
            families[parent_id].append(id_)
    for parent_id in members.keys() - families.keys():
        families[parent_id] = yield from _around(conversation_id, parent_id, members[parent_id])
    return {it.id: _nearest(families[parent], it.id) for parent, its in members.items() for it in its}


def _around(
    conversation_id: ConversationId, parent_id: MessageId | None, members: Sequence[Message]
) -> Plan[list[MessageId]]:
    """The children of a parent around some of them that are next to each other."""
    older, newer = (_OLDER_FIRSTS, _NEWER_FIRSTS) if parent_id is None else (_OLDER, _NEWER)
    at = {"conversation_id": conversation_id, "parent_id": parent_id, "seq": min(it.seq for it in members)}
    before = yield older(**at, most=MOST_SIBLINGS)
    after = yield newer(**at, most=MOST_SIBLINGS + len(members))
    return [id_ for (id_,) in (*reversed(before), *after)]


def _nearest(family: Sequence[MessageId], id_: MessageId) -> Sequence[MessageId]:
    if len(family) <= MOST_SIBLINGS:
        return family
    first = min(max(family.index(id_) - MOST_SIBLINGS // 2, 0), len(family) - MOST_SIBLINGS)
    return family[first : first + MOST_SIBLINGS]
