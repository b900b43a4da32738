"""What another server does for a turn, as the turn shows it: calls of its tools, and its steps."""

import msgspec

from threadkeep.domain.events import StepChanged, ToolCalled
from threadkeep.domain.mcp import AGENT
from threadkeep.domain.text import one_line, storable
from threadkeep.engine.code.running import RunningCode
from threadkeep.engine.code.tool_calls import ToolCalls
from threadkeep.engine.journal import StepBegun
from threadkeep.engine.loop import Together
from threadkeep.engine.tools import ToolEvent, clean_use
from threadkeep.ports.gateway import ToolUse
from threadkeep.ports.tools import Returned
from threadkeep.wire.programs import RemoteCallItem, RemoteItem, RemoteResultItem, RemoteStepItem

MOST_REMOTE_CALLS = 1_000
"""More calls of one turn are not shown."""
MOST_NAME_CHARACTERS = 128
MOST_TITLE_CHARACTERS = 200
_LINE = 200

_encode = msgspec.json.Encoder().encode


class RemoteShown:
    """Shows each call once, however often another server is asked to make it."""

    def __init__(self, code: RunningCode, calls: ToolCalls) -> None:
        self._code = code
        self._calls = calls
        self._known = set(code.state.calls)
        self._ended = {id_ for id_, call in code.state.calls.items() if call.reads is not None}

    async def show(self, item: RemoteItem, begun: StepBegun) -> None:
        """Shows what happens in a step of the program."""
        match item:
            case RemoteCallItem():
                await self._called(item)
            case RemoteResultItem():
                await self._resulted(item)
            case RemoteStepItem():
                self._stepped(item, begun)

    async def _called(self, item: RemoteCallItem) -> None:
        if item.call_id in self._known or len(self._known) >= MOST_REMOTE_CALLS:
            return
        use = clean_use(ToolUse(item.call_id, one_line(item.name)[:MOST_NAME_CHARACTERS], item.arguments))
        self._code.note_shown(_LINE + len(_encode(use.arguments)))
        found = await self._code.around.toolbox(None).called(use)
        called = ToolCalled(use.id, use.name, AGENT, found.arguments, found.refs, model_name=use.name)
        self._known.add(use.id)
        self._calls.note_remote(called)
        self._code.outlet.emit(called)

    async def _resulted(self, item: RemoteResultItem) -> None:
        called = self._calls.end_remote(item.call_id) if item.call_id not in self._ended else None
        if called is None:
            return
        use = ToolUse(called.tool_call_id, called.tool_name, {})
        returned = Returned("ok" if item.error is None else "error", result=item.result, error=item.error)
        events: list[ToolEvent] = []
        await self._code.around.toolbox(None).store(use, returned, events.append)
        self._ended.add(item.call_id)
        self._code.outlet.emit(Together(tuple(events)))

    def _stepped(self, item: RemoteStepItem, begun: StepBegun) -> None:
        self._code.note_shown(_LINE)
        self._code.outlet.emit(
            StepChanged(
                step_id=f"{begun.step_id}.{begun.attempt}.{item.number}",
                name=one_line(storable(item.name))[:MOST_NAME_CHARACTERS] or "step",
                kind="step",
                status=item.status,
                title=None if item.title is None else one_line(storable(item.title))[:MOST_TITLE_CHARACTERS],
            )
        )
