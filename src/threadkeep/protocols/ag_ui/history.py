"""The conversation as AG-UI's messages, for a client that opens it or has missed something."""

from threadkeep.domain.conversation import Conversation
from threadkeep.domain.file import is_image
from threadkeep.domain.ids import MessageId
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.protocols.ag_ui import frames
from threadkeep.protocols.ag_ui.messages import messages_of
from threadkeep.protocols.files import HistoryFiles
from threadkeep.requests.routing import Call

MOST_BYTES = 8 * 1024 * 1024
"""The clients accept 10 MB in one frame; what doesn't fit is the oldest."""


async def history(
    call: Call, conversation: Conversation, *, without: MessageId | None = None
) -> list[frames.Message]:
    """The active path, as many of the newest messages as fit; one can be left out."""
    outside = call.services.outside
    stored = await outside.history(call.user, conversation)
    known = await outside.ids_of(conversation, stored)
    files = HistoryFiles(call.services.files)
    newest_first: list[frames.Message] = []
    size = 0
    for message in reversed(stored):
        if message.id == without:
            continue
        contents = [await _content(call, files, message, file) for file in _attached(message)]
        shown = messages_of(message, known[message.id], contents)
        size += sum(len(frames.encode_json(it)) for it in shown)
        if size > MOST_BYTES:
            break
        newest_first += reversed(shown)
    return newest_first[::-1]


def _attached(message: Message) -> list[FilePart]:
    return [file for file in message.files if not file.tool_call_id]


async def _content(call: Call, files: HistoryFiles, message: Message, file: FilePart) -> frames.Content:
    """A file of a user's message: its content, or its address if it is too large."""
    shown = await files.shown(message, file)
    address = call.link(f"/api/files/{file.file_id}")
    source = (
        frames.UrlSource(address, file.media_type)
        if shown is None
        else frames.DataSource(shown.data, shown.media_type)
    )
    content = frames.ImageContent if is_image(file.media_type) else frames.DocumentContent
    return content(source, {"fileId": file.file_id, "filename": file.file_name})
