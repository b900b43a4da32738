"""A file to import, and what is found in it."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from threadkeep.domain.briefing import Briefing
from threadkeep.domain.conversation import WholeConversation
from threadkeep.domain.document import Document
from threadkeep.domain.ids import AgentId, ConversationId
from threadkeep.domain.import_run import ImportProblem
from threadkeep.domain.memory import KeptMemory
from threadkeep.domain.uploaded_file import UploadedFile
from threadkeep.exports.records import KnownAgent, OwnAgent, OwnInstructions


@dataclass(frozen=True, slots=True)
class ForeignOutline:
    """A conversation from another product, not yet converted: the id it will have here, and its files."""

    id: ConversationId
    name: str
    file_count: int


@dataclass(frozen=True, slots=True)
class ForeignContent:
    """A file of another product's conversation; of one that isn't a text itself, maybe only its text."""

    name: str
    path: Path
    is_text: bool


OwnItem = OwnInstructions | OwnAgent | KnownAgent | Document | KeptMemory | Briefing
"""An item of an export of ours besides conversations."""

ImportItem = OwnItem | WholeConversation | ForeignOutline
"""An item of an imported file."""

ENDING = ".txt"
"""The type of a file that we only have the text of; its own would mislead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportLimits:
    """How much of a file is read; None: as much as there is."""

    conversation_bytes: int
    """Of one conversation; a larger one is flawed."""
    conversations: int | None = None
    unpacked_bytes: int | None = None
    """Of all conversations, and of all files beside them that are read."""
    message_parts: int | None = None
    """Of one message; a conversation with more is flawed: we handle a message at a time."""
    directory_bytes: int | None = None
    """Of the list of files that a ZIP file has at its end."""


class SourceStopped(Exception):
    """The source was stopped while somebody waited for it."""


class ImportSource(Protocol):
    """An imported file, read in a process of its own: a stranger's file may cost a lot.

    Every method raises SourceStopped once it was stopped, UnsupportedImport if the file can't be read on.
    """

    @property
    def is_ours(self) -> bool:
        """Whether it is a Threadkeep export."""
        ...

    def stop(self) -> None:
        """Ends whatever is being done, at once."""
        ...

    def unless_stopped(self) -> AbstractAsyncContextManager[None]:
        """Ends the block with SourceStopped when it is stopped."""
        ...

    async def count(self) -> int:
        """How many conversations it has, flawed ones too. UnsupportedImport if it has too many."""
        ...

    async def next(self) -> ImportItem | ImportProblem | None:
        """The next item; None after the last. What was unpacked for the item before is gone."""
        ...

    async def unpack(self, name: str, *, most: int) -> Path | None:
        """An accompanying file; None if it is missing. It may be one byte larger than `most`."""
        ...

    async def unpack_payloads(self, *, most: int) -> None:
        """Makes the payloads of this conversation of ours readable; InvalidRequest if one is damaged."""
        ...

    async def unpack_file(self, number: int, *, most: int) -> ForeignContent | None:
        """A file of this conversation of another product; None if it is missing.

        InvalidRequest if it is damaged, or has more than `most` bytes.
        """
        ...

    async def convert(
        self, agent_id: AgentId, now: int, files: Mapping[int, UploadedFile]
    ) -> WholeConversation | ImportProblem:
        """This conversation of another product as one of ours; `now` replaces unknown times.

        `files` are stored elsewhere; a text replaces any other file.
        """
        ...

    def read(self, sha256: str) -> bytes:
        """A payload of this conversation, or a large value of one that was converted."""
        ...
