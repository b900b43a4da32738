"""The gateways of this process, and which of them reaches a model."""

import asyncio
import difflib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from threadkeep.domain.errors import GatewayNotConfigured, ModelNotFound, ThreadkeepError
from threadkeep.domain.model import DEFAULT_GATEWAY, GatewayConfig
from threadkeep.gateways.provider_api import ProviderGateway
from threadkeep.ports.gateway import Gateway
from threadkeep.ports.gateways import CONNECTED, GatewayHealth, GatewayState
from threadkeep.ports.models import ConnectedModel

log = logging.getLogger("threadkeep.gateways")

MOST_COMPARED = 50
"""Models among which the nearest to an unknown one is looked for."""


@dataclass(frozen=True, slots=True)
class ConfiguredGateway:
    """A gateway with its configuration."""

    config: GatewayConfig
    gateway: Gateway
    default_model: str
    """The model for agents that don't name one."""

    @property
    def listed(self) -> Sequence[str]:
        """The models that it lists, the default one first."""
        return list(dict.fromkeys((self.default_model, *(it.name for it in self.config.models))))

    def reach(self, name: str) -> ConnectedModel:
        """One of its models."""
        return ConnectedModel(self.gateway.describe(name), self.gateway)


Connect = Callable[[GatewayConfig], ConfiguredGateway]
"""Opens a gateway; raises if its configuration can't work."""


class GatewayRegistry:
    """Every gateway by name: from the settings, or added by an admin while the server runs."""

    def __init__(
        self, connect: Connect, fixed: Iterable[GatewayConfig], own: Mapping[str, Gateway] | None = None
    ) -> None:
        """`own` are models that need no account, by their bare names."""
        self._connect = connect
        self._own = own or {}
        self._fixed = {config.name: connect(config) for config in fixed}
        self._added: dict[str, ConfiguredGateway] = {}
        self._problems: Mapping[str, str] = {}
        self.gateways: Mapping[str, ConfiguredGateway] = self._fixed
        """All gateways; those from the settings come first."""

    @property
    def fixed(self) -> Sequence[GatewayConfig]:
        """The configurations of those in the settings."""
        return [it.config for it in self._fixed.values()]

    async def replace_added(self, configs: Iterable[GatewayConfig]) -> None:
        """Uses these beside those of the settings; `health` says why some can't be used.

        Unchanged ones keep their connections; replies in progress finish on those that they began with.
        """
        before, self._added, problems = self._added, {}, dict[str, str]()
        for config in configs:
            if config.name in self._fixed:
                problems[config.name] = "The settings have a gateway of the same name."
                continue
            known = before.get(config.name)
            if known is not None and known.config == config:
                self._added[config.name] = before.pop(config.name)
                continue
            try:
                self._added[config.name] = self._connect(config)
            except ThreadkeepError as exc:
                log.warning("can't use the gateway %s: %s", config.name, exc.message)
                problems[config.name] = exc.message
        self.gateways, self._problems = self._fixed | self._added, problems
        for replaced in before.values():
            await replaced.gateway.retire()

    def health(self) -> Mapping[str, GatewayHealth]:
        """What is known about each gateway, by name."""
        unusable = {
            name: GatewayHealth(GatewayState.FAILING, problem) for name, problem in self._problems.items()
        }
        return {name: _health(it.gateway) for name, it in self.gateways.items()} | unusable

    async def look(self) -> None:
        """Asks each provider for its models, so that `health` is up to date; costs nothing."""
        providers = [it.gateway for it in self.gateways.values() if isinstance(it.gateway, ProviderGateway)]
        await asyncio.gather(*(it.list_models() for it in providers), return_exceptions=True)

    def get(self, model: str | None) -> ConnectedModel:
        """A model that is in use; None is the one for agents that don't name one."""
        if model is None:
            default = self._default()
            return default.reach(default.default_model)
        if own := self._own.get(model):
            return ConnectedModel(own.describe(model), own)
        gateway, name = self._find(model)
        return gateway.reach(name)

    def choose(self, model: str) -> ConnectedModel:
        """A model that somebody chooses: only one that a gateway lists, if any lists some."""
        found = self.get(model)
        if not found.model.gateway or not any(it.config.models for it in self.gateways.values()):
            return found
        if found.model.name not in self.gateways[found.model.gateway].listed:
            listed = [it.model.id for it in self._all_listed()]
            # Among thousands, the search would keep everybody waiting for a second.
            near = difflib.get_close_matches(model, listed, 1) if len(listed) <= MOST_COMPARED else []
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ModelNotFound(f"No gateway lists the model {model!r}.{hint}", param="model")
        return found

    def listed(self) -> Sequence[ConnectedModel]:
        """Every model that can be chosen by name, the default one first."""
        if not self.gateways:
            return ()
        default = self.get(None)
        return [default, *(it for it in self._all_listed() if it.id != default.id)]

    async def close(self) -> None:
        """Closes the connections of all gateways."""
        for it in self.gateways.values():
            await it.gateway.close()

    def _all_listed(self) -> Iterator[ConnectedModel]:
        for gateway in self.gateways.values():
            if not gateway.config.is_demonstration:
                yield from map(gateway.reach, gateway.listed)

    def _default(self) -> ConfiguredGateway:
        """The gateway for agents that don't name a model: the demonstration only if there is no other."""
        if not self.gateways:
            raise GatewayNotConfigured
        default = self.gateways.get(DEFAULT_GATEWAY)
        if default is not None and not default.config.is_demonstration:
            return default
        others = (it for it in self.gateways.values() if not it.config.is_demonstration)
        return next(others, default) or next(iter(self.gateways.values()))

    def _find(self, model: str) -> tuple[ConfiguredGateway, str]:
        """The gateway of a model, and the model's name there.

        What begins with a name and a slash belongs to the gateway of that name, also after it was removed:
        another one must not receive the conversation, though it lists the same string.
        """
        default = self._default()
        named, slash, name = model.partition("/")
        if name and named in self.gateways:
            return self.gateways[named], name
        if slash:
            raise ModelNotFound(self._nobody_has(model, named, default), param="model")
        having = [it for it in self.gateways.values() if model in it.listed]
        if len(having) == 1:
            return having[0], model
        # None or several list it: then it is the default gateway's, unless only others list it.
        if default in having or not having:
            return default, model
        raise ModelNotFound(
            f"Several gateways have the model {model!r}. Choose one of: {_ids(model, having)}.", param="model"
        )

    def _nobody_has(self, model: str, named: str, default: ConfiguredGateway) -> str:
        """Why no model has a name with a slash, and which gateway could have it."""
        if problem := self._problems.get(named):
            return f"No gateway has the model {model!r}. The gateway {named!r} can't be used: {problem}"
        could = [
            it
            for it in self.gateways.values()
            if model in it.listed or (it is default and not it.config.is_closed)
        ]
        if not could:
            return f"No gateway has the model {model!r}. Choose another."
        ids = _ids(model, could)
        return f"No gateway {named!r} has this model. If another gateway has it, choose its id: {ids}."


def _ids(model: str, gateways: Iterable[ConfiguredGateway]) -> str:
    return ", ".join(f"{it.config.name}/{model}" for it in gateways)


def _health(gateway: Gateway) -> GatewayHealth:
    """A model in this process is always there."""
    return gateway.health if isinstance(gateway, ProviderGateway) else CONNECTED
