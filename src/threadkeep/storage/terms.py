"""The terms of a collection as both databases index them.

Each term is prefixed with its collection's number and an `x`, so that the posting lists that a search reads
contain nothing of other collections: 17x合同.
"""

import json
from collections.abc import Iterable
from typing import Literal

from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import AgentId, UserId
from threadkeep.search.query import Query
from threadkeep.storage.database.connector import Plan, Statement

# An agent's collection holds its documents, a user's what was said in the user's conversations.
_AGENTS_NUMBER = Statement("SELECT number FROM tk_collections WHERE agent_id = :id")
_USERS_NUMBER = Statement("SELECT number FROM tk_collections WHERE user_id = :id")
_NUMBERS = {"agent_id": _AGENTS_NUMBER, "user_id": _USERS_NUMBER}
# Two at once may choose the same number, and one of them then adds nothing: the caller looks and tries again.
_ADD_AGENTS_NUMBER = Statement(
    """INSERT INTO tk_collections (number, agent_id)
    SELECT COALESCE(MAX(number), 0) + 1, :id FROM tk_collections WHERE TRUE ON CONFLICT DO NOTHING""",
    postgres="""INSERT INTO tk_collections (number, agent_id)
    SELECT COALESCE(MAX(number), 0) + 1, CAST(CAST(:id AS text) AS uuid) FROM tk_collections
    ON CONFLICT DO NOTHING""",
)
_ADD_USERS_NUMBER = Statement(
    """INSERT INTO tk_collections (number, user_id)
    SELECT COALESCE(MAX(number), 0) + 1, :id FROM tk_collections WHERE TRUE ON CONFLICT DO NOTHING""",
    postgres="""INSERT INTO tk_collections (number, user_id)
    SELECT COALESCE(MAX(number), 0) + 1, CAST(CAST(:id AS text) AS text) FROM tk_collections
    ON CONFLICT DO NOTHING""",
)
_ADD_NUMBERS = {"agent_id": _ADD_AGENTS_NUMBER, "user_id": _ADD_USERS_NUMBER}
# Locks the counter until the commit, so that no two reserve the same numbers.
_NEXT = Statement(
    """INSERT INTO tk_counters (name, value) VALUES (:name, :step)
    ON CONFLICT (name) DO UPDATE SET value = tk_counters.value + :step RETURNING value"""
)


def collection_of(owner: AgentId | UserId, kind: Literal["agent_id", "user_id"]) -> Plan[int]:
    """The number of an agent's or a user's collection, which is created if missing."""
    for _ in range(3):
        if rows := (yield _NUMBERS[kind](id=owner)):
            return rows[0][0]
        yield _ADD_NUMBERS[kind](id=owner)
    raise StorageConflict("Couldn't create the collection because of concurrent writes.")


def reserve(name: str, count: int) -> Plan[int]:
    """Reserves a run of numbers; returns the first."""
    ((last,),) = yield _NEXT(name=name, step=count)
    return last - count + 1


def numbered(number: int, terms: Iterable[str]) -> list[str]:
    """Terms as stored."""
    return [f"{number}x{term}" for term in terms]


def match_all(dialect: Literal["sqlite", "postgres"], terms: Iterable[str]) -> str:
    """A query in the database's syntax for all of these terms, which contain no quotes."""
    if dialect == "sqlite":
        return " AND ".join(f'"{term}"' for term in terms)
    return " & ".join(f"'{term}'" for term in terms)


def match_query(dialect: Literal["sqlite", "postgres"], number: int, query: Query) -> str:
    """The same for what a person looks for in a collection: all terms, and one of those that the last word
    begins.
    """
    whole = numbered(number, sorted(query.terms))
    if query.begun is None:
        return match_all(dialect, whole)
    (beginning,) = numbered(number, [query.begun.beginning])
    stems = numbered(number, sorted(query.begun.stems))
    if dialect == "sqlite":
        either = " OR ".join([f'"{beginning}" *', *(f'"{it}"' for it in stems)])
        return " AND ".join([*(f'"{it}"' for it in whole), f"({either})"])
    either = " | ".join([f"'{beginning}':*", *(f"'{it}'" for it in stems)])
    return " & ".join([*(f"'{it}'" for it in whole), f"({either})"])


def json_text(value: object) -> str:
    """Many values as one parameter."""
    return json.dumps(value, ensure_ascii=False)
