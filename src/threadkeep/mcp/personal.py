"""Servers and folders of single users, removed with them."""

import asyncio
import hashlib
import logging
import os
import shutil
from collections import defaultdict
from collections.abc import AsyncIterable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from threadkeep.domain.ids import UserId
from threadkeep.domain.workspace import LAYOUTS, RESOURCES, Workspaces
from threadkeep.domain.workspace import PERSONAL as FOLDER
from threadkeep.mcp.link import LinkBroken
from threadkeep.mcp.pool import Pool

log = logging.getLogger("threadkeep.mcp")


class PersonalServers:
    """The servers that run for one user each, and the folders in which a real PromptX stores their data."""

    def __init__(self, pool: Pool, workspaces: Workspaces) -> None:
        self._pool = pool
        self._workspaces = workspaces

    async def forget(self, user_id: UserId) -> None:
        """Ends a user's servers, and removes their data."""
        await self._pool.end_those_of(user_id)
        folders = await asyncio.to_thread(_folders, self._workspaces)
        await asyncio.to_thread(_remove, folders.get(_name(user_id), ()))

    async def hand_over(self, giver: UserId, receiver: UserId) -> None:
        """Ends a user's servers, and gives their data to another; what the other has already stays."""
        await self._pool.end_those_of(giver)
        await asyncio.to_thread(hand_over, self._workspaces, giver, receiver)

    async def keep_only(self, users: AsyncIterable[UserId]) -> None:
        """Does the same for everyone except these users."""
        folders = await asyncio.to_thread(_folders, self._workspaces)
        strangers = self._pool.users()
        if not folders and not strangers:
            return
        async for user_id in users:
            folders.pop(_name(user_id), None)
            strangers.discard(user_id)
        for user_id in strangers:
            await self._pool.end_those_of(user_id)
        for found in folders.values():
            await asyncio.to_thread(_remove, found)


def prepare(workspace: Path, user_id: UserId) -> Path:
    """A user's folder in an agent's workspace, with links to the agent's roles.

    Links only the roles: PromptX writes beside them which ones it has found.
    """
    folder = workspace / FOLDER / _name(user_id)
    try:
        (folder / "home").mkdir(parents=True, exist_ok=True)
        (folder / RESOURCES).mkdir(parents=True, exist_ok=True)
        for layout in LAYOUTS:
            (workspace / RESOURCES / layout).mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                (folder / RESOURCES / layout).symlink_to(workspace / RESOURCES / layout)
    except OSError as exc:
        raise LinkBroken(f"Couldn't create its folder: {exc.strerror}.") from exc
    return folder


def hand_over(workspaces: Workspaces, giver: UserId, receiver: UserId) -> Sequence[Path]:
    """Renames one user's folders to another's; returns those that stay because the other has one already."""
    stay: list[Path] = []
    for folder in _folders(workspaces).get(_name(giver), ()):
        theirs = folder.with_name(_name(receiver))
        if theirs.exists():
            stay.append(folder)
        else:
            folder.rename(theirs)
    return stay


def _name(user_id: UserId) -> str:
    """A folder name for any user id."""
    return hashlib.sha256(user_id.encode()).hexdigest()[:32]


def _folders(workspaces: Workspaces) -> dict[str, list[Path]]:
    """The users' folders in all workspaces, by name."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for users in workspaces.root.glob(f"*/{FOLDER}"):
        if not users.is_symlink():  # a program may have linked it to something of ours
            for folder in users.glob("*"):
                found[folder.name].append(folder)
    return found


def _remove(folders: Iterable[Path]) -> None:
    for folder in folders:
        try:
            _remove_folder(folder)
        except OSError as exc:
            log.warning("couldn't delete %s: %s", folder, exc.strerror)


def _remove_folder(folder: Path) -> None:
    """Removes it from its actual parent folder, never through a link."""
    users = os.open(folder.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        shutil.rmtree(folder.name, dir_fd=users)
    finally:
        os.close(users)
