"""How a model receives the files of messages and tools: as themselves, as text, or as a line.

Files of earlier turns are sent as long as all of them fit, so that providers' caches keep them. Then the
oldest and largest permanently become a line; `recall_file` brings one back.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from threadkeep.context.estimates import beginning_of
from threadkeep.context.tool_results import Form, Shrinkable, choose_forms
from threadkeep.domain.document import PDF
from threadkeep.domain.events import ReturnedImage
from threadkeep.domain.file import decode_text, is_image, is_text
from threadkeep.domain.ids import MessageId, PayloadId
from threadkeep.domain.image import image_bytes, image_tokens
from threadkeep.domain.message import Message
from threadkeep.domain.parts import FilePart
from threadkeep.domain.payload import Lost
from threadkeep.domain.text import one_line
from threadkeep.domain.uploaded_file import AS_TEXT, FOR_MODEL
from threadkeep.ports.gateway import (
    FILE_BLOCKS,
    TAKES_NO_FILES,
    Block,
    DocumentBlock,
    ImageBlock,
    ModelMessage,
    ModelRequest,
    TakenFiles,
    TextBlock,
)

RECALL_FILE = "recall_file"

MOST_CHARACTERS = 100_000
"""The maximum text of a file to send; a note marks the omission."""
MOST_TEXT_BYTES = 4 * MOST_CHARACTERS + 1
"""How much of a text to read for that: a character takes at most 4 bytes."""
SHARE_FOR_A_MESSAGE = 2
"""The maximum share of the model's context for the texts of a message's files."""

SHARE_FOR_EARLIER_FILES = 2
"""The maximum share of the model's context for the files of earlier turns."""
MOST_EARLIER_FILES = 80
"""Providers accept 100 images, or fewer."""
MOST_EARLIER_BYTES = 16_000_000
"""Providers accept requests of 32 MB, or more, and base64 turns 3 bytes into 4."""
MOST_DOCUMENT_BYTES = 16_000_000
"""The maximum for all PDFs of a message; the rest become lines, and `recall_file` reads their texts."""
MOST_FILES_OF_A_REQUEST = 100
MOST_BYTES_OF_A_REQUEST = 22_000_000
"""Includes what tools returned in the turn. The provider would refuse a larger request."""
_WHOLE = 10_000

MOST_PDF_PAGES = 100
MOST_PDF_BYTES = 10_000_000
PDF_PAGE_TOKENS = 2_250
"""Providers read a PDF's text and look at its pages: 1,500 to 3,000 tokens for each."""
SHARE_FOR_A_PDF = 3
"""A PDF that takes a larger share of the model's context is sent as text, which can be truncated."""


@dataclass(frozen=True, slots=True)
class FileRules:
    """Which files a model receives as is, and the size of its context."""

    taken: TakenFiles
    context_tokens: int
    can_recall: bool = False
    """Whether the model has a tool that loads a file again."""

    def content_ref(self, part: FilePart) -> PayloadId | None:
        """The text of a file to send, if it is sent as text."""
        if is_image(part.media_type) or self.is_document(part):
            return None
        return part.file_id if is_text(part.media_type) else part.refs.get(AS_TEXT)

    def is_document(self, part: FilePart) -> bool:
        """Whether a file is sent as the provider's document block."""
        pages = part.pages or 0
        most_tokens = self.context_tokens // SHARE_FOR_A_PDF
        return (
            self.taken.pdfs
            and part.media_type == PDF
            and 0 < pages <= min(MOST_PDF_PAGES, most_tokens // PDF_PAGE_TOKENS)
            and part.size <= MOST_PDF_BYTES
        )

    def is_unread_scan(self, part: FilePart) -> bool:
        """Whether a PDF is sent as a line because it has no text."""
        return part.media_type == PDF and not self.is_document(part) and AS_TEXT not in part.refs

    def blocks(
        self,
        part: FilePart,
        form: Form,
        payloads: Mapping[PayloadId, bytes | Lost],
        *,
        text_tokens: int,
        tool_use_id: str = "",
    ) -> Iterator[Block]:
        """A file as the model receives it."""
        image = part.refs.get(FOR_MODEL)
        if form is not Form.WHOLE:
            yield TextBlock(_line(part, recall=self.can_recall))
        elif is_image(part.media_type) and image and self.taken.images:
            tokens = image_tokens(part.width or 0, part.height or 0, self.taken.images)
            yield ImageBlock(image, part.file_name, tokens, tool_use_id)
        elif self.is_document(part):
            yield DocumentBlock(part.file_id, part.file_name, PDF_PAGE_TOKENS * (part.pages or 0))
        elif isinstance(content := payloads.get(self.content_ref(part) or PayloadId("")), bytes):
            yield TextBlock(_text(part, content, text_tokens, recall=self.can_recall))
        elif not tool_use_id:  # a tool's result names its files itself
            yield TextBlock(_line(part, recall=False, lost=content))

    def image_blocks(self, images: Iterable[FilePart], tool_use_id: str) -> Iterator[Block]:
        """Images that a tool returned, as the model receives them in the same turn."""
        for part in images:
            yield from self.blocks(part, Form.WHOLE, {}, text_tokens=0, tool_use_id=tool_use_id)

    def text_tokens(self, files: Sequence[FilePart]) -> int:
        """How much of each file's text to send with a message."""
        texts = sum(self.content_ref(it) is not None for it in files)
        return self.context_tokens // SHARE_FOR_A_MESSAGE // max(texts, 1)

    def forms(
        self,
        path: Sequence[Message],
        question_id: MessageId,
        prior_forms: Mapping[str, Form],
        payloads: Mapping[PayloadId, bytes | Lost],
    ) -> dict[str, Form]:
        """Files of earlier turns to send as a line: those that already were, and more if not all fit."""
        files = [part for message in path if message.id != question_id for part in message.files]
        shares = {
            form_key(file): Shrinkable(
                form_key(file),
                prior_forms.get(form_key(file), Form.WHOLE),
                {Form.WHOLE: self._share(file, payloads), Form.SHORT: 0, Form.OUTLINE: 0},
            )
            for file in files
        }
        asked = [part for message in path if message.id == question_id for part in message.files]
        return choose_forms(list(shares.values()), _WHOLE) | self._documents_beyond(asked)

    def _documents_beyond(self, asked: Sequence[FilePart]) -> dict[str, Form]:
        """The question's PDFs beyond the limit."""
        documents = [it for it in asked if self.is_document(it)]
        sizes = accumulate(it.size for it in documents)
        return {
            form_key(document): Form.SHORT
            for document, size in zip(documents, sizes, strict=True)
            if size > MOST_DOCUMENT_BYTES
        }

    def _share(self, part: FilePart, payloads: Mapping[PayloadId, bytes | Lost]) -> int:
        """The share of the room that a file takes, in ten thousandths: of tokens, bytes or file count."""
        tokens, size = 0, 0
        if is_image(part.media_type) and self.taken.images:
            tokens = image_tokens(part.width or 0, part.height or 0, self.taken.images)
            size = image_bytes(part.width or 0, part.height or 0)
        elif self.is_document(part):
            tokens, size = PDF_PAGE_TOKENS * (part.pages or 0), part.size
        elif isinstance(content := payloads.get(self.content_ref(part) or PayloadId("")), bytes):
            tokens = min(len(content) // 4, MOST_CHARACTERS)
        most_tokens = max(self.context_tokens // SHARE_FOR_EARLIER_FILES, 1)
        taken = max(tokens / most_tokens, size / MOST_EARLIER_BYTES, 1 / MOST_EARLIER_FILES)
        return round(taken * _WHOLE)


NO_FILES = FileRules(TAKES_NO_FILES, 0)


def returned_image(part: FilePart) -> ReturnedImage:
    """A tool's image as its event describes it."""
    return ReturnedImage(
        file_id=part.file_id,
        file_name=part.file_name,
        media_type=part.media_type,
        size=part.size,
        width=part.width or 0,
        height=part.height or 0,
        refs=part.refs,
    )


def form_key(part: FilePart) -> str:
    """A receipt's key for a file that is sent as a line; a file that a tool brought back has its own."""
    return f"{part.tool_call_id}/{part.file_id}" if part.tool_call_id else part.file_id


def files_in(messages: Iterable[ModelMessage]) -> Iterator[ImageBlock | DocumentBlock]:
    """The images and documents of a request."""
    return (it for message in messages for it in message.blocks if isinstance(it, FILE_BLOCKS))


def tokens_of_files(messages: Iterable[ModelMessage]) -> int:
    """What images and documents cost beyond their place in the request."""
    return sum(block.tokens for block in files_in(messages))


def with_contents(request: ModelRequest, found: Mapping[PayloadId, bytes | Lost]) -> ModelRequest:
    """A request with the contents of its files; a line takes the place of one that is lost or too large."""
    contents = {**request.contents, **{id_: it for id_, it in found.items() if isinstance(it, bytes)}}
    room = _Room(contents)
    # The latest files have priority.
    messages = [room.filled(message) for message in reversed(request.messages)]
    return replace(request, messages=tuple(reversed(messages)), contents=room.taken)


class _Room:
    """What still fits into a request, counted from its end."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self.taken: dict[str, bytes] = {}
        self._contents = contents
        self._files = MOST_FILES_OF_A_REQUEST
        self._bytes = MOST_BYTES_OF_A_REQUEST

    def filled(self, message: ModelMessage) -> ModelMessage:
        """A message with the files that exist and fit."""
        if not any(files_in([message])):
            return message
        blocks = [self._block(block) for block in reversed(message.blocks)]
        return ModelMessage(message.role, tuple(reversed(blocks)))

    def _block(self, block: Block) -> Block:
        if not isinstance(block, ImageBlock | DocumentBlock):
            return block
        content, name = self._contents.get(block.content_id), one_line(block.file_name)
        if content is None:
            return TextBlock(f"[File {name}: its content is no longer available]")
        self._files, self._bytes = self._files - 1, self._bytes - len(content)
        if self._files < 0 or self._bytes < 0:
            return TextBlock(f"[File {name}: left out because the request is full]")
        self.taken[block.content_id] = content
        return block


def _line(part: FilePart, *, recall: bool, lost: bytes | Lost | None = None) -> str:
    size = f"{part.width} × {part.height} pixels" if part.width else f"{part.size} bytes"
    why = ""
    if isinstance(lost, Lost):
        why = f". {lost.reason}"
    elif recall:
        why = f'; {RECALL_FILE} with id "{part.file_id}" returns it'
    elif part.media_type == PDF and AS_TEXT not in part.refs:
        why = ". It has no text that can be read: its pages are images."
    return f"[File {one_line(part.file_name)}: {part.media_type}, {size}{why}]"


def _text(part: FilePart, content: bytes, most_tokens: int, *, recall: bool) -> str:
    text = decode_text(content)
    kept = beginning_of(text[:MOST_CHARACTERS], most_tokens)
    if len(kept) < len(text):
        more = (
            f'; {RECALL_FILE} with id "{part.file_id}" and offset {len(kept)} returns more' if recall else ""
        )
        kept = f"{kept}\n[… the rest of this file is left out{more}]"
    return f"[File {one_line(part.file_name)}]\n{kept}"
