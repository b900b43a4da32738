"""Reads the result of a tool call: its text or value, its chart and its files.

In a process of its own, this module reads a large message from its input and writes what it extracts:
parsing hundreds of thousands of values holds the GIL, and thus every turn of this node, in whatever thread it
runs. The values come back as stored, as JSON in one piece. This imports nothing else of ours, so that it
starts fast.
"""

import base64
import binascii
import contextlib
import mimetypes
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec

MOST_FILES = 20
MOST_TOOLS = 200
MOST_TOOLS_BYTES = 1024 * 1024
MOST_OTHER_BYTES = 512 * 1024
MOST_ERROR_CHARACTERS = 8_000
MOST_LEVELS = 200
MOST_FILE_NAME = 100

# A surrogate pair, or a backslash that escapes another, is fine.
_LONE_HALF = re.compile(
    rb"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
_REPLACEMENT = b"\\ufffd"
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,80}")
_PROCESSOR_S = 10
_MEMORY_BYTES = 2 * 1024 * 1024 * 1024

# Names as on the wire.


class Resource(msgspec.Struct):
    """A file in a result, as text or as base64."""

    uri: str = ""
    mimeType: str | None = None  # noqa: N815
    text: str | None = None
    blob: str | None = None


class Block(msgspec.Struct):
    """A part of a result; its type determines its fields."""

    type: str
    text: str = ""
    data: str = ""
    mimeType: str | None = None  # noqa: N815
    uri: str = ""
    name: str = ""
    title: str | None = None
    resource: Resource | None = None


class ServerResult(msgspec.Struct):
    """A server's response to a call."""

    content: list[Block] = []
    structuredContent: Any = None  # noqa: N815
    isError: bool = False  # noqa: N815


class File(msgspec.Struct):
    """A file that a tool returned."""

    name: str
    media_type: str
    content: bytes


class CallResult(msgspec.Struct):
    """A result in our terms. From such a process, the value and the chart are bytes: JSON in one piece."""

    value: Any = None
    chart: Any = None
    error: str | None = None
    files: list[File] = []


class ExtractedResult(msgspec.Struct):
    """A large message: what remains of it for the session, and the extracted result."""

    message: bytes
    result: CallResult | None = None


def repaired(message: bytes) -> bytes:
    """A message with U+FFFD for lone surrogates and for bytes that aren't UTF-8."""
    if not message.isascii():
        message = message.decode(errors="replace").encode()
    if b"\\ud" in message or b"\\uD" in message:
        return _LONE_HALF.sub(lambda found: found[1] or _REPLACEMENT, message)
    return message


def read_result(result: Any) -> CallResult:
    """What a server returned, in our terms; ValueError if it isn't the result of a call."""
    given = msgspec.convert(result, ServerResult)
    texts, files = _read(given.content)
    text = "\n\n".join(texts)
    if given.isError:
        return CallResult(error=text or "The tool failed without giving a reason.", files=files)
    match given.structuredContent:
        case {"chart_data": chart, **rest}:
            return CallResult(rest or text, chart, files=files)
        case None:
            return CallResult(text, files=files)
        case structured:
            return CallResult(structured, files=files)


def extract_result(message: bytes) -> ExtractedResult:
    """Reads a large message; ValueError or RecursionError if it isn't a message."""
    message = repaired(message)
    whole: Any = msgspec.json.decode(message)
    match whole:
        case {"id": number, "error": {"code": code, "message": str(said)}}:
            error = {"code": code, "message": said[:MOST_ERROR_CHARACTERS]}
            return ExtractedResult(_small({"id": number, "error": error}))
        case {"id": number, "result": {"tools": list()} as result}:
            return ExtractedResult(
                _small({"id": number, "result": {**result, "tools": _fitting(result["tools"])}})
            )
        case {"id": number, "result": {"content": list()} as result}:
            rest = {name: result[name] for name in ("resultType", "isError") if name in result}
            small = _small({"id": number, "result": {**rest, "content": []}})
            return ExtractedResult(small, _packed(read_result(result)))
        case {"result": _} if len(message) <= MOST_OTHER_BYTES:
            return ExtractedResult(message)
        case _:
            raise ValueError("too large for anything that we request")


def _small(message: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **message})


def _fitting(tools: Sequence[Any]) -> list[Any]:
    """The first tools, as many as allowed."""
    fitting: list[Any] = []
    left = MOST_TOOLS_BYTES
    for tool in tools[:MOST_TOOLS]:
        left -= len(msgspec.json.encode(tool))
        if left < 0:
            break
        fitting.append(tool)
    return fitting


def _packed(result: CallResult) -> CallResult:
    """The same with its values as JSON; a text stays one."""
    if _is_deep([result.value, result.chart]):
        return CallResult(error="The tool's result is nested too deeply.", files=result.files)
    if result.error is not None:
        result.error = result.error[:MOST_ERROR_CHARACTERS]
    if not isinstance(result.value, str | None):
        result.value = msgspec.json.encode(result.value)
    if result.chart is not None:
        result.chart = msgspec.json.encode(result.chart)
    return result


def _is_deep(values: list[Any]) -> bool:
    for _ in range(MOST_LEVELS + 1):
        inner = [_inside(value) for value in values if isinstance(value, dict | list)]
        values = [value for several in inner for value in several]
    return bool(values)


def _inside(value: Any) -> Iterable[Any]:
    return cast("dict[str, Any]", value).values() if isinstance(value, dict) else value


def _read(blocks: Sequence[Block]) -> tuple[list[str], list[File]]:
    """The texts of a result, which name its files, and the files."""
    texts: list[str] = []
    files: list[File] = []
    for block in blocks:
        match block.type:
            case "text":
                texts.append(block.text)
            case "resource_link":
                texts.append(f"[{block.title or block.name}]({block.uri})")
            case "image" | "audio":
                texts.append(_keep(files, "", block.mimeType or "", block.data))
            case "resource" if block.resource is not None:
                texts.append(_read_resource(files, block.resource))
            case _:
                pass  # from a future version of MCP
    return texts, files


def _read_resource(files: list[File], given: Resource) -> str:
    name = _name_in(given.uri)
    if given.blob is not None:
        return _keep(files, name, given.mimeType or "application/octet-stream", given.blob)
    text = given.text or ""
    _keep(files, name, given.mimeType or "text/plain", text.encode())
    return text


def _keep(files: list[File], name: str, media_type: str, data: str | bytes) -> str:
    """Adds a file; returns a line for the model."""
    if len(files) >= MOST_FILES:
        return f"[A file was left out: a result can have at most {MOST_FILES}.]"
    try:
        content = base64.b64decode(data, validate=True) if isinstance(data, str) else data
    except (binascii.Error, ValueError):
        return "[A file was left out: its base64 is invalid.]"
    media_type = media_type.lower()
    if not _MEDIA_TYPE.fullmatch(media_type):
        media_type = "application/octet-stream"
    if not name:
        kind = media_type.split("/")[0]
        name = f"{kind if kind != 'application' else 'file'}-{len(files) + 1}"
        name += mimetypes.guess_extension(media_type) or ""
    files.append(File(name, media_type, content))
    return f"[{name}]"


def _name_in(uri: str) -> str:
    """The file name at the end of an address, if it can be shown."""
    try:
        name = unquote(urlsplit(uri).path).rstrip("/").rpartition("/")[2]
    except ValueError:
        return ""
    shown = "".join(character for character in name if character.isprintable() and character not in '\\"')
    return "" if shown.strip(". ") == "" else shown[-MOST_FILE_NAME:]


if __name__ == "__main__":
    import os
    import resource

    os.nice(5)  # turns come first
    with contextlib.suppress(ValueError, OSError):  # not every system has such limits
        resource.setrlimit(resource.RLIMIT_CPU, (_PROCESSOR_S, _PROCESSOR_S))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    try:
        extracted = extract_result(sys.stdin.buffer.read())
    except (ValueError, RecursionError, MemoryError):
        sys.exit(1)
    sys.stdout.buffer.write(msgspec.msgpack.encode(extracted))
