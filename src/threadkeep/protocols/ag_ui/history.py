"""The conversation as AG-UI's messages, for a client that opens it or has missed something."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.file import is_image
from threadkeep.domain.ids import MessageId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.handling.routing import RequestContext
from threadkeep.protocols.ag_ui import frames
from threadkeep.protocols.ag_ui.messages import messages_of
from threadkeep.protocols.files import HistoryFiles
from threadkeep.services.outside import MOST_HISTORY_BYTES


async def history(
    request: RequestContext, conversation: Conversation, *, without: MessageId | None = None
) -> list[frames.Message]:
    """The active path, as many of the newest messages as fit; one can be left out."""
    outside, files = request.services.outside, HistoryFiles(request.services.files)
    newest_first: list[frames.Message] = []
    left = MOST_HISTORY_BYTES
    async with aclosing(outside.newest_first(request.user, conversation)) as pages:
        async for page in pages:
            known = await outside.ids_of(conversation, page)
            for message in page:
                if message.id == without:
                    continue
                contents = [await _content(request, files, message, file) for file in _attached(message)]
                shown, size = await asyncio.to_thread(_shown, message, known[message.id], contents)
                left -= size
                if left < 0:
                    return newest_first[::-1]
                newest_first += reversed(shown)
    return newest_first[::-1]


def _shown(
    message: Message, id_: str, contents: Sequence[frames.Content]
) -> tuple[Sequence[frames.Message], int]:
    """A message as AG-UI has it, and its size."""
    shown = messages_of(message, id_, contents)
    return shown, sum(len(frames.encode_json(it)) for it in shown)


def _attached(message: Message) -> list[FilePart]:
    return [file for file in message.files if not file.tool_call_id]


async def _content(
    request: RequestContext, files: HistoryFiles, message: Message, file: FilePart
) -> frames.Content:
    """A file of a user's message: its content, or its address if it is too large."""
    shown = await files.shown(message, file)
    address = request.link(f"/api/files/{file.file_id}")
    source = (
        frames.UrlSource(address, file.media_type)
        if shown is None
        else frames.DataSource(shown.data, shown.media_type)
    )
    content = frames.ImageContent if is_image(file.media_type) else frames.DocumentContent
    return content(source, {"fileId": file.file_id, "filename": file.file_name})
