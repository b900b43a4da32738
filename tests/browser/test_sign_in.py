"""Signing in with a token: kept by the tabs that are open, never on disk or in an address."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import settings_for
from tests.browser.going import choose
from tests.browser.test_access import violations
from tests.browser.test_talking import done, log, say
from tests.serving import Server
from threadkeep import User
from threadkeep.domain.ids import UserId
from threadkeep.http.sign_in.access_tokens import issue_token
from threadkeep.testing import Say, ScriptedModel

SECRET = "a-secret-for-tests-that-is-long-enough"


@pytest.fixture(scope="module")
def server(
    browser: Browser, shared_model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """Threadkeep with sign-in."""
    folder = tmp_path_factory.mktemp("signing-in")
    with Server(folder, **settings_for(shared_model), jwt_secret=SECRET) as server:
        yield server


def sign_in(page: Page, user: str) -> str:
    token = issue_token(SECRET, User(UserId(user)), 600)
    page.get_by_label("Access token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    return token


def test_person_signs_in_talks_and_logs_out(page: Page, model: ScriptedModel):
    model.script([Say("Hello Alice.")])
    token = sign_in(page, "alice")
    say(page, "Hi")
    done(page)
    expect(log(page)).to_contain_text("Hello Alice.")
    page.reload()
    expect(log(page)).to_contain_text("Hello Alice.")
    assert token not in page.url
    assert token not in page.evaluate("JSON.stringify(localStorage)")
    assert page.context.cookies() == []
    choose(page, "Profile: alice", "Sign out")
    expect(page.get_by_label("Access token")).to_be_visible()
    assert token not in page.evaluate("JSON.stringify({...sessionStorage})")
    page.reload()
    expect(page.get_by_label("Access token")).to_be_visible()


def test_next_person_sees_nothing_of_the_one_before(page: Page):
    sign_in(page, "alice")
    say(page, "My secret")
    done(page)
    address = page.url
    choose(page, "Profile: alice", "Sign out")
    sign_in(page, "bob")
    expect(page.get_by_role("navigation").get_by_text("My secret")).to_have_count(0)
    page.goto(address)
    page.reload()
    expect(page.get_by_role("heading", name="Conversation not found")).to_be_visible()


def test_link_with_a_token_makes_nobody_of_a_person_who_signs_in(page: Page):
    token = issue_token(SECRET, User(UserId("mallory")), 600)
    page.goto(f"/#token={token}")
    page.reload()  # before, only the fragment has changed
    expect(page.get_by_label("Access token")).to_be_visible()
    assert token not in page.url
    sign_in(page, "alice")
    page.get_by_role("textbox", name="Message").fill("half a thought")
    page.goto(f"/#token={token}")
    page.wait_for_function("!location.hash.includes('token')")
    page.reload()
    expect(page.get_by_role("button", name="Profile: alice")).to_be_visible()
    expect(page.get_by_role("textbox", name="Message")).to_have_value("half a thought")
    page.goto(f"/s/unknown#token={token}")
    expect(page.get_by_role("heading", name="This link doesn’t work")).to_be_visible()
    assert token not in page.url
    assert token not in page.evaluate("JSON.stringify({...sessionStorage})")


def test_signing_out_asks_about_what_was_not_sent(page: Page):
    sign_in(page, "alice")
    page.get_by_role("textbox", name="Message").fill("half a thought")
    choose(page, "Profile: alice", "Sign out")
    asked = page.get_by_role("alertdialog", name="Sign out without sending?")
    expect(asked).to_contain_text("deletes 1 draft")
    page.keyboard.press("Escape")
    expect(page.get_by_role("textbox", name="Message")).to_have_value("half a thought")
    choose(page, "Profile: alice", "Sign out")
    asked.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Access token")).to_be_visible()


def test_wrong_token_is_refused_and_another_can_be_tried(page: Page):
    page.get_by_label("Access token").fill("nonsense")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("invalid")
    sign_in(page, "alice")


def test_sign_in_breaks_no_rule_of_accessibility(page: Page):
    page.get_by_label("Access token").fill("nonsense")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("invalid")
    problems = violations(page)
    page.get_by_role("switch", name="Dark mode").click()
    assert problems + violations(page) == []


def test_tabs_share_a_sign_in_until_one_logs_out(page: Page, context: BrowserContext):
    token = sign_in(page, "alice")
    other = context.new_page()
    other.goto("/")
    expect(other.get_by_role("textbox", name="Message")).to_be_visible()
    assert token not in other.evaluate("JSON.stringify(localStorage)")
    choose(other, "Profile: alice", "Sign out")
    expect(page.get_by_label("Access token")).to_be_visible()
    assert token not in page.evaluate("JSON.stringify({...sessionStorage})")
    sign_in(page, "bob")
    expect(other.get_by_role("textbox", name="Message")).to_be_visible()
