"""People sign in with an invitation's link: once, with a click, and never as somebody else by accident."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import settings_for
from tests.browser.going import choose
from tests.browser.test_access import violations
from tests.browser.test_talking import done, log, say
from tests.serving import Server, inviting
from threadkeep import User
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import UserRole
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.testing import Say, ScriptedModel

SECRET = "a-secret-for-tests-that-is-long-enough"


@pytest.fixture(scope="module")
def server(
    browser: Browser, shared_model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Threadkeep whose people are invited, and whose programs have tokens."""
    folder = tmp_path_factory.mktemp("invitations")
    arguments, settings = inviting()
    with Server(folder, *arguments, **settings_for(shared_model), **settings, jwt_secret=SECRET) as server:
        yield server


def invite(server: Server, user: str, **body: object) -> str:
    """The link of a new invitation."""
    admin = issue_token(SECRET, User(UserId("root"), UserRole.ADMIN), 600)
    with server.client(admin) as client:
        return (
            client.post("/api/admin/invitations", json={"user": user, **body})
            .raise_for_status()
            .json()["url"]
        )


def accept(page: Page, link: str, name: str = "ann") -> None:
    page.goto(link)
    page.get_by_role("button", name=f"Continue as {name}").click()
    expect(page.get_by_role("button", name=f"Profile: {name}")).to_be_visible()


def test_invited_person_signs_in_talks_and_signs_out(unopened: Page, server: Server, model: ScriptedModel):
    page, link = unopened, invite(server, "ann")
    page.goto("/")
    expect(page.get_by_text("You need an invitation")).to_be_visible()
    page.goto(link)
    expect(page.get_by_text("This link signs you in as ann.")).to_be_visible()
    page.reload()  # looking uses nothing up
    accept(page, link)
    assert "invitation" not in page.url
    model.script([Say("Hello Ann.")])
    say(page, "Hi")
    done(page)
    page.reload()
    expect(log(page)).to_contain_text("Hello Ann.")
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"]
    choose(page, "Profile: ann", "Sign out")
    expect(page.get_by_text("You need an invitation")).to_be_visible()
    assert page.context.cookies() == []
    page.context.add_cookies([cookie])  # whoever has kept it: the session is over on the server
    page.reload()
    expect(page.get_by_role("button", name="Profile: ann")).to_have_count(0)
    page.goto(link)
    expect(page.get_by_role("alert")).to_contain_text("used already, or has expired")
