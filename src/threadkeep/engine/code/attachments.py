"""Files that a program attaches to its reply: each is the result of a call, as a tool's file is."""

from threadkeep.domain.events import ToolCalled
from threadkeep.domain.ids import derived_uuid
from threadkeep.engine.code.questions import AGENT
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
        self._count = 0

    async def add(self, item: FileItem) -> None:
        """Attaches a file, unless an earlier run has."""
        code = self._code
        self._count += 1
        id_ = f"attach_{derived_uuid(code.turn.started_at, code.turn.id, str(self._count)).replace('-', '')}"
        if id_ in code.state.calls:
            return
        toolbox = code.around.toolbox(None)
        use = ToolUse(id_, ATTACH, {"name": item.name})
        events: list[ToolEvent] = []
        file = ReturnedFile(item.name, item.media_type, item.content)
        await toolbox.store(use, Returned("ok", files=(file,)), events.append)
        called = ToolCalled(id_, ATTACH, AGENT, use.arguments, model_name=ATTACH)
        code.outlet.emit(Together((called, *events)))
