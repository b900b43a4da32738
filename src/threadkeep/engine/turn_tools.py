"""A turn's tools as its loop uses them: offered to the model, called, and run within what its user allows."""

from collections.abc import Sequence
from dataclasses import replace

from threadkeep.context.call_ids import TakenIds, none_taken
from threadkeep.context.tool_results import TURN_ENDED
from threadkeep.domain.events import Notice, ToolCalled
from threadkeep.domain.tool_rules import Rules
from threadkeep.engine.batch import Batch, WaitForUser, pause
from threadkeep.engine.permissions import Signature, ToolPermissions, may_ask
from threadkeep.engine.replay import OpenBatch
from threadkeep.engine.timer import TurnTimer
from threadkeep.engine.tools import Toolbox
from threadkeep.engine.user_requests import UserRequests
from threadkeep.ports.gateway import ToolSpec, ToolUse


class TurnTools:
    """The tools that a turn can use, how it asks its user about them, and the owner's rules.

    `taken_ids` knows the conversation's earlier tool calls.
    """

    why_open = TURN_ENDED
    """What happened to calls that have no result when the turn ends."""

    def __init__(
        self,
        toolbox: Toolbox,
        user_requests: UserRequests,
        rules: Rules | None = None,
        taken_ids: TakenIds = none_taken,
    ) -> None:
        self._toolbox = toolbox
        self._user_requests = user_requests
        self._rules = rules or {}
        self.taken_ids = taken_ids
        self._permissions = ToolPermissions(self._rules, frozenset())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model sees them."""
        return self._toolbox.specs

    async def open(self, unknown: frozenset[Signature]) -> Sequence[Notice]:
        """Lists the available tools; repeating an `unknown` call requires approval."""
        self._permissions = ToolPermissions(self._rules, unknown)
        notices = await self._toolbox.open(self._permissions.is_denied)
        await self._load_grants()
        return notices

    async def called(self, use: ToolUse) -> ToolCalled:
        """The event for a call about to be made."""
        called, tool = await self._toolbox.called(use), self._toolbox.tool(use)
        asks = tool is not None and self._permissions.must_ask(tool, use.arguments)
        return replace(called, asks=True) if asks else called

    async def batch(
        self,
        open_batch: OpenBatch,
        timer: TurnTimer,
        *,
        room: int,
        user_requests: UserRequests | None = None,
        wait_for_user: WaitForUser = pause,
    ) -> Batch:
        """Runs the calls of one model call; their results may take `room` tokens."""
        await self._load_grants()
        return Batch(
            open_batch,
            self._toolbox,
            user_requests or self._user_requests,
            self._permissions,
            timer,
            room=room,
            wait_for_user=wait_for_user,
        )

    async def _load_grants(self) -> None:
        """Reads what the user allows in this conversation: it may have been taken back meanwhile."""
        if may_ask(self._rules):
            self._permissions.replace_grants(await self._user_requests.granted())
