"""Operating the server, and the signed-in user."""

from contextlib import suppress

from msgspec import UNSET

from threadkeep.domain.agent import BlockedLoop
from threadkeep.domain.errors import ShuttingDown, StorageUnavailable
from threadkeep.handling.routing import RequestContext
from threadkeep.ports.gateways import GatewayState
from threadkeep.version import __version__
from threadkeep.wire.gateways import GatewayStateView
from threadkeep.wire.views import BlockedLoopView, HealthView, MeView, ReadinessView, movable_view


async def get_health(request: RequestContext) -> HealthView:
    """Check that the process is alive."""
    return HealthView(status="ok", version=__version__)


async def get_readiness(request: RequestContext) -> ReadinessView:
    """Check that the database responds and that new turns can start; 503 otherwise, also during shutdown.

    While background work such as search indexing keeps failing, the last request to a model provider failed,
    or an agent in code has blocked the event loop of all of them for more than ten seconds, the status is
    `degraded`; `failing` and, for admins, `gateways` and `blocked` say which. Requests are still served, and
    other nodes run the new turns of agents in code, so the response is 200. What is known about gateways
    comes from turns, and from a look at most once a minute, for which this doesn't wait.
    """
    if request.services.turns.is_draining:
        raise ShuttingDown("This process is shutting down. Try another node.")
    await request.services.store.ping()
    failing, gateways = request.services.loops.failing, request.services.live_gateways
    gateways.look_soon()
    states = [
        GatewayStateView(name=name, status=health.state, reason=health.reason or UNSET)
        for name, health in gateways.health().items()
    ]
    stuck = request.services.workers.here.stuck
    is_degraded = failing or stuck or any(it.status is GatewayState.FAILING for it in states)
    return ReadinessView(
        status="degraded" if is_degraded else "ready",
        version=__version__,
        failing=failing,
        gateways=states if request.user.is_admin else (),
        blocked=_blocked(stuck) if stuck and request.user.is_admin else UNSET,
    )


def _blocked(stuck: BlockedLoop) -> BlockedLoopView:
    return BlockedLoopView(agent=stuck.agent, place=stuck.place, blocked_ms=stuck.ms)


async def get_me(request: RequestContext) -> MeView:
    """Read who is signed in. From then on, the user is known, and agents can send them briefings."""
    left = None
    with suppress(StorageUnavailable):  # the response doesn't need the database
        await request.services.users.meet(request.user)
        left = await request.services.local_data.left_for(request.user)
    return MeView(
        id=request.user.id,
        role=request.user.role,
        installation=request.services.store.installation,
        delete_after_days=request.services.conversations.delete_after_days or UNSET,
        name=request.user.name or UNSET,
        groups=request.user.groups or UNSET,
        reassignable=UNSET if left is None else movable_view(left),
    )


async def delete_user(request: RequestContext, *, user_id: str) -> None:
    """Permanently delete a user and all their data. For that user, and for admins.

    A key that acts for an application's users and has `mayDelete` can delete each user of its realm; one
    without a realm only the user that the request names.
    """
    await request.services.users.delete(request.user, user_id)
