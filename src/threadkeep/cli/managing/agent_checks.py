"""Everything that a server doesn't accept of an agent's file, though it names one fault at a time."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from threadkeep.cli.managing.agent_files import AgentFile
from threadkeep.cli.target import located
from threadkeep.client.errors import ClientError
from threadkeep.domain.errors import RateLimited, RouteNotFound, Unauthenticated

MOST_FAULTS = 50
SERVER_ERRORS = 500
_NO_FAULTS = {Unauthenticated.code, RouteNotFound.code, RateLimited.code}
"""What the server refuses whatever is in the files."""

T = TypeVar("T")


async def checked(file: AgentFile, check: Callable[[AgentFile], Awaitable[T]]) -> tuple[T | None, list[str]]:
    """What the server's check makes of a file, or everything that the server doesn't accept.

    What it doesn't accept is taken out, and the rest is checked again.
    """
    faults: list[str] = []
    gone: list[list[str]] = []
    left = file if file.name else file.renamed()
    while len(faults) < MOST_FAULTS:
        try:
            made = await check(left)
        except ClientError as exc:
            if exc.code in _NO_FAULTS or exc.status >= SERVER_ERRORS:
                raise
            error = exc
        else:
            return None if faults else made, faults
        steps = left.steps_to(error.param or "")
        # What is refused only because a part of it was taken out is no fault of the file.
        if not steps or not any(it[: len(steps)] == steps for it in gone):
            faults.append(f"{file.place(steps or ('name',))}: {located(error)}")
        if not steps or steps in gone:
            break
        gone.append(steps)
        left = left.renamed() if steps == ["name"] else left.without(steps)
    return None, faults
