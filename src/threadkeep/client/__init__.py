"""The Python client, over the network or in the same process."""

from threadkeep.client.blocking import BlockingClient
from threadkeep.client.client import Client
from threadkeep.client.errors import ClientError, MessageQueued, NotReached, TurnWaiting
from threadkeep.client.files import GivenFile
from threadkeep.client.recorder import Recorder
from threadkeep.client.sending import Sending

__all__ = [
    "BlockingClient",
    "Client",
    "ClientError",
    "GivenFile",
    "MessageQueued",
    "NotReached",
    "Recorder",
    "Sending",
    "TurnWaiting",
]
