"""People sign in with an invitation's link: once, with a click, and never as somebody else by accident."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import NARROW, settings_for
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
    assert cookie.get("httpOnly")
    choose(page, "Profile: ann", "Sign out")
    expect(page.get_by_text("You need an invitation")).to_be_visible()
    assert page.context.cookies() == []
    # Whoever has kept it: the session is over on the server.
    page.context.add_cookies([cookie])  # pyright: ignore[reportArgumentType] - all that it was set with
    page.reload()
    expect(page.get_by_text("You need an invitation")).to_be_visible()
    page.goto(link)
    expect(page.get_by_role("alert")).to_contain_text("used already, or has expired")


def test_link_switches_no_account_without_being_asked(
    unopened: Page, context: BrowserContext, server: Server
):
    bob, anns = unopened, invite(server, "ann")
    accept(bob, invite(server, "bob"), "bob")
    bob.get_by_role("textbox", name="Message").fill("half a thought")
    other = context.new_page()
    other.goto(anns)
    expect(other.get_by_role("status")).to_contain_text("This browser is signed in as bob.")
    other.get_by_role("button", name="Stay signed in as bob").click()
    expect(other.get_by_role("button", name="Profile: bob")).to_be_visible()
    expect(bob.get_by_role("textbox", name="Message")).to_have_value("half a thought")
    other.goto(anns)
    other.get_by_role("button", name="Sign bob out and continue as ann").click()
    # Both tabs are hers now, and have nothing of his.
    for page in (other, bob):
        expect(page.get_by_role("button", name="Profile: ann")).to_be_visible()
        expect(page.get_by_role("textbox", name="Message")).to_have_value("")
    choose(bob, "Profile: ann", "Sign out")
    expect(other.get_by_text("You need an invitation")).to_be_visible()


def test_person_signs_out_elsewhere_and_everywhere(unopened: Page, browser: Browser, server: Server):
    laptop = unopened
    accept(laptop, invite(server, "eve"), "eve")
    (cookie,) = laptop.context.cookies()
    laptop.goto("/#/settings")
    here = laptop.get_by_role("list", name="Where you’re signed in").get_by_role("listitem")
    expect(here).to_contain_text("Chrome on Linux This browser")
    expect(here).to_contain_text("Signed in with an invitation")
    laptop.get_by_role("button", name="Sign out everywhere").click()
    laptop.get_by_role("alertdialog").get_by_role("button", name="Sign out everywhere").click()
    expect(laptop.get_by_text("You need an invitation")).to_be_visible()
    with server.client("none") as client:
        client.headers = {
            "Cookie": f"{cookie.get('name')}={cookie.get('value')}",
            "Sec-Fetch-Site": "same-origin",
        }
        assert client.get("/api/me").status_code == 401


def test_admin_invites_and_suspends(unopened: Page, browser: Browser, server: Server):
    admin = unopened
    accept(admin, invite(server, "root", admin=True), "root")
    admin.goto("/#/settings")
    admin.get_by_role("link", name="Manage people").click()
    admin.get_by_role("button", name="Invite somebody").click()
    admin.get_by_role("textbox", name="Name").fill("carl")
    admin.get_by_role("button", name="Create link").click()
    link = admin.get_by_role("region", name="Invitation for carl").locator(".secret code").inner_text()
    admin.get_by_role("button", name="Done").click()
    expect(admin.get_by_role("list", name="Invited").get_by_role("listitem")).to_contain_text("carl")
    context = browser.new_context(base_url=server.url, service_workers="block")
    carl = context.new_page()
    accept(carl, link, "carl")
    admin.reload()
    row = admin.get_by_role("list", name="Users").get_by_role("listitem").filter(has_text="carl")
    expect(row).to_contain_text("last seen just now")
    expect(admin.get_by_role("list", name="Invited")).to_have_count(0)
    row.get_by_role("button", name="Suspend carl").click()
    admin.get_by_role("alertdialog").get_by_role("button", name="Suspend").click()
    expect(row).to_contain_text("Suspended since")
    # What is open ends by itself.
    expect(
        carl.get_by_text("Your account is suspended. Only an administrator can lift this.")
    ).to_be_visible()
    row.get_by_role("button", name="Let carl back in").click()
    expect(row).not_to_contain_text("Suspended since")
    assert violations(admin) == []
    row.get_by_role("button", name="Delete carl").click()
    question = admin.get_by_role("alertdialog")
    expect(question).to_contain_text("for good")
    expect(question.get_by_role("button", name="Delete")).to_be_disabled()
    assert violations(admin) == []
    question.get_by_role("textbox", name="To confirm, type carl").fill("carl")
    question.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    admin.reload()
    expect(admin.get_by_role("list", name="Users")).to_contain_text("root")
    expect(row).to_have_count(0)
    context.close()


def test_invited_person_signs_in_with_a_second_browser(unopened: Page, browser: Browser, server: Server):
    laptop = unopened
    accept(laptop, invite(server, "ida"), "ida")
    laptop.goto("/#/settings")
    laptop.get_by_role("button", name="Sign in on another device").click()
    card = laptop.get_by_role("region", name="Link for another device")
    link = card.locator(".secret code").inner_text()
    assert violations(laptop) == []
    context = browser.new_context(base_url=server.url, service_workers="block")
    phone = context.new_page()
    phone.goto(link)
    expect(phone.get_by_text("Your other browsers stay signed in.")).to_be_visible()
    accept(phone, link, "ida")
    card.get_by_role("button", name="Done").click()
    here = laptop.get_by_role("list", name="Where you’re signed in").get_by_role("listitem")
    expect(here).to_have_count(2)
    phone.goto(link)
    expect(phone.get_by_role("alert")).to_contain_text("Ask the person who invited you for a new link")
    context.close()


def test_offer_to_take_over_what_was_there_leaves_the_menu_on_top(unopened: Page, server: Server):
    page = unopened
    accept(page, invite(server, "gus", admin=True), "gus")
    left = {"conversations": 3, "agents": 0, "briefings": 0, "memories": 0}
    me = page.request.get("/api/me", headers={"Sec-Fetch-Site": "same-origin"}).json()
    page.route("**/api/me", lambda route: route.fulfill(json=me | {"reassignable": left}))
    page.set_viewport_size(NARROW)  # pyright: ignore[reportArgumentType]
    page.reload()
    offer = page.get_by_role("region", name="From before people signed in")
    expect(offer).to_contain_text("3 conversations")
    box, menu = offer.bounding_box(), page.get_by_role("button", name="Open menu").bounding_box()
    assert box and menu
    assert menu["y"] + menu["height"] <= box["y"]


def test_signing_in_breaks_no_rule_of_accessibility(unopened: Page, server: Server):
    page, link = unopened, invite(server, "dora", admin=True)
    page.goto("/")
    page.get_by_text("Developer").click()
    expect(page.get_by_label("Access token")).to_be_visible()
    problems = violations(page)
    page.goto("/#/sign-in?problem=denied&provider=x")
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("the provider or you declined")
    problems += violations(page)
    page.goto(link)
    expect(page.get_by_text("an administrator.")).to_be_visible()
    problems += violations(page)
    page.get_by_role("switch", name="Dark mode").click()
    problems += violations(page)
    accept(page, link, "dora")
    page.goto("/#/settings")
    expect(page.get_by_text("This browser", exact=True)).to_be_visible()
    assert problems + violations(page) == []
