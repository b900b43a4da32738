"""People sign in with an OpenID Connect provider: a real one, behind a proxy that can lie."""

from collections.abc import AsyncIterator, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest

from tests.conftest import ONLY_POSTGRES, ONLY_SQLITE, Api
from tests.http.calls import refusal
from tests.http.checked import CheckedApi
from tests.http.sign_in.provider.running import (
    CLIENT_ID,
    CLIENT_SECRET,
    Claims,
    Lie,
    Provider,
    running_provider,
)
from tests.http.sign_in.test_sessions import ORIGIN, browser, settings_for
from threadkeep import create_app
from threadkeep.doctor.providers import check_providers

BACK = "/oauth/sign-in/work"
START = f"{BACK}/start"
OTHER = "/oauth/sign-in/other"
HOUR_MS = 60 * 60 * 1000


@pytest.fixture(scope="module")
def running() -> Generator[Provider]:
    with running_provider(f"{ORIGIN}{BACK}", f"{ORIGIN}{OTHER}") as provider:
        yield provider


@pytest.fixture
def provider(running: Provider) -> Provider:
    running.tell_truth()
    return running


def table(provider: Provider, **more: Any) -> dict[str, Any]:
    given = {"issuer": provider.issuer, "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
    rules = {"admin_group": "admins"} | (more or {"anyone": True})
    return given | {"title": "Work", "scopes": ["openid", "profile", "email", "groups"]} | rules


def settings_with(provider: Provider, database_url: str, data: Path, **more: Any) -> Any:
    tables = {"work": table(provider, **more), "other": table(provider, anyone=True)}
    return settings_for(database_url, data, sign_in=tables)


@pytest.fixture
def rules() -> dict[str, Any]:
    """Who may come in; tests say otherwise by a parameter."""
    return {}


@pytest.fixture
async def api(
    provider: Provider, rules: dict[str, Any], database_url: str, tmp_path: Path
) -> AsyncIterator[Api]:
    app = create_app(settings_with(provider, database_url, tmp_path / "data", **rules))
    async with app.lifespan():
        api = CheckedApi(app, (await app.services()).store, [])
        yield api
        for client in api.clients:
            await client.aclose()


def only(**rules: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("rules", [rules])


async def at_provider(url: str, person: str) -> str:
    """Where the provider sends a person's browser."""
    async with httpx.AsyncClient(cookies={"person": person}) as client:
        response = await client.get(url)
    assert response.status_code == 302, response.text
    return response.headers["location"]


async def begun(client: httpx.AsyncClient, next_: str = "/") -> str:
    response = await client.get(START, params={"next": next_})
    assert response.status_code == 303
    return response.headers["location"]


async def come_back(client: httpx.AsyncClient, url: str) -> httpx.Response:
    """The browser follows the provider's redirection to us."""
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    response = await client.get(url, headers=headers)
    assert response.status_code == 303, response.text
    assert response.headers["cache-control"] == "no-store"
    return response


async def sign_in(client: httpx.AsyncClient, person: str = "ann", next_: str = "/") -> httpx.Response:
    return await come_back(client, await at_provider(await begun(client, next_), person))


async def signed_in(api: Api, person: str = "ann") -> httpx.AsyncClient:
    client = browser(api)
    assert (await sign_in(client, person)).headers["location"] == f"{ORIGIN}/"
    return client


def problem(response: httpx.Response, name: str = "work") -> str:
    """What the page explains; a refused browser gets no cookie of a session."""
    start, _, query = response.headers["location"].partition("?")
    assert start == f"{ORIGIN}/#/sign-in"
    assert "set-cookie" not in response.headers
    given = parse_qs(query)
    assert given["provider"] == [name]
    return given["problem"][0]


async def me(client: httpx.AsyncClient) -> dict[str, Any]:
    response = await client.get("/api/me")
    assert response.status_code == 200, response.text
    return response.json()


async def inside(api: Api) -> Any:
    """What talks to the provider, whose patience no test has."""
    sign_ins: Any = (await api.app.services()).provider_sign_ins
    return sign_ins._providers["work"]


async def pass_half_a_day(api: Api, monkeypatch: pytest.MonkeyPatch, hours: int = 13) -> None:
    """The hourly job, so many hours from now."""
    sign_ins: Any = (await api.app.services()).provider_sign_ins
    now = sign_ins._clock
    monkeypatch.setattr(sign_ins, "_clock", lambda: now() + hours * HOUR_MS)
    await sign_ins.refresh_due()


async def test_person_signs_in_and_comes_back_to_where_they_were(api: Api, provider: Provider):
    provider.describe("ann", name="Ann", groups=["admins", "sales"])
    ann = browser(api)
    ways = (await ann.get("/api/sign-in")).json()["ways"]
    assert ways[0] == {"name": "work", "title": "Work", "url": f"{ORIGIN}{START}"}
    url = await begun(ann, "/#/c/1")
    asked = parse_qs(urlsplit(url).query)
    assert asked["redirect_uri"] == [f"{ORIGIN}{BACK}"]
    assert asked["code_challenge_method"] == ["S256"]
    back = await at_provider(url, "ann")
    response = await come_back(ann, back)
    assert response.headers["location"] == f"{ORIGIN}/#/c/1"
    header = response.headers["set-cookie"]
    assert {"Path=/", "Secure", "HttpOnly", "SameSite=Lax"} <= set(header.split("; "))
    found = await me(ann)
    assert found["id"].startswith("work|")
    assert (found["role"], found["name"]) == ("admin", "Ann")
    (session,) = (await ann.get("/api/me/sessions")).json()["items"]
    assert session["way"] == "oidc:work"
    # The answer counts once; and never in another browser, be it one that has begun, too.
    assert problem(await come_back(ann, back)) == "expired"
    thief = browser(api)
    await begun(thief)
    assert problem(await come_back(thief, await at_provider(await begun(ann), "ann"))) == "expired"
    # Another sign-in in this browser ends the session before.
    await sign_in(ann)
    assert len((await ann.get("/api/me/sessions")).json()["items"]) == 1


@ONLY_SQLITE
async def test_sign_in_goes_on_only_to_our_own_page(api: Api, provider: Provider):
    provider.describe("ann")
    ann = browser(api)
    for elsewhere in ("https://evil.example", "//evil.example", ".evil.example", "/\\evil", "/" + "x" * 2000):
        assert (await sign_in(ann, next_=elsewhere)).headers["location"] == f"{ORIGIN}/"
    # Nor does a link elsewhere begin one.
    response = await ann.get(START, headers={"Sec-Fetch-Site": "cross-site"})
    assert response.headers["location"] == f"{ORIGIN}/#/sign-in"
    assert "set-cookie" not in response.headers
    assert (await ann.get("/oauth/sign-in/nobody/start")).status_code == 404
    assert (await ann.head(BACK)).status_code == 405


@ONLY_SQLITE
async def test_answer_of_another_provider_signs_nobody_in(api: Api, provider: Provider):
    provider.describe("ann")
    ann = browser(api)
    back = await at_provider(await begun(ann), "ann")
    assert problem(await come_back(ann, back.replace("/work?", "/other?")), "other") == "other_provider"
    for change in ("https://evil.example", ""):
        back = await at_provider(await begun(ann), "ann")
        other = httpx.URL(back).copy_set_param("iss", change)
        assert problem(await come_back(ann, str(other))) == "other_provider"
    back = httpx.URL(await at_provider(await begun(ann), "ann"))
    assert problem(await come_back(ann, str(back.copy_remove_param("iss")))) == "invalid"
    back = httpx.URL(await at_provider(await begun(ann), "ann"))
    assert problem(await come_back(ann, str(back.copy_add_param("code", "x")))) == "invalid"
    for garbage in ("", "?state=", "?state=x&code=y", f"?state={'a' * 43}&code=y"):
        assert problem(await come_back(ann, BACK + garbage)) == "expired"
    refusal(await ann.get("/api/me"), 401, "UNAUTHENTICATED")


@ONLY_SQLITE
async def test_person_who_declines_is_told_so(api: Api, provider: Provider):
    provider.describe("ann")
    ann = browser(api)
    url = await begun(ann)
    form = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    async with httpx.AsyncClient(cookies={"person": "ann"}) as client:
        declined = await client.post(url, data=form)  # without `allow`
    assert "error=access_denied" in declined.headers["location"]
    assert problem(await come_back(ann, declined.headers["location"])) == "denied"


@ONLY_SQLITE
async def test_provider_that_lies_signs_nobody_in(api: Api, provider: Provider):
    provider.describe("ann")
    ann = browser(api)

    def unsigned(claims: Claims) -> str:
        return jwt.encode(claims, cast("Any", None), algorithm="none")

    def by_secret(claims: Claims) -> str:
        return jwt.encode(claims, CLIENT_SECRET * 4, algorithm="HS256")

    def by_another_key(claims: Claims) -> str:
        header, _, _ = provider.signed(claims).split(".")
        before = provider.key
        try:
            provider.key = OTHER_KEY
            _, payload, signature = provider.signed(claims).split(".")
        finally:
            provider.key = before
        return f"{header}.{payload}.{signature}"

    lies: dict[str, Lie] = {
        "no signature": unsigned,
        "a secret's signature": by_secret,
        "another key": by_another_key,
        "another issuer": lambda it: provider.signed(it | {"iss": "https://evil.example"}),
        "another audience": lambda it: provider.signed(it | {"aud": "other"}),
        "another application": lambda it: provider.signed(it | {"aud": [CLIENT_ID, "other"], "azp": "other"}),
        "several audiences": lambda it: provider.signed(it | {"aud": [CLIENT_ID, "other"]}),
        "another sign-in": lambda it: provider.signed(it | {"nonce": "x"}),
        "no nonce": lambda it: provider.signed({name: it[name] for name in it if name != "nonce"}),
        "expired": lambda it: provider.signed(it | {"exp": 0}),
        "no end": lambda it: provider.signed({name: it[name] for name in it if name != "exp"}),
        "an endless life": lambda it: provider.signed(it | {"exp": float("inf")}),
        "half a character": lambda it: provider.signed(it | {"nonce": "\ud800", "sub": "\ud800"}),
        "half a character as subject": lambda it: provider.signed(it | {"sub": "\ud800"}),
        "no subject": lambda it: provider.signed(it | {"sub": ""}),
        "a number": lambda it: provider.signed(it | {"sub": 1}),
        "an endless subject": lambda it: provider.signed(it | {"sub": "x" * 300}),
        "nonsense": lambda it: "x.y.z",
    }
    for what, lie in lies.items():
        provider.lie = lie
        assert problem(await sign_in(ann)) == "invalid", what
    provider.tell_truth()
    provider.replaced["/userinfo/"] = lambda it: it | {"sub": "other"}
    assert problem(await sign_in(ann)) == "invalid"
    for broken in ({"id_token": None}, {"id_token": 1}):
        provider.replaced = {"/token/": lambda it, broken=broken: it | broken}
        assert problem(await sign_in(ann)) == "invalid"
    refusal(await ann.get("/api/me"), 401, "UNAUTHENTICATED")
    provider.tell_truth()
    await sign_in(ann)
    assert (await me(ann))["id"].startswith("work|")


OTHER_KEY = """\
-----BEGIN PRIVATE KEY-----
MIIEvAIBADANBgkqhkiG9w0BAQEFAASCBKYwggSiAgEAAoIBAQDXfeQcx6IKEsDI
qQMabWinp3IITujDaVbTQPWkvexsRdqNMZjQrhAIFvEfqN4/k37XPb6vK9Vstw5A
Yr7o5qHlY0TkS3Fsomj4Kyu9h+TscIp1puSlwI8f1580/43G/LzStiqu2Kgz2Jwy
Hdzw9+7EbQDO+1gmUUOgqpXvnzp2cUcuaKSwvA7oLJJpoAtYwi9d73AGjIMbNDck
t5JGoAa61MyjBLYOzklE7pS2cFLgXmEr3jGuVCo+DdNSHl/R1IKxL2ltctZIPGI9
hC2hh6j6lyw6xCZX/n/JMTRN5HsGo9O6ePm1wKnyaKZomZy3+MkdI8Uqmli8sJgH
UmTt0vh/AgMBAAECggEABoHfqVBhw3XGvHa6HabofIjti1foAy41OBDq1oUeYsJq
XmpguZlnIqS8faX7be2Al1d7YJUmVmFh4GcXaf6Dnn9tiBjmBKv3iS9sHFTtDqTI
fEVgwseBjn/Fy4HAUlcKt5Q6XITD1VVq0ocO482EcUMQS8xCfQf0MlqWKxPGJSBw
699M0SAg+3/LhECgfgOZJ5VgPyhJgEiiizmGJJYiHiOq/T/T7Pt7DqUPonEiiFA/
nLZHiUrrJoSdQGAvX2T7OgfXhjnu0fyWpcWo3RIvm3x2Arw98qFI8BxpNM9zM66T
2dEI9Kdjcy9nSvI+r8um3tdcA4VwEgUDNlQqMWAtNQKBgQD89Bs3dxsd8kNi7NfX
5kO7l0mcxnnCeWjYEFrjLS0sLgkxKDjtEnz56CblRpOKd5U560CQOYcDygARJ6L0
r4XMX/rewdKUMzivh/CBuSC6zhvXN+6j/g8yzPLngnGMCQCyLTjUqep12cryW48W
/wQryakgq2CsrlICjnHfqphhHQKBgQDaFkjTEMnTLZdF8iVGoYgJ4gRE05c0mohw
NVw6D/LPMGKC+kjIoRlJgsfWBSrhY30udVAi/t8oz70296ANHJWeaBeWf17mNvta
ClQ9z8LDcWINA6KMa+2WuUddM4mkEfed8J/Ck2RM7g5GAQNw4kxLp2aGbiZJKbBB
dmY2hC6JSwKBgC2jHQX0xz+v5diDQq4BLVc7BFz0siMUJIZW7Q7vp6bA54em6h5b
p5CvAdV71kK1MIcymoNq3aEhYMG3lP7wbANjja+C6Ks0UpXYwNumuvD5HqzFuph7
zeIsd+as8i+BsE51OjukLFj24la3jiln+SitSYZLZTXCfalYadMgxD1BAoGAOoER
5jUxv0oSs7vizhDVOrl8Ja6ReJYgFeHqrNTMcVJsivBziAbXjsXbsAlQ2Ifk9Aqa
hdjTqtIX02AYeov5gzYvZbsjjSSgxyXQNYi/mciX4h/ggkUNxopLn7AMs4vyXldH
tF3v4UdXYuYwsx6yEvWEZnm0IZpiYx1NDEDnbwMCgYAbminGFmeyhyGmHcAVdMzv
DKA/jvxEocL/3TNlUN9jiTc1GSrbpV1E6xo74n8HeoI/Mub0dtAerrTpwVRPZzRn
EXsb5/MdfeeJVQI8oqFHk5HcwpUynm50bU09TaO0vQU2VWLu2prNUPKSR0xwJi/s
KjzWMmjcHCjmexMbMYtKRQ==
-----END PRIVATE KEY-----
"""


async def test_provider_may_start_after_us_and_change_its_keys(api: Api, provider: Provider):
    provider.describe("ann")
    assert provider.heard == [], "a server starts without its providers"
    provider.is_down = True
    ann = browser(api)
    assert problem(await ann.get(START)) == "unreachable"
    provider.is_down = False
    (await inside(api))._discovery._next_fetch = 0  # instead of two seconds
    url = await at_provider(await begun(ann), "ann")
    provider.is_down = True
    assert problem(await come_back(ann, url)) == "unreachable"
    provider.is_down = False
    await sign_in(ann)
    provider.rotate()
    (await inside(api))._keys[1]._next_fetch = 0  # instead of ten seconds
    await sign_in(ann)
    assert (await me(ann))["id"].startswith("work|")


@only(allowed_groups=["staff", "guests"], admin_group="staff")
@ONLY_SQLITE
async def test_only_people_of_the_allowed_groups_come_in(api: Api, provider: Provider):
    for groups in ([], ["others"], "other", None, {"staff": True}, [["staff"]]):
        provider.describe("ann", groups=groups)
        assert problem(await sign_in(browser(api))) == "not_allowed", groups
    provider.describe("ann", groups="staff")
    assert (await me(await signed_in(api)))["role"] == "admin"
    # Whatever else there is.
    many = [f"group {number:05}" for number in range(10_000)]
    provider.describe("bob", groups=[*many, "guests"])
    bob = await signed_in(api, "bob")
    assert (await me(bob))["role"] == "user"
    admin = api.as_user("root", admin=True)
    known = {it["id"]: it for it in (await admin.get("/api/admin/users")).json()["items"]}
    groups = known[(await me(bob))["id"]]["groups"]
    assert (len(groups), groups[0]) == (200, "guests")


@only(allowed_domains=["Example.com"])
@ONLY_SQLITE
async def test_only_people_with_a_verified_address_of_the_domain_come_in(api: Api, provider: Provider):
    for email, is_verified, expected in (
        (None, True, "no_email"),
        ("ann@example.com", False, "no_email"),
        ("ann@example.com", None, "no_email"),
        ("ann@example.com.evil.example", True, "not_allowed"),
        ("ann@sub.example.com", True, "not_allowed"),
        ("example.com", True, "no_email"),
    ):
        provider.describe("ann", email=email, email_verified=is_verified)
        assert problem(await sign_in(browser(api))) == expected, email
    provider.describe("ann", email="ann@EXAMPLE.com", email_verified=True)
    assert (await me(await signed_in(api)))["name"] == "ann@EXAMPLE.com"


@only(allowed_domains=["example.com"])
@ONLY_SQLITE
async def test_address_and_whether_it_is_verified_come_from_one_place(api: Api, provider: Provider):
    """An ID token with an address that it doesn't call verified: what the provider says elsewhere counts."""

    def unsure(claims: Claims) -> str:
        rest = {name: claims[name] for name in claims if name != "email_verified"}
        return provider.signed(rest | {"name": "Ann", "email": said_in_token})

    provider.lie = unsure
    said_in_token = "ann@example.com"
    provider.describe("ann", email="ann@elsewhere.test", email_verified=True)
    assert problem(await sign_in(browser(api))) == "not_allowed"
    said_in_token = "ann@elsewhere.test"
    provider.describe("ann", email="ann@example.com", email_verified=True)
    assert (await me(await signed_in(api)))["name"] == "Ann"


@ONLY_SQLITE
async def test_same_person_of_two_providers_is_two_users(api: Api, provider: Provider):
    provider.describe("ann", name="Ann")
    first = await me(await signed_in(api))
    ann = browser(api)
    url = (await ann.get(f"{OTHER}/start")).headers["location"]
    assert parse_qs(urlsplit(url).query)["redirect_uri"] == [f"{ORIGIN}{OTHER}"]
    await come_back(ann, await at_provider(url, "ann"))
    second = await me(ann)
    assert second["id"] == first["id"].replace("work|", "other|")
    assert second["name"] == first["name"]


async def suspended(api: Api) -> set[str]:
    """Who is kept out, as admins see it."""
    users = (await api.as_user("root", admin=True).get("/api/admin/users")).json()["items"]
    return {it["id"] for it in users if "suspendedAt" in it}


async def test_role_and_groups_are_those_of_today(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    provider.describe("ann", name="Ann", groups=["admins"])
    ann = await signed_in(api)
    assert (await me(ann))["role"] == "admin"
    provider.describe("ann", name="Ann B.", groups=["sales"])
    for _ in range(2):  # the new token is used the next time
        await pass_half_a_day(api, monkeypatch)
    found = await me(ann)
    assert (found["role"], found["name"]) == ("user", "Ann B.")
    assert sum(it.endswith("/token/") for it in provider.heard) == 3


async def test_user_whom_the_provider_no_longer_knows_is_kept_out(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    provider.describe("ann")
    ann = await signed_in(api)
    id_ = (await me(ann))["id"]
    made = await ann.post("/api/keys", json={"name": "k", "scopes": ["read"]})
    program = api.client(Authorization=f"Bearer {made.json()['key']}")
    provider.remove("ann")
    provider.is_down = True
    await pass_half_a_day(api, monkeypatch)  # an outage says nothing about anybody
    assert (await me(ann))["id"] == id_
    provider.is_down = False
    await pass_half_a_day(api, monkeypatch)
    for client in (ann, program):
        refusal(await client.get("/api/conversations"), 401, "UNAUTHENTICATED")
    admin = api.as_user("root", admin=True)
    assert await suspended(api) == {id_}
    (entry,) = [
        it for it in (await admin.get("/api/admin/audit")).json()["items"] if it["action"] == "suspend_user"
    ]
    assert entry["details"] == {"userId": id_, "provider": "work"}


async def test_lost_answer_of_a_provider_ends_sessions_and_keys_only_if_nobody_signs_in_again(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    """What a provider says of a token that it has replaced, it also says of users whom it has removed."""
    people: dict[str, tuple[str, httpx.AsyncClient, httpx.AsyncClient]] = {}
    for person in ("ann", "bob"):
        provider.describe(person)
        client = await signed_in(api, person)
        made = (await client.post("/api/keys", json={"name": "k", "scopes": ["read"]})).json()
        program = api.client(Authorization=f"Bearer {made['key']}")
        people[person] = (await me(client))["id"], client, program
    provider.loses_replies = True
    await pass_half_a_day(api, monkeypatch)
    provider.loses_replies = False
    for id_, client, _ in people.values():
        assert (await me(client))["id"] == id_
    provider.remove("bob")  # nobody has asked about him since
    await pass_half_a_day(api, monkeypatch, hours=1)
    for _, client, program in people.values():
        refusal(await client.get("/api/me"), 401, "UNAUTHENTICATED")
        assert (await program.get("/api/me")).status_code == 200, "the program goes on meanwhile"
    assert await suspended(api) == set()
    ann, bob = people["ann"], people["bob"]
    await sign_in(ann[1], "ann")
    await pass_half_a_day(api, monkeypatch, hours=10)
    assert await suspended(api) == {bob[0]}, "within a day of the provider's last good answer"
    assert (await me(ann[1]))["id"] == ann[0]
    assert (await ann[2].get("/api/me")).status_code == 200
    refusal(await bob[2].get("/api/me"), 401, "UNAUTHENTICATED")


async def test_provider_that_lies_about_a_user_later_changes_and_ends_nothing(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    provider.describe("ann", name="Ann")
    provider.describe("bob", name="Bob", groups=["admins"])
    ann = await signed_in(api)
    before = await me(ann)
    bob_id = (await me(await signed_in(api, "bob")))["id"]
    provider.describe("ann", name="Ann B.", groups=["admins"])
    lies: list[Lie] = [
        lambda it: provider.signed(it | {"sub": bob_id.removeprefix("work|")}),
        lambda it: provider.signed(it | {"iss": "https://evil.example"}),
        lambda it: provider.signed(it | {"aud": "other"}),
        lambda it: "x.y.z",
    ]
    for hours, lie in zip((13, 1, 1, 1), lies, strict=True):
        provider.lie = lie
        provider.heard.clear()
        await pass_half_a_day(api, monkeypatch, hours=hours)
        assert any(it.endswith("/token/") for it in provider.heard)
        assert await me(ann) == before, "role and name stay as they were"
    provider.tell_truth()
    await pass_half_a_day(api, monkeypatch, hours=1)
    assert (await me(ann))["name"] == "Ann B.", "and the last token that it gave is the one that counts"


@pytest.mark.parametrize("broken", ["/userinfo/", "/jwks.json"])
@ONLY_SQLITE
async def test_provider_that_breaks_off_in_the_middle_of_an_answer_loses_nobodys_token(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch, broken: str
):
    """It has replaced the token by then."""
    provider.describe("ann", name="Ann")
    ann = await signed_in(api)
    provider.describe("ann", name="Ann B.")
    (await inside(api))._keys = None  # a node that has just been started
    provider.broken = broken
    await pass_half_a_day(api, monkeypatch)
    provider.broken = ""
    (await inside(api))._keys = None  # instead of ten seconds
    assert (await me(ann))["name"] == "Ann"
    await pass_half_a_day(api, monkeypatch, hours=1)
    assert (await me(ann))["name"] == "Ann B."


@ONLY_SQLITE
async def test_user_who_may_no_longer_sign_in_is_kept_out_at_once(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    """Who is asked for by name and refused by a rule is refused beyond doubt."""
    rules: Any = (await api.app.services()).provider_sign_ins
    provider.describe("ann", groups=["staff"])
    ann = await signed_in(api)
    id_ = (await me(ann))["id"]
    admission = replace(rules._providers["work"].admission, allowed_groups=frozenset({"sales"}))
    monkeypatch.setattr(rules._providers["work"], "_admission", admission)
    await pass_half_a_day(api, monkeypatch)
    assert await suspended(api) == {id_}


@ONLY_SQLITE
async def test_suspension_by_the_provider_ends_with_a_sign_in_but_not_an_admins(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    provider.describe("ann")
    ann = await signed_in(api)
    id_ = (await me(ann))["id"]
    provider.replaced = {"/token/": lambda it: {"error": "invalid_grant"}}
    for _ in range(2):
        await pass_half_a_day(api, monkeypatch)
    assert await suspended(api) == {id_}
    refusal(await ann.get("/api/me"), 401, "UNAUTHENTICATED")
    provider.tell_truth()
    await sign_in(ann)
    assert (await me(ann))["id"] == id_
    assert await suspended(api) == set()
    admin = api.as_user("root", admin=True)
    await admin.post(f"/api/admin/users/{id_}/suspend")
    assert problem(await sign_in(browser(api))) == "suspended"


@ONLY_SQLITE
async def test_without_a_refresh_token_a_session_ends_after_a_day(api: Api, provider: Provider):
    provider.describe("ann")
    provider.replaced = {"/token/": lambda it: {name: it[name] for name in it if name != "refresh_token"}}
    ann = await signed_in(api)
    (session,) = (await ann.get("/api/me/sessions")).json()["items"]
    assert session["endsAt"][:8] == session["createdAt"][:8]
    provider.replaced = {"/token/": lambda it: it | {"refresh_expires_in": 1800}}  # as Keycloak says it
    await sign_in(ann)
    assert await api.store.grants.take_due("work", 1 << 50, again_at=1 << 50) is None
    provider.tell_truth()
    await sign_in(ann)
    grant = await api.store.grants.take_due("work", 1 << 50, again_at=1 << 50)
    assert grant is not None
    assert grant.refresh_token.reveal() not in grant.refresh_token.stored_form


@ONLY_SQLITE
async def test_sessions_end_if_nobody_can_confirm_their_user_for_a_day(
    api: Api, provider: Provider, monkeypatch: pytest.MonkeyPatch
):
    provider.describe("ann")
    ann = await signed_in(api)
    id_ = (await me(ann))["id"]
    provider.is_down = True
    for _ in range(2):
        await pass_half_a_day(api, monkeypatch)
    (await api.app.services()).sessions.forget_user(id_)  # instead of two seconds
    refusal(await ann.get("/api/me"), 401, "UNAUTHENTICATED")


@ONLY_POSTGRES
async def test_any_node_finishes_a_sign_in(api: Api, provider: Provider, database_url: str, tmp_path: Path):
    provider.describe("ann")
    other = create_app(settings_with(provider, database_url, tmp_path / "other"))
    async with other.lifespan():
        there = CheckedApi(other, (await other.services()).store, [])
        ann = browser(api)
        back = await at_provider(await begun(ann), "ann")
        on_other = browser(there)
        on_other.cookies = ann.cookies
        await come_back(on_other, back)
        ann.cookies = on_other.cookies
        assert (await me(ann))["id"].startswith("work|")
        for client in there.clients:
            await client.aclose()


@ONLY_SQLITE
async def test_address_that_begins_too_often_has_to_wait(api: Api, provider: Provider):
    stranger = browser(api)
    for _ in range(60):
        await begun(stranger)
    assert problem(await stranger.get(START)) == "too_many"


@ONLY_SQLITE
async def test_doctor_says_what_is_wrong_with_a_provider(
    provider: Provider, tmp_path: Path, database_url: str
):
    settings = settings_with(provider, database_url, tmp_path / "data", anyone=True)

    async def said() -> list[tuple[str, str]]:
        return [(it.verdict, f"{it.message} {it.advice or ''}") async for it in check_providers(settings)]

    for verdict, message in await said():
        assert verdict == "ok"
        assert f"{ORIGIN}/oauth/sign-in/" in message
    offered = ["openid", "offline_access"]
    provider.replaced = {"/openid-configuration": lambda it: it | {"scopes_supported": offered}}
    assert all(it[0] == "warning" and "Add `offline_access`" in it[1] for it in await said())
    provider.replaced = {"/openid-configuration": lambda it: it | {"issuer": f"{it['issuer']}/"}}
    assert all(it[0] == "problem" and "to the letter" in it[1] for it in await said())
    provider.replaced = {"/openid-configuration": lambda it: it | {"token_endpoint": "ftp://x"}}
    assert all(it[0] == "problem" and "`token_endpoint`" in it[1] for it in await said())
    provider.is_down = True
    assert all(it[0] == "problem" and "can't be reached" in it[1] for it in await said())
