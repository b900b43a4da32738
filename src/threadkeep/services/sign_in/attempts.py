"""How often an address may try to sign in: nobody can guess a token, but trying must not cost us much."""

from collections import OrderedDict
from collections.abc import Callable

from threadkeep.clock import monotonic
from threadkeep.domain.errors import RateLimited

MOST_ATTEMPTS = 20
WITHIN_S = 60
MOST_ADDRESSES = 4096


class Attempts:
    """Counts the attempts of each address on this node: failures, or all, as the caller likes."""

    def __init__(self, most: int = MOST_ATTEMPTS, monotonic: Callable[[], float] = monotonic) -> None:
        self._most = most
        self._monotonic = monotonic
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """By address: how many, and when they are forgotten."""

    def check(self, address: str) -> None:
        """Refuses an address that has tried too often."""
        count, until = self._counts.get(address, (0, 0.0))
        left = until - self._monotonic()
        if count >= self._most and left > 0:
            raise RateLimited(
                "Too many attempts to sign in from this address. Try again in a minute.",
                retry_after_s=int(left) + 1,
            )

    def note(self, address: str) -> None:
        """Notes that an address has tried."""
        now = self._monotonic()
        count, until = self._counts.pop(address, (0, 0.0))
        self._counts[address] = (count + 1, until) if until > now else (1, now + WITHIN_S)
        if len(self._counts) > MOST_ADDRESSES:
            self._counts.popitem(last=False)
