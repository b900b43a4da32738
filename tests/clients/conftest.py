"""What suites of real clients have in common: a model that gives titles by itself, and users who sign in."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SECRET, secret_key_for
from tests.talking import Talk, talking
from threadkeep import Settings, User
from threadkeep.domain.ids import UserId
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.testing import Recorded, Reply, Say, ScriptedModel, scripted_settings


class Replying(ScriptedModel):
    """A scripted model that is also asked for titles, in between."""

    def reply_to(self, request: Recorded) -> Reply:
        """What the script says, unless a title is asked for; such a request isn't recorded."""
        if str(request.body["messages"][0]["content"]).startswith("Write a title"):
            self.requests.remove(request)
            return [Say("A title")]
        return super().reply_to(request)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with Replying() as model:
        yield model


@pytest.fixture
def talk_settings(database_url: str, model: ScriptedModel, tmp_path: Path) -> Settings:
    return scripted_settings(
        model,
        data=tmp_path / "data",
        database_url=database_url,
        secret_key=secret_key_for(database_url),
        embedding_url="off",
        mcp_allow_private=True,
        jwt_secret=SECRET,
    )


@pytest.fixture
async def talk(talk_settings: Settings) -> AsyncIterator[Talk]:
    """Threadkeep on a real port, and alice's client of our own API."""
    async with talking(talk_settings) as talk:
        talk.client.headers.update(signed_in("alice"))
        yield talk


def signed_in(user: str) -> dict[str, str]:
    """The headers of a user."""
    return {"authorization": f"Bearer {issue_token(SECRET, User(UserId(user)), 600)}"}


async def new_agent(talk: Talk, **settings: Any) -> str:
    """An agent that everybody may talk to."""
    body = {"name": "Advisor", "visibility": "public", "settings": settings}
    return (await talk.client.post("/api/agents", json=body)).json()["id"]
