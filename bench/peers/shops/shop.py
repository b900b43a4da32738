"""What a server of the shop offers to the harness."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from bench.peers.contender import Api, Launch, Place


class ShopServer(ABC):
    """A framework's own server with the shop; asked as its documentation says."""

    title: ClassVar[str]
    lock: ClassVar[str]
    packages: ClassVar[Sequence[str]]

    @abstractmethod
    def launch(self, place: Place) -> Launch:
        """How to start it, also again in the same folder."""

    @abstractmethod
    def ask(self, api: Api, text: str) -> None:
        """Sends the message; may last as long as the turn."""

    @abstractmethod
    def waits(self, api: Api) -> bool:
        """Whether it shows that a call waits for an approval."""

    @abstractmethod
    def approve(self, api: Api) -> None:
        """Approves that call; may last as long as the turn."""

    @abstractmethod
    def texts(self, api: Api) -> Sequence[str]:
        """What it shows of the conversation, as texts."""
