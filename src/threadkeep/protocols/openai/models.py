"""Agents as models: an agent's name or id, or `agent@gateway/model` where it offers several models."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Literal

from msgspec import Struct

from threadkeep.domain.agent import Agent
from threadkeep.domain.errors import AgentNotFound
from threadkeep.domain.ids import is_uuid
from threadkeep.handling.routing import RequestContext

AGENTS_AT_ONCE = 200
_OF_MODEL = "@"


class Model(Struct, frozen=True, kw_only=True):
    """An agent, or one of its models."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelList(Struct, frozen=True, kw_only=True):
    """What the user can talk to."""

    object: Literal["list"] = "list"
    data: Sequence[Model]


async def list_models(request: RequestContext) -> ModelList:
    """List the agents, the default one first, each with the models that it offers if there are several."""
    return ModelList(data=await _models(request))


async def get_model(request: RequestContext, *, model: str) -> Model:
    """Read an agent by one of its names."""
    agent, _ = await asked_of(request, model)
    return _model(agent, model)


async def asked_of(request: RequestContext, model: str) -> tuple[Agent, str | None]:
    """The agent that a client names, and the model that it is to use, if the client names one.

    If several agents have the name, it is the user's own, then ours, then the oldest: publishing an
    agent under the name of another neither gets its messages nor keeps them from it.
    """
    whole = await _found(request, model)
    if whole is not None:
        return whole, None
    name, _, chosen = model.partition(_OF_MODEL)
    agent = await _found(request, name) if chosen else None
    if agent is None:
        raise AgentNotFound(
            f"There is no agent `{model[:100]}`. `/v1/models` lists those that you can use as `model`.",
            param="model",
        )
    request.services.choice.chosen(agent, chosen)  # refuses a model that the agent doesn't offer
    return agent, chosen


async def _found(request: RequestContext, name: str) -> Agent | None:
    if is_uuid(name):
        return await request.services.agents.get(request.user, name)
    named = [it async for it in _agents(request) if it.name.casefold() == name.casefold()]
    if sum(it.owner_id == request.user.id for it in named) > 1:
        raise AgentNotFound(
            f"Several of your agents are called `{name[:100]}`. Use an id of `/v1/models` instead.",
            param="model",
        )
    return min(
        named, key=lambda it: (it.owner_id != request.user.id, it.owner_id is not None, it.id), default=None
    )


async def _models(request: RequestContext) -> Sequence[Model]:
    default = await request.services.agents.default()
    agents = sorted([it async for it in _agents(request)], key=lambda it: it.id != default.id)
    counts = Counter(it.name.casefold() for it in agents)
    models: list[Model] = []
    for agent in agents:
        name = agent.name if counts[agent.name.casefold()] == 1 else str(agent.id)
        models.append(_model(agent, name))
        offered = request.services.choice.offered(agent)
        if len(offered) > 1:
            models += [_model(agent, f"{name}{_OF_MODEL}{it.id}") for it in offered]
    return models


async def _agents(request: RequestContext) -> AsyncIterator[Agent]:
    after = None
    while True:
        page = await request.services.agents.page(request.user, after=after, offset=0, limit=AGENTS_AT_ONCE)
        for agent in page:
            yield agent
        if len(page) < AGENTS_AT_ONCE:
            return
        after = page[-1].id


def _model(agent: Agent, id_: str) -> Model:
    return Model(id=id_, created=agent.created_at // 1000, owned_by="threadkeep")
