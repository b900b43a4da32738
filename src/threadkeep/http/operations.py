"""Operating the server, and who one is."""

from contextlib import suppress

from threadkeep.domain.errors import ShuttingDown, StorageUnavailable
from threadkeep.http.services import ApiCall
from threadkeep.version import __version__
from threadkeep.wire.views import HealthView, MeView


async def get_health(call: ApiCall) -> HealthView:
    """Tell that the process lives."""
    return HealthView(status="ok", version=__version__)


async def get_readiness(call: ApiCall) -> HealthView:
    """Tell that the database answers and that turns may begin here; 503 otherwise, also while it ends."""
    if call.services.turns.is_draining:
        raise ShuttingDown("This process is shutting down. Try another node.")
    await call.services.store.ping()
    return HealthView(status="ready", version=__version__)


async def get_me(call: ApiCall) -> MeView:
    """Tell who is signed in. From then on the user is known, and agents can send them briefings."""
    with suppress(StorageUnavailable):  # who one is can be told without the database
        await call.services.users.meet(call.user)
    return MeView(id=call.user.id, role=call.user.role)


async def delete_user(call: ApiCall, *, user_id: str) -> None:
    """Delete a user and everything that is theirs, for good. For that user, and for admins."""
    await call.services.users.delete(call.user, user_id)
