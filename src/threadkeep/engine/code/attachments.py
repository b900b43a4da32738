"""Files that a program attaches to its reply: each is the result of a call, as a tool's file is."""

import asyncio
import hashlib
from collections import Counter

from threadkeep.domain.events import ToolCalled
from threadkeep.domain.ids import derived_uuid
from threadkeep.domain.mcp import AGENT
from threadkeep.engine.code.running import RunningCode
from threadkeep.engine.loop import Together
from threadkeep.engine.tools import ToolEvent
from threadkeep.ports.gateway import ToolUse
from threadkeep.ports.tools import Returned, ReturnedFile
from threadkeep.wire.programs import FileItem

ATTACH = "attach"


class Attachments:
    """Stores and shows files, each once however often the program runs."""

    def __init__(self, code: RunningCode) -> None:
        self._code = code
        self._counts = Counter[str]()

    async def add(self, item: FileItem, step_id: str) -> None:
        """Attaches a file of a step, or of the program itself, unless an earlier run has."""
        code = self._code
        digest = await asyncio.to_thread(hashlib.sha256, item.content)
        file_key = f"{step_id}/{item.name}/{item.media_type}/{digest.hexdigest()}"
        self._counts[file_key] += 1
        key = f"{file_key}/{self._counts[file_key]}"
        id_ = f"attach_{derived_uuid(code.turn.started_at, code.turn.id, key).replace('-', '')}"
        if id_ in code.state.calls:
            return
        toolbox = code.around.toolbox(None)
        use = ToolUse(id_, ATTACH, {"name": item.name})
        events: list[ToolEvent] = []
        file = ReturnedFile(item.name, item.media_type, item.content)
        await toolbox.store(use, Returned("ok", files=(file,)), events.append)
        called = ToolCalled(id_, ATTACH, AGENT, use.arguments, model_name=ATTACH)
        code.outlet.emit(Together((called, *events)))
