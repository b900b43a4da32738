"""What programs keep between the turns of a conversation, and the large values of their steps."""

from collections.abc import Iterable

from threadkeep.domain.errors import StorageRefused
from threadkeep.domain.ids import ConversationId, MessageId, TurnId
from threadkeep.storage.database.columns import to_json
from threadkeep.storage.database.connector import Database, Plan, Statement

MOST_STATE_BYTES = 8 * 1024 * 1024

_KEEP = Statement(
    """INSERT INTO tk_states (message_id, conversation_id, payload)
    VALUES (:message_id, :conversation_id, :payload)"""
)
# Of the nearest message with a state, from a message upwards. Every step follows the parent's key.
_NEAREST = Statement(
    """WITH RECURSIVE path (id, parent_id, depth) AS (
        SELECT id, parent_id, 0 FROM tk_messages WHERE id = :message_id AND conversation_id = :conversation_id
            AND EXISTS (SELECT 1 FROM tk_states WHERE tk_states.conversation_id = :conversation_id)
        UNION ALL SELECT above.id, above.parent_id, path.depth + 1
        FROM path JOIN tk_messages AS above ON above.id = path.parent_id
        WHERE NOT EXISTS (SELECT 1 FROM tk_states WHERE tk_states.message_id = path.id))
    SELECT kept.payload FROM path JOIN tk_states AS kept ON kept.message_id = path.id
    ORDER BY path.depth LIMIT 1"""
)
KEPT_STATES = Statement("SELECT message_id FROM tk_states WHERE message_id IN ({ids})")
_COPY = """INSERT INTO tk_states (message_id, conversation_id, payload)
    SELECT {new}, :conversation_id, kept.payload
    FROM {given} JOIN tk_states AS kept ON kept.message_id = {old}"""
_COPY_ALL = Statement(
    _COPY.format(
        new="json_extract(value, '$[1]')",
        old="json_extract(value, '$[0]')",
        given="json_each(:pairs) AS given",
    ),
    postgres=_COPY.format(
        new="CAST(value ->> 1 AS uuid)",
        old="CAST(value ->> 0 AS uuid)",
        given="json_array_elements(CAST(:pairs AS json)) AS given",
    ),
)
# A retry, after the reply to the first try was lost, finds the row.
_ADD_VALUE = Statement(
    """INSERT INTO tk_step_values (id, turn_id, conversation_id, content)
    VALUES (:id, :turn_id, :conversation_id, :content) ON CONFLICT (id) DO NOTHING"""
)
_GET_VALUE = Statement("SELECT content FROM tk_step_values WHERE id = :id AND turn_id = :turn_id")


class SqlStates:
    """States of programs by reply, and large values of steps by turn."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def before(self, conversation_id: ConversationId, message_id: MessageId | None) -> bytes | None:
        """The state for a question after this message: that of the nearest reply on its path, or its own.

        None if no reply on the path has one. For a turn, pass its question's `parent_id`.
        """
        if message_id is None:
            return None
        query = _NEAREST(message_id=message_id, conversation_id=conversation_id)
        rows = await self._database.fetch(query)
        return bytes(rows[0][0]) if rows else None

    async def add_value(
        self, turn_id: TurnId, conversation_id: ConversationId, value_id: str, content: bytes
    ) -> None:
        """Keeps a large value of a turn's step, until the turn's log is trimmed."""
        query = _ADD_VALUE(id=value_id, turn_id=turn_id, conversation_id=conversation_id, content=content)
        await self._database.execute(query, urgent=True)

    async def value(self, turn_id: TurnId, value_id: str) -> bytes | None:
        """A value kept before; None if it is gone."""
        rows = await self._database.fetch(_GET_VALUE(id=value_id, turn_id=turn_id))
        return bytes(rows[0][0]) if rows else None


def keep_state(conversation_id: ConversationId, message_id: MessageId, state: bytes) -> Plan[None]:
    """Stores the state that a turn leaves with its reply, in the commit of its end."""
    check_state(state)
    yield _KEEP(message_id=message_id, conversation_id=conversation_id, payload=state)


def check_state(state: bytes) -> None:
    """Refuses a state that is too large."""
    if len(state) > MOST_STATE_BYTES:
        raise StorageRefused(f"A state can have at most {MOST_STATE_BYTES} bytes.")


def copy_states(target: ConversationId, pairs: Iterable[tuple[MessageId, MessageId]]) -> Plan[None]:
    """Copies the states of messages, each given with the id of its copy in another conversation."""
    yield _COPY_ALL(conversation_id=target, pairs=to_json(list(pairs)))
