"""Every response that a test of the HTTP face sees is held against the OpenAPI document."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import Api
from tests.http.checked import CheckedApi
from tests.talking import Talk, talking
from threadkeep.testing import ScriptedModel, scripted_settings


@pytest.fixture
def api(api: Api) -> Api:
    """The common fixture, with clients that check."""
    return CheckedApi.on(api)


@pytest.fixture
async def talk_with_tools(model: ScriptedModel, tmp_path: Path) -> AsyncIterator[Talk]:
    """Threadkeep that reaches tool servers here. On SQLite: tests of dying nodes ask on both databases."""
    async with talking(
        scripted_settings(model, data=tmp_path / "data", embedding_url="off", mcp_allow_private=True)
    ) as talk:
        yield talk
