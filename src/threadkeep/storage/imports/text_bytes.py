"""How much the rows and texts of a whole conversation take in the database: what imports and forks add."""

from collections.abc import Collection

from threadkeep.domain.conversation import WholeConversation
from threadkeep.domain.ids import PayloadId
from threadkeep.storage.compactions import compaction_bytes
from threadkeep.storage.messages import message_values
from threadkeep.storage.parts import calls_in
from threadkeep.storage.payloads.database import payload_bytes
from threadkeep.storage.text_bytes import ROW_BYTES, call_bytes, message_bytes
from threadkeep.storage.tool_calls import tool_call_values


def text_bytes(whole: WholeConversation, files: Collection[PayloadId]) -> int:
    """The bytes of all rows of a conversation but its own; `files` count elsewhere."""
    size = sum(payload_bytes(payload) for payload in whole.payloads if payload.id not in files)
    size += sum(map(compaction_bytes, whole.compactions))
    for message in whole.messages:
        size += ROW_BYTES + message_bytes(message_values(message))
        calls = (tool_call_values(call, whole.conversation, 0) for call in calls_in(message.parts))
        size += sum(map(call_bytes, calls))
    return size
