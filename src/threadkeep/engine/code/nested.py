"""Which agents run inside a turn, and in whose scope a claim is. The key of an agent's claim is its scope."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence

from threadkeep.engine.code.means import AgentMeans, OtherAgents
from threadkeep.engine.journal import StepBegun, StepEnded
from threadkeep.wire.claim_keys import AGENT_END


def agents_above(scope: str, known: Callable[[str], StepBegun | None]) -> Iterator[StepBegun]:
    """The agents in whose scope this is, the innermost first."""
    while scope:
        begun = known(scope)
        if begun is not None and begun.agent_id is not None:
            yield begun
        scope = scope.rpartition("/")[0]


class NestedAgents:
    """The agents that a turn's agent runs, and what each of them is run with."""

    def __init__(
        self,
        begun: Mapping[str, StepBegun],
        ended: Mapping[str, StepEnded],
        own: AgentMeans,
        others: OtherAgents,
    ) -> None:
        self._all = {key: it for key, it in begun.items() if it.agent_id is not None}
        self._began_at = {key: ended[key].at for key in self._all if key in ended}
        self._ended = {key for key in self._all if f"{key}{AGENT_END}" in ended}
        self._means: dict[str, AgentMeans] = {}
        self._own = own
        self._others = others
        self._loading = asyncio.Lock()

    def add(self, begun: StepBegun, at: int) -> None:
        """An agent begins."""
        self._all[begun.key] = begun
        self._began_at[begun.key] = at

    def end(self, scope: str, at: int) -> int:
        """The agent of a scope has ended; returns how long it took, with all waiting."""
        self._ended.add(scope)
        return max(at - self._began_at.get(scope, at), 0)

    def get(self, scope: str) -> StepBegun | None:
        """The agent whose scope this is."""
        return self._all.get(scope)

    @property
    def open(self) -> Sequence[StepBegun]:
        """Those that have not ended."""
        return [it for key, it in self._all.items() if key not in self._ended]

    def chain(self, scope: str) -> Sequence[StepBegun]:
        """Those in whose scope this is, the innermost first; none in that of the turn's own agent."""
        return list(agents_above(scope, self._all.get)) if self._all else ()

    def within(self, scope: str) -> StepBegun | None:
        """The innermost of them."""
        return next(agents_above(scope, self._all.get), None) if self._all else None

    async def means(self, scope: str) -> AgentMeans:
        """What the claims of a scope are carried out with; raises ThreadkeepError if its user may no longer
        use its agent.
        """
        agent = self.within(scope)
        if agent is None:
            return self._own
        async with self._loading:
            if agent.key not in self._means:
                ids = [it.agent_id or "" for it in self.chain(scope)]
                self._means[agent.key] = await self._others.means(ids)
        return self._means[agent.key]
