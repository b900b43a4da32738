"""The models that agents can use, and how to reach them."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from threadkeep.domain.errors import GatewayNotConfigured
from threadkeep.domain.model import Model
from threadkeep.ports.gateway import DEMONSTRATION_MODEL, Gateway, ModelEvent, ModelRequest, TakenFiles


@dataclass(frozen=True, slots=True)
class ConnectedModel:
    """A model, and the gateway that reaches it."""

    model: Model
    gateway: Gateway

    @property
    def id(self) -> str:
        """The model's id."""
        return self.model.id

    @property
    def files(self) -> TakenFiles:
        """The file types that it accepts as is."""
        return TakenFiles(self.model.images, self.model.pdfs)

    @property
    def signer(self) -> str:
        """The signer of its reasoning."""
        return self.gateway.signer(self.model.name)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Calls it; raises GatewayError, ends with ModelStopped. Closing the stream cancels the call."""
        return self.gateway.stream(replace(request, model=self.model.name))


ModelState = Literal["none", "demonstration", "connected"]
"""Which model replies where an agent names none."""


class Models(Protocol):
    """The models of all gateways. A model's id is `gateway/name`; a bare name works if it is unambiguous and
    has no slash.
    """

    def get(self, model: str | None) -> ConnectedModel:
        """A model that is in use; None is the one for agents that don't name one.

        Raises ModelNotFound, or GatewayNotConfigured if there is no gateway at all.
        """
        ...

    def choose(self, model: str) -> ConnectedModel:
        """A model that somebody chooses: like `get`, but only one that a gateway lists, if any lists some."""
        ...

    def listed(self) -> Sequence[ConnectedModel]:
        """Every model that can be chosen by name, the default one first."""
        ...


def model_state(models: Models) -> ModelState:
    """Whether a model is connected, or only the small one that comes with Threadkeep is there."""
    try:
        default = models.get(None).model
    except GatewayNotConfigured:
        return "none"
    return "demonstration" if default.name == DEMONSTRATION_MODEL else "connected"
