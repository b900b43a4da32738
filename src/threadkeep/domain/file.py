"""Detects the type of a message's file by its content: a name and a header can say anything.

The rules, from the first and the last bytes of a file:

- PNG, JPEG, GIF, WebP, PDF and DOCX begin with their magic number, at byte 0. Everything else must be text:
  UTF-8, or UTF-16 with a byte order mark, without control characters. The name only selects the kind of text.
- A text with the name of an image, a PDF or a DOCX is refused: HTML named photo.png, a PDF that begins after
  something else. So is a file named .svg: browsers run its scripts. Under another name, SVG is text.
- HTML with the name of a text or a source file is accepted as source code, `text/x-source`. No file has the
  media type `text/html`, so nothing that serves a file by its media type can serve a page.
- Polyglots: a file that is a PDF for readers that search for its beginning, and something else for others, is
  refused; so is a PDF that begins with HTML. An image with anything behind or inside it (a ZIP, a script, a
  PDF further down) is accepted: only its re-encoded pixels are shown or sent to a model. The original is only
  for download as an attachment, never inline.
"""

import codecs
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Literal

from threadkeep.domain.document import CSV, DOCX, MARKDOWN, PDF, TEXT
from threadkeep.domain.errors import UnsupportedFile
from threadkeep.domain.text import one_line

FileKind = Literal["images", "pdfs"]
"""Files that a model can take as they are."""

PNG = "image/png"
JPEG = "image/jpeg"
GIF = "image/gif"
WEBP = "image/webp"
JSON = "application/json"
CODE = "text/x-source"

IMAGES = frozenset({PNG, JPEG, GIF, WEBP})
TEXTS = frozenset({TEXT, CSV, MARKDOWN, JSON, CODE})
ACCEPTED = IMAGES | TEXTS | {PDF, DOCX}

HEAD_BYTES = 64 * 1024
TAIL_BYTES = 64 * 1024
"""How much of a file's beginning and end to read; a DOCX lists its members at the end."""

_INSTEAD = "Try an image, PDF, Word, text or code."
_PDF_MAGIC = b"%PDF-"
_PDF_READERS_SEARCH = 1024  # most readers look for the beginning of a PDF in the first bytes

_CODE_SUFFIXES = {
    ".bash", ".bat", ".c", ".cc", ".cfg", ".clj", ".cmake", ".conf", ".cpp", ".cs", ".css", ".dart",
    ".diff", ".ex", ".exs", ".go", ".gradle", ".graphql", ".h", ".hpp", ".hs", ".htm", ".html", ".ini",
    ".ipynb", ".java", ".jl", ".js", ".jsx", ".kt", ".less", ".lua", ".m", ".mjs", ".ml", ".patch",
    ".php", ".pl", ".proto", ".ps1", ".py", ".pyi", ".r", ".rb", ".rs", ".sass", ".scala", ".scss",
    ".sh", ".sql", ".svelte", ".svg", ".swift", ".tex", ".tf", ".toml", ".ts", ".tsx", ".vue", ".xhtml",
    ".xml", ".yaml", ".yml", ".zig", ".zsh",
}  # fmt: skip
_TEXT_SUFFIXES = {
    ".csv": CSV, ".tsv": CSV, ".md": MARKDOWN, ".markdown": MARKDOWN, ".json": JSON,
    **dict.fromkeys(_CODE_SUFFIXES, CODE),
}  # fmt: skip
_PROMISED_BY_SUFFIX = {
    ".png": "a PNG image", ".jpg": "a JPEG image", ".jpeg": "a JPEG image", ".gif": "a GIF image",
    ".webp": "a WebP image", ".pdf": "a PDF", ".docx": "a Word document", ".bmp": "an image",
    ".heic": "an image", ".avif": "an image", ".tif": "an image", ".tiff": "an image", ".ico": "an image",
}  # fmt: skip
_OTHER_KINDS = {
    b"BM": "a BMP image",
    b"II*\x00": "a TIFF image",
    b"MM\x00*": "a TIFF image",
    b"\x00\x00\x01\x00": "an icon",
    b"\xd0\xcf\x11\xe0": "a Word, Excel or PowerPoint file of the old format",
    b"\x1f\x8b": "a compressed file",
    b"MZ": "a program",
    b"\x7fELF": "a program",
}
_HEIF_BRANDS = {
    b"heic": "a HEIC image",
    b"heix": "a HEIC image",
    b"mif1": "a HEIC image",
    b"avif": "an AVIF image",
}
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
"""Characters that no text has; ESC isn't among them: terminal logs use it for colours."""
_MARKUP = re.compile(rb"<(!doctype\s+html|html|head|body|script|svg|iframe)[\s>]", re.IGNORECASE)


def detect(head: bytes, file_name: str, *, tail: bytes = b"") -> str:
    """The media type of a file; raises UnsupportedFile with the reason if messages don't accept it.

    Takes the first HEAD_BYTES and, for a longer file, the last TAIL_BYTES.
    """
    if not head:
        raise _refusal(f"{file_name} is empty.")
    media_type = _binary_type(head)
    if media_type is not None:
        _refuse_two_kinds(head, file_name)
        return media_type
    if head.startswith(b"PK\x03\x04"):
        _refuse_two_kinds(head, file_name)
        return _archive_type(head, tail, file_name)
    return _text_type(head, file_name)


def is_image(media_type: str) -> bool:
    """Whether a file goes through the confined process for images."""
    return media_type in IMAGES


def is_text(media_type: str) -> bool:
    """Whether a file's bytes can be read as text."""
    return media_type in TEXTS


def shown_size(size: int) -> str:
    """A size in bytes for people: 120 kB, 3.4 MB."""
    if size < 1000:
        return f"{size} B"
    if size < 999_500:
        return f"{round(size / 1000)} kB"
    return f"{size / 1_000_000:.1f} MB"


def file_line(file_name: str, media_type: str, size: int) -> str:
    """A file where only text can be shown: `[image cat.png · 120 kB]`."""
    kind = "image" if is_image(media_type) else "file"
    return f"[{kind} {one_line(file_name)} · {shown_size(size)}]"


def _binary_type(head: bytes) -> str | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return WEBP
    return PDF if head.startswith(_PDF_MAGIC) else None


def _refuse_two_kinds(head: bytes, file_name: str) -> None:
    """Refuses a file that different readers would read differently."""
    begin = head[:_PDF_READERS_SEARCH]
    if begin.find(_PDF_MAGIC) > 0:
        raise _refusal(f"{file_name} is two file types at once: it contains a PDF.")
    if begin.startswith(_PDF_MAGIC) and _MARKUP.search(begin):
        raise _refusal(f"{file_name} is two file types at once: PDF and HTML.")


def _archive_type(head: bytes, tail: bytes, file_name: str) -> str:
    folders = {name.partition(b"/")[0] for part in (head, tail) for name in _member_names(part)}
    if b"word" in folders:
        return DOCX
    kinds = {b"xl": "an Excel file", b"ppt": "a PowerPoint file"}
    kind = next((kind for folder, kind in kinds.items() if folder in folders), "a ZIP archive")
    raise _not_accepted(file_name, kind)


_MEMBER = re.compile(rb"PK(?:\x03\x04.{22}(..)..|\x01\x02.{24}(..).{16})", re.DOTALL)
"""The header of a ZIP member, local or in the directory, with the length of its name."""


def _member_names(part: bytes) -> Iterator[bytes]:
    for header in _MEMBER.finditer(part):
        length = int.from_bytes(header[1] or header[2], "little")
        yield part[header.end() : header.end() + length]


def _text_type(head: bytes, file_name: str) -> str:
    text = _decoded(head)
    suffix = PurePath(file_name).suffix.lower()
    if text is None:
        raise _not_accepted(file_name, _name_kind(head))
    if suffix in _PROMISED_BY_SUFFIX:
        promised, found = _PROMISED_BY_SUFFIX[suffix], "HTML or SVG" if _MARKUP.search(head) else "text"
        raise _refusal(f"{file_name} has the name of {promised} but contains {found}.")
    return _TEXT_SUFFIXES.get(suffix, TEXT)


def _decoded(head: bytes) -> str | None:
    """The text that a file begins with, without a last character that is cut off; None if it isn't text."""
    encoding = "utf-16" if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return None
    return None if _CONTROLS.search(text) else text


def _name_kind(head: bytes) -> str | None:
    """The name of a type that we recognize but don't accept."""
    if head[4:8] == b"ftyp":
        return _HEIF_BRANDS.get(head[8:12], "a video or audio file")
    if b"\x00" not in head and not head.startswith(b"\x1f\x8b"):
        return "text that isn't UTF-8, so save it as UTF-8"
    return next((kind for magic, kind in _OTHER_KINDS.items() if head.startswith(magic)), None)


def _not_accepted(file_name: str, kind: str | None) -> UnsupportedFile:
    if kind:
        return _refusal(f"Can't attach {file_name}: it is {kind}. {_INSTEAD}")
    suffix = PurePath(file_name).suffix.lower()
    return _refusal(f"Can't attach {f'{suffix} files' if suffix else file_name}. {_INSTEAD}")


def _refusal(message: str) -> UnsupportedFile:
    return UnsupportedFile(message, param="fileName")


def decode_text(content: bytes) -> str:
    """A text file as text."""
    is_utf16 = content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return content.decode("utf-16" if is_utf16 else "utf-8-sig", "replace")
