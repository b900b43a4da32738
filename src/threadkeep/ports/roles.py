"""Roles: who an agent is, written in files that people edit."""

from dataclasses import dataclass
from typing import Protocol

from threadkeep.domain.agent import Agent


@dataclass(frozen=True, slots=True)
class Role:
    """A role with all that it refers to in its place; `missing` names what could not be put there."""

    id: str
    title: str
    text: str
    missing: tuple[str, ...] = ()


class Roles(Protocol):
    """Where the roles of agents are."""

    async def read(self, agent: Agent, role_id: str) -> Role:
        """A role of an agent by its id or its title; RoleNotFound names those that it has."""
        ...
