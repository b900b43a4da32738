"""Files of messages as a model is sent them: an image as itself, a text as text, all else by name."""

from collections.abc import Iterable, Iterator, Mapping

from threadkeep.domain.document import PDF
from threadkeep.domain.file import JPEG, PNG, is_image, is_text
from threadkeep.domain.ids import PayloadId
from threadkeep.domain.image import image_tokens
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.domain.text import one_line
from threadkeep.domain.uploaded_file import AS_TEXT, FOR_MODEL
from threadkeep.ports.gateway import Block, ImageBlock, ModelMessage, TextBlock
from threadkeep.ports.payloads import Lost

MOST_CHARACTERS = 100_000
"""So much of a file's text is sent; the rest is left out, and that is said."""


def content_ref(part: FilePart, *, takes_images: bool) -> PayloadId | None:
    """Which content of a file a model is sent, if any."""
    if is_image(part.media_type):
        return part.refs.get(FOR_MODEL) if takes_images else None
    return part.file_id if is_text(part.media_type) else part.refs.get(AS_TEXT)


def file_blocks(
    part: FilePart, large: Mapping[PayloadId, bytes | Lost], *, takes_images: bool
) -> Iterator[Block]:
    """A file as the model is sent it."""
    ref = content_ref(part, takes_images=takes_images)
    content = large.get(ref) if ref else None
    if not isinstance(content, bytes):
        yield TextBlock(_line(part, content))
    elif is_image(part.media_type):
        assert ref
        media_type = PNG if content.startswith(b"\x89PNG") else JPEG
        yield ImageBlock(ref, media_type, part.width or 0, part.height or 0)
    else:
        yield TextBlock(_text(part, content))


def images_in(messages: Iterable[ModelMessage]) -> Iterator[ImageBlock]:
    """The images of a request."""
    for message in messages:
        yield from (block for block in message.blocks if isinstance(block, ImageBlock))


def tokens_of_images(messages: Iterable[ModelMessage]) -> int:
    """What images cost beyond their place in the request."""
    return sum(image_tokens(block.width, block.height) for block in images_in(messages))


def unseen_images(message: Message) -> list[str]:
    """The names of a message's images, of which a model that takes none sees no more."""
    return [part.file_name for part in message.files if is_image(part.media_type)]


def _line(part: FilePart, content: Lost | None) -> str:
    size = f"{part.width} × {part.height} pixels" if part.width else f"{part.size} bytes"
    why = ""
    if isinstance(content, Lost):
        why = f". {content.reason}"
    elif part.media_type == PDF:
        why = ". It has no text that can be read: its pages are images."
    return f"[File {one_line(part.file_name)}: {part.media_type}, {size}{why}]"


def _text(part: FilePart, content: bytes) -> str:
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = content.decode(encoding, "replace")
    left_out = len(text) - MOST_CHARACTERS
    if left_out > 0:
        text = f"{text[:MOST_CHARACTERS]}\n[… {left_out} more characters of this file are left out]"
    return f"[File {one_line(part.file_name)}]\n{text}"
