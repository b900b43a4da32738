"""What an MCP server answers, in our words: tools, and how a call ended."""

import base64
import binascii
import mimetypes
import re
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import mcp_types as mcp

from threadkeep.ports.tools import Outcome, ProducedFile, Tool

MOST_TOOLS = 200
MOST_FILES = 20
_MOST_NAME = 128
_MOST_DESCRIPTION = 8_000
_MOST_FILE_NAME = 100
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9][a-z0-9.+-]{0,80}")


def tools_of(server: str, listed: Iterable[mcp.Tool], timeout_s: float) -> tuple[Tool, ...]:
    """The tools that a server offers; of one name only the first."""
    tools: dict[str, Tool] = {}
    for tool in listed:
        if 0 < len(tool.name) <= _MOST_NAME and len(tools) < MOST_TOOLS:
            description = (tool.description or tool.title or "")[:_MOST_DESCRIPTION]
            tools.setdefault(tool.name, Tool(server, tool.name, description, tool.input_schema, timeout_s))
    return tuple(tools.values())


def outcome_of(result: mcp.CallToolResult) -> Outcome:
    """How a call ended: what the model reads, the chart to draw, the files to keep."""
    texts, files = _read(result.content)
    text = "\n\n".join(texts)
    if result.is_error:
        return Outcome("error", error=text or "The tool failed and did not say why.", files=files)
    structured, chart = _without_chart(result.structured_content)
    if structured is None:
        return Outcome("ok", text, chart_data=chart, files=files)
    return Outcome("ok", structured, chart_data=chart, files=files)


def _without_chart(structured: Any) -> tuple[Any, Any]:
    """The structured result and its chart apart. With nothing else in it, the text is the result."""
    match structured:
        case {"chart_data": chart, **rest}:
            return rest or None, chart
        case _:
            return structured, None


def _read(blocks: Sequence[mcp.ContentBlock]) -> tuple[list[str], tuple[ProducedFile, ...]]:
    """The texts of a result, which name its files, and the files."""
    texts: list[str] = []
    files: list[ProducedFile] = []
    for block in blocks:
        match block:
            case mcp.TextContent():
                texts.append(block.text)
            case mcp.ResourceLink():
                texts.append(f"[{block.title or block.name}]({block.uri})")
            case mcp.ImageContent() | mcp.AudioContent():
                texts.append(_keep(files, "", block.mime_type, block.data))
            case mcp.EmbeddedResource():
                texts.append(_read_resource(files, block.resource))
    return texts, tuple(files)


def _read_resource(
    files: list[ProducedFile], resource: mcp.TextResourceContents | mcp.BlobResourceContents
) -> str:
    name = _name_in(resource.uri)
    if isinstance(resource, mcp.BlobResourceContents):
        return _keep(files, name, resource.mime_type or "application/octet-stream", resource.blob)
    _keep(files, name, resource.mime_type or "text/plain", resource.text.encode())
    return resource.text


def _keep(files: list[ProducedFile], name: str, media_type: str, data: str | bytes) -> str:
    """Adds a file and says so to the model."""
    if len(files) >= MOST_FILES:
        return f"[A file was left out: a result may have at most {MOST_FILES}.]"
    try:
        content = base64.b64decode(data, validate=True) if isinstance(data, str) else data
    except (binascii.Error, ValueError):
        return "[A file was left out: it is not valid base64.]"
    media_type = media_type.lower()
    if not _MEDIA_TYPE.fullmatch(media_type):
        media_type = "application/octet-stream"
    if not name:
        kind = media_type.split("/")[0]
        name = f"{kind if kind != 'application' else 'file'}-{len(files) + 1}"
        name += mimetypes.guess_extension(media_type) or ""
    files.append(ProducedFile(name, media_type, content))
    return f"[{name}]"


def _name_in(uri: str) -> str:
    """The file name at the end of an address, if there is one that can be shown."""
    try:
        name = unquote(urlsplit(uri).path).rstrip("/").rpartition("/")[2]
    except ValueError:
        return ""
    shown = "".join(character for character in name if character.isprintable() and character not in '\\"')
    return "" if shown.strip(". ") == "" else shown[-_MOST_FILE_NAME:]
