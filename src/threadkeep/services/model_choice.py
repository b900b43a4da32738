"""Which model replies: an agent's own, or one that a user chooses among those that the agent offers."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from threadkeep.domain.agent import ANY_MODEL, MOST_MODEL_CHARACTERS, Agent, AgentDraft
from threadkeep.domain.errors import GatewayNotConfigured, ModelNotAllowed, ModelNotFound
from threadkeep.domain.text import check_line
from threadkeep.ports.models import ConnectedModel, Models


class ModelChoice:
    """Chooses models within the operator's limits."""

    def __init__(self, models: Models, allowed: Sequence[str] = ()) -> None:
        """`allowed` are the operator's ids or bare names; empty means every model.

        The model for agents that don't name one is the operator's own choice, so it is always allowed.
        """
        self._models = models
        self._allowed = tuple(allowed)

    def own(self, agent: Agent) -> ConnectedModel:
        """The model that replies for an agent unless somebody chooses another."""
        found = self._models.get(agent.model)
        if agent.model is not None:
            self._check_allowed(found)
        return found

    def chosen(self, agent: Agent, wanted: str | None) -> ConnectedModel:
        """The model that replies to a message whose sender wants this one, or none in particular."""
        if wanted is None:
            return self.own(agent)
        found = self._models.choose(check_line(wanted, "model", most=MOST_MODEL_CHARACTERS))
        if not self._is_offered(agent, found) and found.id not in {it.id for it in self.usable_own(agent)}:
            raise ModelNotAllowed(
                f"This agent doesn't offer the model {wanted!r}.",
                param="model",
                details={"models": [it.id for it in self.offered(agent)]},
            )
        return found

    def offered(self, agent: Agent) -> Sequence[ConnectedModel]:
        """The models that users may choose for a message to an agent, its own first."""
        own, named = self.usable_own(agent), agent.settings.models
        others = self._models.listed() if ANY_MODEL in named else _found(self._models.choose, named)
        own_ids = {it.id for it in own}
        return [*own, *(it for it in others if it.id not in own_ids and self._allows(it))]

    def listed(self) -> Sequence[ConnectedModel]:
        """The models that an agent's owner may choose, the default one first."""
        listed = self._models.listed()
        return [it for at, it in enumerate(listed) if at == 0 or self._allows(it)]

    def fallbacks(self, agent: Agent, model: ConnectedModel) -> Sequence[ConnectedModel]:
        """The models to try in turn if this one fails."""
        usable = self._usable(agent.settings.fallback_models)
        return [it for it in usable if it.id != model.id and self._allows(it)]

    def checked(self, draft: AgentDraft, current: Agent | None = None) -> AgentDraft:
        """A draft with its models by their ids; refuses what can't be chosen, unless it was chosen before."""
        settings, before = draft.settings, current.settings if current else None
        model = draft.model
        if model is not None and model != (current.model if current else None):
            model = self._id_of(model, "model")
        offered, fallbacks = settings.models, settings.fallback_models
        if before is None or offered != before.models:
            offered = self._ids_of(offered, "settings.models")
        if before is None or fallbacks != before.fallback_models:
            fallbacks = self._ids_of(fallbacks, "settings.fallbackModels")
        settings = replace(settings, models=offered, fallback_models=fallbacks)
        return replace(draft, model=model, settings=settings)

    def _ids_of(self, models: Iterable[str], param: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(it if it == ANY_MODEL else self._id_of(it, param) for it in models))

    def _id_of(self, model: str, param: str) -> str:
        check_line(model, param, most=MOST_MODEL_CHARACTERS)
        try:
            found = self._models.choose(model)
        except GatewayNotConfigured:  # nobody can say yet which gateway will have it
            return model
        except ModelNotFound as exc:
            raise ModelNotFound(exc.message, param=param) from exc
        if found.id != self._models.get(None).id:
            self._check_allowed(found, param)
        return found.id

    def _usable(self, models: Iterable[str]) -> Sequence[ConnectedModel]:
        """Those of these models that a gateway still has."""
        return _found(self._models.get, models)

    def usable_own(self, agent: Agent) -> Sequence[ConnectedModel]:
        """An agent's own model; none if it was removed, so that its users can still choose another."""
        try:
            return [self.own(agent)]
        except (ModelNotFound, ModelNotAllowed):
            return []

    def _is_offered(self, agent: Agent, model: ConnectedModel) -> bool:
        named = agent.settings.models
        return self._allows(model) and (
            ANY_MODEL in named or model.id in {it.id for it in self._usable(named)}
        )

    def _allows(self, model: ConnectedModel) -> bool:
        if not self._allowed or not model.model.gateway:
            return True
        names = {model.id, model.model.name}
        return not names.isdisjoint(self._allowed) or model.id == self._models.get(None).id

    def _check_allowed(self, model: ConnectedModel, param: str = "model") -> None:
        if not self._allows(model):
            allowed = list(dict.fromkeys((self._models.get(None).id, *self._allowed)))
            raise ModelNotAllowed(
                f"The operator doesn't allow the model {model.id!r}. Choose one of: {', '.join(allowed)}.",
                param=param,
                details={"models": allowed},
            )


def _found(find: Callable[[str], ConnectedModel], models: Iterable[str]) -> Sequence[ConnectedModel]:
    found: list[ConnectedModel] = []
    for model in models:
        with suppress(ModelNotFound, GatewayNotConfigured):
            found.append(find(model))
    return found
