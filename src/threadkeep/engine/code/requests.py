"""What a turn of an agent in code asks its user, where several parts of it wait for answers at once."""

import asyncio
from collections.abc import Mapping

from threadkeep.domain.approval import Decision
from threadkeep.engine.user_requests import Asking, UserRequests
from threadkeep.ports.tools import Grant


class SharedRequests:
    """Lets everything that waits for the user know when there may be a decision."""

    def __init__(self, requests: UserRequests) -> None:
        self.requests = requests
        self._waiting: set[asyncio.Event] = set()

    async def listen(self) -> None:
        """Passes arrivals on, until it is cancelled."""
        while True:
            await self.requests.arrived()
            for waiting in self._waiting:
                waiting.set()

    def share(self) -> "RequestShare":
        """The requests for one part of the turn."""
        return RequestShare(self.requests, self._waiting)


class RequestShare:
    """A turn's requests to its user, as one part of the turn makes them."""

    def __init__(self, requests: UserRequests, waiting: set[asyncio.Event]) -> None:
        self._requests = requests
        self._arrival = asyncio.Event()
        self._arrival.set()  # a decision may be there already
        waiting.add(self._arrival)
        self._leave = lambda: waiting.discard(self._arrival)

    def close(self) -> None:
        """Nothing waits here any more."""
        self._leave()

    def request_id(self, tool_call_id: str) -> str:
        """The id of the request for a call."""
        return self._requests.request_id(tool_call_id)

    @property
    def expires_at(self) -> int:
        """When a request created now expires."""
        return self._requests.expires_at

    def expires_in(self, seconds: float) -> int:
        """When a request expires that can wait at most this long."""
        return self._requests.expires_in(seconds)

    async def granted(self) -> frozenset[Grant]:
        """The tools that the user has allowed in this conversation."""
        return await self._requests.granted()

    async def ask(self, asking: Asking) -> None:
        """Stores a request, once."""
        await self._requests.ask(asking)

    async def withdraw(self, request_id: str) -> bool:
        """Expires a request that nothing waits for."""
        return await self._requests.withdraw(request_id)

    async def decisions(self) -> Mapping[str, Decision]:
        """The decisions so far, by request id."""
        return await self._requests.decisions()

    async def arrived(self) -> None:
        """Returns when there may be another decision."""
        await self._arrival.wait()
        self._arrival.clear()
