"""The models that can be chosen, over HTTP."""

from typing import Annotated

from msgspec import Meta, Struct

from threadkeep.domain.errors import GatewayNotConfigured
from threadkeep.handling.routing import RequestContext
from threadkeep.wire.models import ModelsView, model_view


class ModelsQuery(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Which choice."""

    agent_id: Annotated[
        str | None,
        Meta(
            description="The models that you can choose for a message to this agent; by default, those that "
            "you can choose for an agent of your own."
        ),
    ] = None


async def list_models(request: RequestContext, *, query: ModelsQuery) -> ModelsView:
    """List the models you can choose, the default one first."""
    choice = request.services.choice
    if query.agent_id is None:
        found = choice.listed()
        default = found[:1]
    else:
        agent = await request.services.agents.get(request.user, query.agent_id)
        try:
            found, default = choice.offered(agent), choice.usable_own(agent)
        except GatewayNotConfigured:
            found = default = ()
    return ModelsView(items=[model_view(it.model, default=it in default) for it in found])
