"""One tool call while it runs: the steps that its caller sees, and what its server asks meanwhile."""

import asyncio

from threadkeep.domain.approval import Decision
from threadkeep.mcp.sessions.elicitation import Question
from threadkeep.ports.tools import Asked, Step

MOST_QUESTIONS = 20
"""That a server may ask during one call; any further one gets no answer."""


class OpenCall:
    """A call that has not ended yet."""

    def __init__(self) -> None:
        self.steps: asyncio.Queue[Step] = asyncio.Queue()
        self._asked = 0
        self._waiting: set[asyncio.Future[Decision | None]] = set()

    async def ask(self, question: Question) -> Decision | None:
        """Makes the caller ask the user; None if there is no answer, or the call has ended."""
        if self._asked == MOST_QUESTIONS:
            return None
        self._asked += 1
        decision: asyncio.Future[Decision | None] = asyncio.get_running_loop().create_future()
        self._waiting.add(decision)
        self.steps.put_nowait(Asked(question.message, question.schema, question.url, decision))
        try:
            return await decision
        finally:
            decision.cancel()
            self._waiting.discard(decision)

    def end(self) -> None:
        """Leaves open questions unanswered."""
        for decision in self._waiting:
            if not decision.done():
                decision.set_result(None)
