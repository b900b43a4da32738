"""Files in AgentX messages: accepted like any message's files, and shown in the history as the same parts."""

from threadkeep.domain.file import file_line, is_image
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.protocols.agentx import frames
from threadkeep.protocols.agentx.decode import SentPart
from threadkeep.protocols.files import HistoryFiles, ReceivedFile


def sent_file(part: SentPart) -> ReceivedFile:
    """A part of a message that is a file."""
    name = part.name or part.filename or ("image" if part.type == "image" else "file")
    return ReceivedFile(name, part.data)


async def file_parts(files: HistoryFiles, message: Message) -> list[frames.Content]:
    """A message's files: images and others as parts of their own, those too large as a line."""
    return [await _part(files, message, file) for file in message.files]


async def _part(files: HistoryFiles, message: Message, file: FilePart) -> frames.Content:
    shown = await files.shown(message, file)
    if shown is None:
        return frames.TextContent(file_line(file.file_name, file.media_type, file.size))
    if is_image(file.media_type):
        return frames.ImageContent(shown.data, shown.media_type, file.file_name)
    return frames.FileContent(shown.data, shown.media_type, file.file_name)
