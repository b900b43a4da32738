"""One tool call while it runs: the steps that its caller sees, and what its server asks meanwhile."""

import asyncio

from threadkeep.domain.approval import Answer
from threadkeep.mcp.sessions.elicitation import Question
from threadkeep.ports.tools import Asked, Step

MOST_QUESTIONS = 20
"""That a server may ask during one call; any further one gets no answer."""


class OpenCall:
    """A call that has not ended yet."""

    def __init__(self) -> None:
        self.steps: asyncio.Queue[Step] = asyncio.Queue()
        self._asked = 0
        self._waiting: set[asyncio.Future[Answer | None]] = set()

    async def ask(self, question: Question) -> Answer | None:
        """Makes the caller ask the user; None if there is no answer, or the call has ended."""
        if self._asked == MOST_QUESTIONS:
            return None
        self._asked += 1
        answered: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()

        def answer(given: Answer | None) -> None:
            if not answered.done():
                answered.set_result(given)

        self._waiting.add(answered)
        self.steps.put_nowait(Asked(question.message, question.schema, question.url, answer, answered))
        try:
            return await answered
        finally:
            answered.cancel()
            self._waiting.discard(answered)

    def end(self) -> None:
        """Leaves open questions unanswered."""
        for answered in self._waiting:
            if not answered.done():
                answered.set_result(None)
