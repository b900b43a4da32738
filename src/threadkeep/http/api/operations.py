"""Operating the server, and the signed-in user."""

from contextlib import suppress

from msgspec import UNSET

from threadkeep.domain.errors import ShuttingDown, StorageUnavailable
from threadkeep.handling.routing import Call
from threadkeep.ports.gateways import GatewayState
from threadkeep.version import __version__
from threadkeep.wire.gateways import GatewayStateView
from threadkeep.wire.views import HealthView, MeView, ReadinessView


async def get_health(call: Call) -> HealthView:
    """Check that the process is alive."""
    return HealthView(status="ok", version=__version__)


async def get_readiness(call: Call) -> ReadinessView:
    """Check that the database responds and that new turns can start; 503 otherwise, also during shutdown.

    While background work such as search indexing keeps failing, or the last request to a model provider
    failed, the status is `degraded`; `failing` and, for admins, `gateways` say which. Requests are still
    served, so the response is 200. What is known about gateways comes from turns, and from a look at most
    once a minute, for which this doesn't wait.
    """
    if call.services.turns.is_draining:
        raise ShuttingDown("This process is shutting down. Try another node.")
    await call.services.store.ping()
    failing, gateways = call.services.loops.failing, call.services.live_gateways
    gateways.look_soon()
    states = [
        GatewayStateView(name=name, status=it.state, reason=it.reason or UNSET)
        for name, it in gateways.health().items()
    ]
    is_degraded = failing or any(it.status is GatewayState.FAILING for it in states)
    return ReadinessView(
        status="degraded" if is_degraded else "ready",
        version=__version__,
        failing=failing,
        gateways=states if call.user.is_admin else (),
    )


async def get_me(call: Call) -> MeView:
    """Read who is signed in. From then on, the user is known, and agents can send them briefings."""
    with suppress(StorageUnavailable):  # the response doesn't need the database
        await call.services.users.meet(call.user)
    return MeView(id=call.user.id, role=call.user.role, installation=call.services.store.installation)


async def delete_user(call: Call, *, user_id: str) -> None:
    """Permanently delete a user and all their data. For that user and for admins."""
    await call.services.users.delete(call.user, user_id)
