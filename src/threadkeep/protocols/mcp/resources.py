"""The resources: conversations, and the files that tools made in them."""

from dataclasses import dataclass

import msgspec

from threadkeep.domain.conversation import Conversation, ConversationFilter
from threadkeep.domain.errors import InvalidRequest
from threadkeep.handling.paging import PageQuery, Pager
from threadkeep.handling.routing import RequestContext
from threadkeep.protocols.mcp.tools import ReadConversation, read_conversation
from threadkeep.protocols.mcp.turns import ARTIFACTS
from threadkeep.services.reach import check_reach
from threadkeep.wire.view import PageView

CONVERSATIONS = "threadkeep://conversations/"
LISTED_AT_ONCE = 50
MOST_MESSAGES = 200
MOST_ARTIFACT_BYTES = 8 * 1024 * 1024
"""A larger file doesn't fit into one message; it has its own address."""
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Content:
    """What a resource contains."""

    media_type: str
    data: bytes

    @property
    def text(self) -> str | None:
        """The same as text, if it is one."""
        if self.media_type != _JSON and not self.media_type.startswith("text/"):
            return None
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None


async def list_conversations(request: RequestContext, cursor: str | None) -> PageView[Conversation]:
    """A page of the user's conversations, latest activity first."""
    pager = Pager(
        request.cursors, request.user, "mcp conversations", PageQuery(limit=LISTED_AT_ONCE, cursor=cursor)
    )
    found = await request.services.conversations.page(
        request.user,
        ConversationFilter(),
        after=pager.after(tuple[int, str]),
        offset=0,
        limit=pager.fetch_limit,
    )
    return pager.page(found, lambda it: (it.updated_at, it.id), lambda page: page)


async def read_resource(request: RequestContext, uri: str) -> Content:
    """What a URI names."""
    if uri.startswith(CONVERSATIONS):
        which = ReadConversation(conversation_id=uri.removeprefix(CONVERSATIONS), limit=MOST_MESSAGES)
        return Content(_JSON, msgspec.json.encode(await read_conversation(request, which)))
    if uri.startswith(ARTIFACTS):
        artifact_id = uri.removeprefix(ARTIFACTS)
        await check_reach(request.services.store, request.user, {"artifact_id": artifact_id})
        payload, data = await request.services.reports.file(
            request.user, artifact_id, most_bytes=MOST_ARTIFACT_BYTES
        )
        return Content(payload.media_type, data)
    raise InvalidRequest(f"Resources are {CONVERSATIONS}{{id}} and {ARTIFACTS}{{id}}.", param="uri")
