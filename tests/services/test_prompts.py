"""Prompts as a service keeps them: files go with their agent, and not before it has come."""

import os
from pathlib import Path

import pytest

from tests.engine.in_memory import InMemoryModels
from tests.making import keep_agent
from threadkeep.clock import system_clock
from threadkeep.domain.ids import AgentId, new_uuid
from threadkeep.domain.workspace import PromptComponent, Workspaces
from threadkeep.mcp.catalog import Catalog
from threadkeep.services.agents import Agents
from threadkeep.services.model_choice import ModelChoice
from threadkeep.services.prompts import Prompts
from threadkeep.storage.prompt_files import FolderPromptFiles
from threadkeep.storage.store import Store

LONG_AGO = (0, 0)


@pytest.fixture
def files(tmp_path: Path) -> FolderPromptFiles:
    return FolderPromptFiles(Workspaces(tmp_path))


@pytest.fixture
def prompts(store: Store, files: FolderPromptFiles) -> Prompts:
    catalog = Catalog((), stdio_needs_admin=True, allow_private=False)
    choice = ModelChoice(InMemoryModels(None))
    return Prompts(store, Agents(store, catalog, system_clock, choice), files, None, choice)


async def test_files_of_an_agent_that_is_just_being_brought_in_are_left_alone(
    prompts: Prompts, files: FolderPromptFiles, tmp_path: Path
):
    coming = AgentId(new_uuid())
    await files.write(coming, PromptComponent.RULES, "Be brief.")
    assert await prompts.remove_orphans() == 0
    assert [file.text for file in await files.read(coming)] == ["Be brief."]
    os.utime(Workspaces(tmp_path).of(coming), LONG_AGO)
    assert await prompts.remove_orphans() == 1
    assert await files.agent_ids() == []


async def test_files_of_an_agent_that_there_is_stay_however_old(
    store: Store, prompts: Prompts, files: FolderPromptFiles, tmp_path: Path
):
    agent = await keep_agent(store)
    await files.write(agent.id, PromptComponent.RULES, "Be brief.")
    os.utime(Workspaces(tmp_path).of(agent.id), LONG_AGO)
    assert await prompts.remove_orphans() == 0
    assert await files.agent_ids() == [agent.id]
