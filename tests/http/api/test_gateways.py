"""Gateways that admins connect over HTTP: saved, masked, tested, used at once, refused."""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import ONLY_POSTGRES, ONLY_SQLITE, SECRET, Api, secret_key_for
from tests.http.calls import Json, items, new_agent, new_conversation, refusal
from tests.talking import JSON
from threadkeep import Settings, create_app
from threadkeep.domain.secret import MASK
from threadkeep.storage.database.bus import LocalBus, PostgresBus
from threadkeep.testing import Gate, Say, ScriptedModel, Status, Wait
from threadkeep.testing.waiting import PATIENCE_S

KEY = "sk-the-only-key-4711"
PATH = "/api/admin/gateways"
LARGE = {"name": "large", "contextTokens": 9000, "price": {"input": "3.00", "output": 15}}


@pytest.fixture
def admin(api: Api) -> httpx.AsyncClient:
    return api.as_user("root", admin=True)


@pytest.fixture
def provider() -> Iterator[ScriptedModel]:
    """A provider with two models, which accepts one key."""
    with ScriptedModel(models=("small", "large"), key=KEY) as provider:
        yield provider


def body_for(provider: ScriptedModel, **changes: object) -> Json:
    return {
        "name": "work",
        "kind": "openai",
        "url": f"{provider.url}/v1",
        "apiKey": KEY,
        "models": ["small", LARGE],
    } | changes


async def connect(admin: httpx.AsyncClient, provider: ScriptedModel, **changes: object) -> Json:
    response = await admin.post(PATH, json=body_for(provider, **changes))
    assert response.status_code == 201, response.text
    return response.json()


async def ask(client: httpx.AsyncClient, conversation: str, **more: str) -> httpx.Response:
    path = f"/api/conversations/{conversation}/messages?wait=true"
    return await client.post(path, json={"content": "Why?", **more}, headers=JSON)


async def states(client: httpx.AsyncClient) -> dict[str, Json]:
    return {it["name"]: it for it in (await client.get("/readyz")).json()["gateways"]}


@asynccontextmanager
async def node(database_url: str, folder: Path, **settings: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """An admin of one of the nodes on a database; its settings have no model unless they say so."""
    common: dict[str, Any] = {"gateway": "openai", "secret_key": secret_key_for(database_url)} | settings
    app = create_app(
        Settings.load(
            {},
            data=folder / "data",
            database_url=database_url,
            jwt_secret=SECRET,
            embedding_url="off",
            **common,
        )
    )
    async with app.lifespan():
        api = Api(app, (await app.services()).store, [])
        async with api.as_user("root", admin=True) as admin:
            yield admin


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Waits until it holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110 - another node tells nobody here
            await asyncio.sleep(0.01)


async def test_connected_gateway_answers_at_once_and_its_key_is_never_shown(
    api: Api,
    admin: httpx.AsyncClient,
    alice: httpx.AsyncClient,
    provider: ScriptedModel,
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.DEBUG)
    conversation = (await new_conversation(alice, (await new_agent(alice))["id"], title="t"))["id"]
    refusal(await ask(alice, conversation), 409, "GATEWAY_NOT_CONFIGURED")
    response = await admin.post(PATH, json=body_for(provider))
    shown = response.json()
    assert response.headers["etag"] == '"1"'
    assert (shown["apiKey"], shown["source"], shown["status"]) == (MASK, "admin", "unknown")
    assert shown["models"][0] == {"name": "small"}
    price = {"input": "3.00", "cachedInput": "3.00", "cacheWrite": "3.00", "output": "15.00"}
    assert shown["models"][1] == {"name": "large", "contextTokens": 9000, "price": price}
    reply = await ask(alice, conversation)
    assert reply.json()["model"] == "work/small", reply.text
    assert provider.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert (await admin.get(f"{PATH}/work")).json()["status"] == "connected"
    choices = (await alice.get("/api/models")).json()["items"]
    assert [(it["id"], it["default"]) for it in choices] == [("work/small", True), ("work/large", False)]
    everything = [response.text, (await admin.get(PATH)).text, (await admin.get("/api/admin/audit")).text]
    assert KEY not in "".join(everything) + caplog.text
    (entry,) = [it for it in await items(admin, "/api/admin/audit") if it["action"] == "create_gateway"]
    assert entry["details"] == {"gateway": "work"}


async def test_only_admins_see_and_change_gateways(
    admin: httpx.AsyncClient, alice: httpx.AsyncClient, provider: ScriptedModel
):
    await connect(admin, provider)
    body = body_for(provider)
    unsaved = {name: it for name, it in body.items() if name != "name"}
    for response in (
        await alice.get(PATH),
        await alice.post(PATH, json=body),
        await alice.get(f"{PATH}/work"),
        await alice.patch(f"{PATH}/work", json={"models": []}),
        await alice.delete(f"{PATH}/work"),
        await alice.post(f"{PATH}/work/test"),
        await alice.post(f"{PATH}/test", json=unsaved),
        await alice.get(f"{PATH}/unknown"),
    ):
        refusal(response, 403, "FORBIDDEN")
    refusal(await admin.get(f"{PATH}/unknown"), 404, "GATEWAY_NOT_FOUND")
    refusal(await admin.delete(f"{PATH}/unknown"), 404, "GATEWAY_NOT_FOUND")


async def test_change_applies_at_once_and_only_to_the_version_that_was_read(
    admin: httpx.AsyncClient, alice: httpx.AsyncClient, provider: ScriptedModel
):
    await connect(admin, provider)
    patched = await admin.patch(
        f"{PATH}/work", json={"models": ["large"], "defaultModel": "large"}, headers={"If-Match": '"1"'}
    )
    assert (patched.headers["etag"], patched.json()["apiKey"]) == ('"2"', MASK)
    assert [it["id"] for it in (await alice.get("/api/models")).json()["items"]] == ["work/large"]
    stale = {"If-Match": '"1"'}
    refusal(await admin.patch(f"{PATH}/work", json={"models": []}, headers=stale), 412, "PRECONDITION_FAILED")
    refusal(await admin.delete(f"{PATH}/work", headers=stale), 412, "PRECONDITION_FAILED")
    conversation = (await new_conversation(alice, title="t"))["id"]
    assert (await ask(alice, conversation)).json()["model"] == "work/large"  # with the stored key
    (entry,) = [it for it in await items(admin, "/api/admin/audit") if it["action"] == "update_gateway"]
    assert entry["details"] == {"gateway": "work", "changed": ["models", "default_model"]}


@ONLY_SQLITE
async def test_stored_key_goes_to_no_other_address(admin: httpx.AsyncClient, provider: ScriptedModel):
    await connect(admin, provider)
    elsewhere = "http://127.0.0.1:1/v1"
    for change in ({"url": elsewhere}, {"url": None}, {"kind": "anthropic"}, {"apiKey": MASK, "url": None}):
        refusal(await admin.patch(f"{PATH}/work", json=change), 422, "INVALID_REQUEST", "apiKey")
    masked = body_for(provider, name="b", apiKey=MASK)
    refusal(await admin.post(PATH, json=masked), 422, "INVALID_REQUEST", "apiKey")
    moved = {"url": f"{provider.url}/v1/", "apiKey": KEY}
    assert (await admin.patch(f"{PATH}/work", json=moved)).status_code == 200
    assert (await admin.patch(f"{PATH}/work", json={"apiKey": None})).json()["apiKey"] is None


REFUSED: list[tuple[Json, str]] = [
    ({"name": "default"}, "name"),
    ({"name": "test"}, "name"),
    ({"name": "a/b"}, "name"),
    ({"name": ".."}, "name"),
    ({"name": ""}, "name"),
    ({"kind": "local"}, "kind"),
    ({"kind": "telepathy"}, "kind"),
    ({"url": "ftp://example.com"}, "url"),
    ({"url": "https://user:pass@example.com"}, "url"),
    ({"url": "http://169.254.169.254/v1"}, "url"),
    ({"url": "http://169.254.169.254./v1"}, "url"),
    ({"url": "http://[fe80::1]/v1"}, "url"),
    ({"url": "http://[fd00:ec2::254]/v1"}, "url"),
    ({"url": "http://0.0.0.0:11434"}, "url"),
    ({"url": "http://[::]:11434"}, "url"),
    ({"url": "http://0xa9fea9fe/"}, "url"),
    ({"url": "http://[::ffff:169.254.169.254]/"}, "url"),
    ({"url": "http://224.0.0.1/"}, "url"),
    ({"url": "http://10.66.0.1/v1"}, "url"),
    ({"apiKey": "密钥"}, "apiKey"),
    ({"models": []}, "models"),
    ({"models": ["a", "a"]}, "models"),
    ({"models": [" "]}, "models"),
    ({"models": [{"name": "m", "price": {"input": "-1", "output": 1}}]}, "models"),
    ({"models": [{"name": "m", "price": {"input": "0.0000001", "output": 1}}]}, "models"),
    ({"models": [{"name": "m", "contextTokens": 0}]}, "models[0].contextTokens"),
    ({"models": [{"name": "m", "colour": "red"}]}, "models[0].colour"),
    ({"apikey": "x"}, "apikey"),
]


@ONLY_SQLITE
async def test_what_could_not_work_or_is_not_allowed_is_refused_by_name(
    database_url: str, tmp_path: Path, provider: ScriptedModel
):
    async with node(database_url, tmp_path, denied_networks=("10.66.0.0/16",)) as admin:
        for changes, param in REFUSED:
            response = await admin.post(PATH, json=body_for(provider) | changes)
            error = response.json()["error"]
            assert (response.status_code, error.get("param")) == (422, param), (changes, error)
        assert (await admin.get(PATH)).json()["items"] == []
        await connect(admin, provider)
        refusal(await admin.post(PATH, json=body_for(provider)), 409, "CONFLICT", "name")


@ONLY_SQLITE
async def test_name_that_leads_to_a_forbidden_address_later_is_not_connected_to(
    database_url: str, tmp_path: Path, provider: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    """DNS rebinding: the address is checked when it is saved, and again with every connection."""
    resolved: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: object) -> list[object]:
        resolved.append(host)
        address = "127.0.0.1" if len(resolved) == 1 else "169.254.169.254"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    async with node(database_url, tmp_path) as admin:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo, raising=False)
        url = provider.url.replace("127.0.0.1", "models.example")
        await connect(admin, provider, url=url)
        tested = (await admin.post(f"{PATH}/work/test")).json()
    assert set(resolved) == {"models.example"}
    assert not tested["ok"]
    assert "isn't allowed" in tested["error"]
    assert not provider.paths


@ONLY_SQLITE
async def test_gateways_of_the_settings_are_listed_and_read_only(
    database_url: str, tmp_path: Path, provider: ScriptedModel
):
    own = {"gateway_url": provider.url, "gateway_api_key": KEY, "model": "small"}
    async with node(database_url, tmp_path, **own) as admin:
        (shown,) = (await admin.get(PATH)).json()["items"]
        assert (shown["name"], shown["source"], shown["apiKey"]) == ("default", "settings", MASK)
        assert "version" not in shown
        refusal(await admin.patch(f"{PATH}/default", json={"models": []}), 409, "CONFLICT")
        refusal(await admin.delete(f"{PATH}/default"), 409, "CONFLICT")
        found = (await admin.post(f"{PATH}/default/test")).json()
        assert found == {"ok": True, "models": ["small", "large"]}


PROBLEMS: list[tuple[Json, str]] = [
    ({"apiKey": "sk-wrong"}, "rejected the API key"),
    ({"apiKey": None}, "rejected the API key"),
    ({"url": "http://127.0.0.1:1/v1"}, "Couldn't connect"),
    ({"models": ["unknown"], "script": Status(404, "The model `unknown` does not exist")}, "does not exist"),
]


@ONLY_SQLITE
async def test_test_before_saving_says_in_words_what_is_wrong(
    admin: httpx.AsyncClient, provider: ScriptedModel
):
    good = {name: it for name, it in body_for(provider).items() if name not in ("name", "models")}
    assert (await admin.post(f"{PATH}/test", json=good)).json() == {"ok": True, "models": ["small", "large"]}
    assert not provider.requests  # nothing was asked, hence nothing is billed
    for changes, words in PROBLEMS:
        if script := changes.get("script"):
            provider.script([script])
        given = good | {name: it for name, it in changes.items() if name != "script"}
        found = (await admin.post(f"{PATH}/test", json=given)).json()
        assert not found["ok"]
        assert words in found["error"], found
        assert KEY not in found["error"]
    provider.models = None
    for named in ({}, {"models": ["small"]}):
        assert (await admin.post(f"{PATH}/test", json=good | named)).json() == {"ok": True, "models": []}
    assert (await admin.get(PATH)).json()["items"] == []


@ONLY_SQLITE
async def test_readiness_tells_each_gateway_without_the_providers_words_and_without_waiting(
    api: Api, admin: httpx.AsyncClient, provider: ScriptedModel
):
    anybody = api.client()
    await connect(admin, provider, apiKey="sk-wrong")
    await connect(admin, provider, name="good")
    assert {it["status"] for it in (await states(admin)).values()} == {"unknown"}

    async def are_looked_at() -> bool:
        return "unknown" not in {it["status"] for it in (await states(admin)).values()}

    await eventually(are_looked_at)
    assert (await states(admin))["good"]["status"] == "connected"
    for stranger in (anybody, api.as_user("alice")):
        response = await stranger.get("/readyz")
        assert (response.status_code, response.json()["status"]) == (200, "degraded")
        assert response.json()["gateways"] == []
    assert (await states(admin))["work"] == {
        "name": "work",
        "status": "failing",
        "reason": "The model provider rejected the API key.",
    }
    metrics = (await admin.get("/metrics")).text
    assert 'threadkeep_gateway_failing{gateway="work"} 1\n' in metrics
    assert 'threadkeep_gateway_failing{gateway="good"} 0\n' in metrics
    looks = provider.paths.count("/v1/models?limit=1000")
    for _ in range(5):
        await anybody.get("/readyz")
    assert provider.paths.count("/v1/models?limit=1000") == looks == 2


async def test_model_of_a_deleted_gateway_is_a_clear_error_and_a_running_turn_finishes(
    admin: httpx.AsyncClient, alice: httpx.AsyncClient, provider: ScriptedModel
):
    await connect(admin, provider)
    await connect(admin, provider, name="other")
    agent = await new_agent(alice, model="work/large")
    conversation = (await new_conversation(alice, agent["id"], title="t"))["id"]
    gate = Gate()
    provider.script([Say("Before, "), Wait(gate), Say("after.")])
    turn = asyncio.create_task(ask(alice, conversation))
    await provider.until_requests(1)
    assert (await admin.delete(f"{PATH}/work")).status_code == 204
    gate.open()
    assert (await turn).json()["content"] == "Before, after."
    error = refusal(await ask(alice, conversation), 404, "MODEL_NOT_FOUND", "model")
    assert "work/large" in error["message"]
    assert (await alice.get(f"/api/models?agentId={agent['id']}")).json()["items"] == []


async def test_what_was_meant_for_a_deleted_gateway_never_goes_to_one_that_lists_the_same(
    admin: httpx.AsyncClient, alice: httpx.AsyncClient, provider: ScriptedModel
):
    names = ["main", "work/large", "work/small"]
    await connect(admin, provider)
    with ScriptedModel() as other:
        await connect(admin, other, name="other", models=names, apiKey="sk-scripted")
        settings = {"models": ["*"], "fallbackModels": ["work/small"]}
        agent = (await new_agent(alice, model="work/large", settings=settings))["id"]
        conversation = (await new_conversation(alice, agent, title="t"))["id"]
        gate = Gate()
        provider.script([Wait(gate), Say("Before.")])
        turn = asyncio.create_task(ask(alice, conversation))
        await provider.until_requests(1)
        assert (await ask(alice, conversation, whenBusy="queue", model="small")).status_code == 202
        assert (await admin.patch(f"{PATH}/other", json={"models": [*names, "small"]})).status_code == 200
        assert (await admin.delete(f"{PATH}/work")).status_code == 204
        gate.open()
        assert (await turn).json()["content"] == "Before."
        (waiting,) = (await alice.get(f"/api/conversations/{conversation}")).json()["queued"]
        assert (waiting["model"], waiting["held"]) == ("work/small", True)
        fresh = (await new_conversation(alice, agent, title="t"))["id"]
        for asked in ({}, {"model": "work/large"}, {"model": "work/small"}):
            refusal(await ask(alice, fresh, **asked), 404, "MODEL_NOT_FOUND", "model")
        copied = await alice.post(f"/api/agents/{agent}/duplicate")
        refusal(copied, 404, "MODEL_NOT_FOUND", "model")
        other.script([Status(429, retry_after="3600")])
        await ask(alice, fresh, model="other/main")
        assert [it.body["model"] for it in other.requests] == ["main"]


async def test_agent_runs_on_after_its_model_was_removed_from_the_list(
    admin: httpx.AsyncClient, alice: httpx.AsyncClient, provider: ScriptedModel
):
    await connect(admin, provider)
    agent = await new_agent(alice, model="large")
    assert agent["model"] == "work/large"
    conversation = (await new_conversation(alice, agent["id"], title="t"))["id"]
    assert (await admin.patch(f"{PATH}/work", json={"models": ["small"]})).status_code == 200
    assert (await ask(alice, conversation)).json()["model"] == "work/large"
    refusal(
        await alice.post("/api/agents", json={"name": "a", "model": "large"}), 404, "MODEL_NOT_FOUND", "model"
    )


@ONLY_POSTGRES
async def test_change_reaches_another_node_and_a_turn_there_ends_as_it_began(
    database_url: str, tmp_path: Path, provider: ScriptedModel
):
    async with node(database_url, tmp_path / "a") as one, node(database_url, tmp_path / "b") as other:
        await connect(one, provider)

        async def is_there() -> bool:
            return bool((await other.get("/api/models")).json()["items"])

        await eventually(is_there)
        conversation = (await new_conversation(other, title="t"))["id"]
        gate = Gate()
        provider.script([Say("As it "), Wait(gate), Say("began.")])
        turn = asyncio.create_task(ask(other, conversation))
        await provider.until_requests(1)
        with ScriptedModel(models=("new",), key="sk-new") as moved:
            change = {"url": moved.url, "apiKey": "sk-new", "models": ["new"]}
            assert (await one.patch(f"{PATH}/work", json=change)).status_code == 200

            async def is_changed() -> bool:
                return [it["id"] for it in (await other.get("/api/models")).json()["items"]] == ["work/new"]

            await eventually(is_changed)
            gate.open()
            assert (await turn).json()["content"] == "As it began."
            assert (await ask(other, conversation)).json()["model"] == "work/new"
            assert (await one.delete(f"{PATH}/work")).status_code == 204

            async def is_gone() -> bool:
                return not (await other.get("/api/models")).json()["items"]

            await eventually(is_gone)


@ONLY_POSTGRES
async def test_change_whose_signal_was_lost_is_found_by_polling(
    database_url: str, tmp_path: Path, provider: ScriptedModel, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("threadkeep.services.live_gateways.POLL_S", 0.05)
    monkeypatch.setattr(PostgresBus, "publish", LocalBus.publish)
    async with node(database_url, tmp_path / "a") as one, node(database_url, tmp_path / "b") as other:
        await connect(one, provider)

        async def is_there() -> bool:
            return bool((await other.get("/api/models")).json()["items"])

        await eventually(is_there)


async def test_key_that_can_no_longer_be_decrypted_fails_alone(
    database_url: str, tmp_path: Path, provider: ScriptedModel
):
    async with node(database_url, tmp_path, secret_key="the-first-key-" * 3) as admin:
        await connect(admin, provider)
    async with node(database_url, tmp_path, secret_key="another-key-" * 3) as admin:
        await connect(admin, provider, name="fresh")
        state = (await states(admin))["work"]
        assert state["status"] == "failing"
        assert "can't be decrypted" in state["reason"]
        assert (await admin.get(f"{PATH}/work")).json()["status"] == "failing"
        assert [it["gateway"] for it in (await admin.get("/api/models")).json()["items"]] == ["fresh"] * 2
        agent = await new_agent(admin)
        conversation = (await new_conversation(admin, agent["id"], title="t"))["id"]
        assert (await ask(admin, conversation)).json()["model"] == "fresh/small"
        entered = await admin.patch(f"{PATH}/work", json={"apiKey": KEY})
        assert entered.status_code == 200, entered.text
        assert (await states(admin))["work"]["status"] == "unknown"
