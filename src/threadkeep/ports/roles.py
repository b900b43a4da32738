"""Roles: agents' personas, in files that people edit."""

from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.agent import Agent


@dataclass(frozen=True, slots=True)
class Role:
    """A role with its references resolved; `missing` lists those that weren't found."""

    id: str
    title: str
    text: str
    missing: tuple[str, ...] = ()


class Roles(Protocol):
    """Agents' roles."""

    async def read(self, agent: Agent, role_id: str) -> Role:
        """An agent's role by id or title; RoleNotFound lists those it has."""
        ...
