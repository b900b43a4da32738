"""Which processes a turn has used: it learns when one was restarted, since the process lost its state."""

from collections import OrderedDict
from collections.abc import Collection

from threadkeep.domain.mcp import McpServer, StdioServer
from threadkeep.mcp.processes.programs import ServerKey

MOST_TURNS = 1000


class UsedServers:
    """The programs that one turn has used, each with the number of its latest start.

    `earlier` names those that the turn used before this node took it over: here, they are other processes.
    """

    def __init__(self, earlier: Collection[str] = ()) -> None:
        self._earlier = set(earlier)
        self._starts: dict[ServerKey, int] = {}

    def was_restarted(self, key: ServerKey, server: McpServer, start: int) -> bool:
        """Records a result; returns whether it is the first one since the program was restarted."""
        if not isinstance(server, StdioServer):
            return False
        before = self._starts.get(key)
        self._starts[key] = max(start, before or 0)
        if before is None and key.name in self._earlier:
            self._earlier.discard(key.name)
            return True
        return before is not None and before < start


class UsedHere:
    """What the latest turns of this node have used, for those that pause and continue here."""

    def __init__(self, most: int = MOST_TURNS) -> None:
        self._most = most
        self._turns: OrderedDict[str, UsedServers] = OrderedDict()

    def of(self, reply_id: str, earlier: Collection[str]) -> UsedServers:
        """What a turn, identified by its reply, has used; `earlier` are names from before it was resumed."""
        used = self._turns.pop(reply_id, None) or UsedServers(earlier)
        self._turns[reply_id] = used
        if len(self._turns) > self._most:
            self._turns.popitem(last=False)
        return used
