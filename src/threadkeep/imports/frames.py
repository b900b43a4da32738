"""What we ask the process that reads an export, and what it answers: JSON within limits, one item at a time.

Each request is a line. Each answer is any number of frames of export lines, then one frame with a reply.
"""

import struct
from collections.abc import Mapping

import msgspec

from threadkeep.domain.ids import AgentId
from threadkeep.domain.import_run import ImportProblem
from threadkeep.domain.uploaded_file import UploadedFile
from threadkeep.imports.source import ForeignOutline, ImportLimits

LINES, REPLY = b"L", b"R"
HEADER = struct.Struct(">cI")
FRAME_BYTES = 256 * 1024
"""Lines are sent in frames of about this size; a longer line has one of its own."""
GO_ON = b"\n"


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """What the process begins with: the file, which it has by path or already open, and its limits."""

    name: str
    path: str | None = None
    descriptor: int = -1
    folder: str
    """Where it puts the files of the conversation that it is at."""
    limits: ImportLimits
    memory_bytes: int
    cpu_s: int
    conversation_cpu_s: float
    slice_s: float
    """After so much CPU time it asks whether it may go on."""


class Count(msgspec.Struct, frozen=True, tag=True):
    """How many conversations does it have?"""


class Next(msgspec.Struct, frozen=True, tag=True):
    """The next item; what was unpacked for the last one goes."""


class Unpack(msgspec.Struct, frozen=True, tag=True):
    """A file beside the lines, as this file of the folder."""

    name: str
    target: str
    most: int


class UnpackPayloads(msgspec.Struct, frozen=True, tag=True):
    """The payloads of this conversation of ours, by their hashes."""

    most: int


class UnpackFile(msgspec.Struct, frozen=True, tag=True):
    """A file of this conversation of another product, by its number."""

    number: int
    most: int


class Convert(msgspec.Struct, frozen=True, tag=True):
    """This conversation of another product as one of ours; its large values go to the folder."""

    agent_id: AgentId
    now: int
    files: Mapping[int, UploadedFile]


Request = Count | Next | Unpack | UnpackPayloads | UnpackFile | Convert


class Refusal(msgspec.Struct, frozen=True):
    """An error; with a reason, one of the whole file."""

    message: str
    reason: str | None = None


class UnpackedFile(msgspec.Struct, frozen=True):
    """A file that is in the folder now."""

    name: str
    is_text: bool
    """The text of a file whose type may be another."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of these; without any, there is no such thing, or no more."""

    progress: tuple[int, int] | None = None
    refused: Refusal | None = None
    is_ours: bool | None = None
    count: int | None = None
    flawed: ImportProblem | None = None
    foreign: ForeignOutline | None = None
    has_lines: bool = False
    """What the lines before it say."""
    unpacked: UnpackedFile | None = None


encode = msgspec.json.Encoder().encode
decode_request = msgspec.json.Decoder(Request).decode
decode_reply = msgspec.json.Decoder(Reply).decode
