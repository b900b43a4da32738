"""`recall_file`: shows a file of the conversation again if a request has only a line or part of it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from threadkeep.domain.agent import Agent
from threadkeep.domain.file import decode_text, is_image, is_text
from threadkeep.domain.ids import PayloadId, is_uuid
from threadkeep.domain.mcp import FILES
from threadkeep.domain.payload import Lost
from threadkeep.domain.tool_rules import ToolEffect
from threadkeep.domain.uploaded_file import AS_TEXT, FOR_MODEL, UploadedFile
from threadkeep.ports.tools import Caller, Progress, Returned, Tool
from threadkeep.storage.store import Store
from threadkeep.tools.results import MOST_QUERY_CHARACTERS, find_places, passage

MOST_LISTED = 100

RECALL_FILE = Tool(
    FILES,
    "recall_file",
    "Look at a file of this conversation again, when you see only its name or a part of it. An image is "
    "shown. Of a text it returns what comes from an offset on or, with a query, where the query occurs. "
    "Without an id it lists the conversation's files with their ids, including those of messages that you no "
    "longer see.",
    {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "The file's id, as the line with its name gives it."},
            "query": {
                "type": "string",
                "description": "Words to look for, exactly as they occur in the file.",
                "maxLength": MOST_QUERY_CHARACTERS,
            },
            "offset": {
                "type": "integer",
                "description": "Where to begin, in characters.",
                "minimum": 0,
                "default": 0,
            },
        },
    },
    timeout_s=30.0,
    is_own=True,
    effect=ToolEffect.READ,
)


class FilesServer:
    """The files of the running turn's conversation, and of no other."""

    name = FILES

    def __init__(self, store: Store) -> None:
        self._store = store

    def offers(self, agent: Agent) -> Sequence[Tool]:
        """The same for every agent."""
        return (RECALL_FILE,)

    async def tools(self, caller: Caller) -> Sequence[Tool]:
        """The tool, once the conversation has a file."""
        return (RECALL_FILE,) if await self._store.files.has_any(caller.conversation.id) else ()

    async def call(
        self, caller: Caller, name: str, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[Progress | Returned]:
        """Shows a file, or reads its text."""
        id_, query, offset = arguments.get("id"), arguments.get("query"), arguments.get("offset", 0)
        if name != RECALL_FILE.name:
            yield Returned("error", error=f"Tool {name!r} not found.")
        elif not isinstance(offset, int) or offset < 0:
            yield Returned("error", error="`offset` must be 0 or greater.")
        elif query is not None and not isinstance(query, str):
            yield Returned("error", error="`query` must be a string.")
        elif id_ is None:
            yield await self._list(caller)
        elif not isinstance(id_, str) or (file := await self._find(caller, id_)) is None:
            yield Returned("error", error=f"File {id_!r} not found in this conversation.")
        else:
            yield await self._recall(caller, file, query, offset)

    async def _list(self, caller: Caller) -> Returned:
        """Older files may be in messages that a summary replaced: only this names them."""
        found = await self._store.files.latest(caller.conversation.id, limit=MOST_LISTED + 1)
        files = [_about(file) | {"size": file.size} for file in found[:MOST_LISTED]]
        return Returned("ok", {"files": files, "hasMore": len(found) > MOST_LISTED})

    async def _find(self, caller: Caller, id_: str) -> UploadedFile | None:
        if not is_uuid(id_):
            return None
        wanted = PayloadId(id_.lower())
        return (await self._store.files.used(caller.conversation.id, [wanted])).get(wanted)

    async def _recall(self, caller: Caller, file: UploadedFile, query: str | None, offset: int) -> Returned:
        about = _about(file)
        if is_image(file.media_type) and FOR_MODEL in file.renditions:
            return Returned("ok", about | {"width": file.width, "height": file.height}, recalled=(file.part,))
        text_id = file.id if is_text(file.media_type) else file.part.refs.get(AS_TEXT)
        if text_id is None:
            return Returned("error", error=f"{file.file_name} contains no readable text.")
        content = (await self._store.payloads.load(caller.conversation.id, [text_id]))[text_id]
        if isinstance(content, Lost):
            return Returned("error", error=content.reason)
        # In a thread: a file may have millions of characters.
        return Returned("ok", about | await asyncio.to_thread(_read, content, query, offset))


def _about(file: UploadedFile) -> dict[str, Any]:
    return {"id": file.id, "name": file.file_name, "mediaType": file.media_type}


def _read(content: bytes, query: str | None, offset: int) -> dict[str, Any]:
    text = decode_text(content)
    found = find_places(text, query) if query else passage(text, offset)
    return {"characters": len(text), **found}
