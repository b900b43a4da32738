"""Every way to sign in, and every way to be refused; a provider's keys are in test_key_set.py."""

import base64
import time
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import HTTPConnection

from tests.http.signing_in import (
    ALICE,
    GARBAGE,
    NO_ALGORITHMS,
    ROOT,
    SECRET,
    claims,
    handmade,
    refusal,
    request,
    rsa_token,
    with_token,
)
from threadkeep.domain.errors import SettingsError, Unauthenticated
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import AdminClaim, User, UserRole
from threadkeep.http.sign_in.access_tokens import Expected, issue_token
from threadkeep.http.sign_in.bearer import bearer_token
from threadkeep.http.sign_in.by_token import KeySetSignIn, SharedSecretSignIn
from threadkeep.http.sign_in.methods import HostSignIn, LocalSignIn, sign_in
from threadkeep.settings import Settings
from threadkeep.wire.inside import INSIDE


def secret_token(**changes: object) -> str:
    return jwt.encode(claims(**changes), SECRET, algorithm="HS256")


# The header


@pytest.mark.parametrize("value", ["Bearer a.b.c", "bearer a.b.c", "BEARER   a.b.c", " Bearer a.b.c "])
def test_bearer_token_is_read_whatever_the_case_of_the_scheme(value: str) -> None:
    assert bearer_token(request(value)) == "a.b.c"


def test_request_without_the_header_has_no_token() -> None:
    assert bearer_token(request()) is None


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", "Bearer ", "a.b.c", "Basic YTpi", "Bearer a b", "Bearer a, Bearer b", "Bearer é"],
)
def test_malformed_header_is_refused(value: str) -> None:
    with pytest.raises(Unauthenticated, match="exactly one header"):
        bearer_token(request(value))


@pytest.mark.parametrize("second", ["Bearer a", "Bearer b", "Basic b", ""])
def test_repeated_header_is_refused(second: str) -> None:
    with pytest.raises(Unauthenticated, match="exactly one header"):
        bearer_token(request("Bearer a", second))


# Without configuration, and inside a host application


async def test_without_configuration_our_own_process_is_the_local_admin() -> None:
    way = sign_in(Settings())
    for connection in (request(), request("Bearer junk"), request("Basic a", "Basic b")):
        connection.scope["extensions"] = {INSIDE: {}}
        assert await way.user(connection) == User(UserId("local"), UserRole.ADMIN)
    await way.close()


@pytest.mark.parametrize(("answer", "user"), [("alice", ALICE), (ALICE, ALICE), (ROOT, ROOT)])
async def test_host_application_names_the_user(answer: str | User, user: User) -> None:
    async def later(request: HTTPConnection) -> str | User:
        return answer

    for way in (HostSignIn(lambda _request: answer), HostSignIn(later)):
        assert await way.user(request()) == user


async def test_host_application_sees_the_request() -> None:
    way = HostSignIn(lambda connection: connection.headers["authorization"])
    assert (await way.user(request("carol"))).id == "carol"


@pytest.mark.parametrize("answer", [None, "", " \u3000", "x" * 256, "a\x00b", User(UserId(""))])
async def test_host_application_without_a_usable_user_is_refused(answer: str | User | None) -> None:
    await refusal(HostSignIn(lambda _request: answer), request())


@pytest.mark.parametrize("answer", [7, b"alice", ["alice"], True])
async def test_host_application_that_returns_something_else_is_told(answer: Any) -> None:
    with pytest.raises(TypeError, match="current_user must return"):
        await HostSignIn(lambda _request: answer).user(request())


async def test_settings_choose_the_way_to_sign_in() -> None:
    def host(_request: object) -> str:
        return "alice"

    chosen = {
        LocalSignIn: sign_in(Settings()),
        SharedSecretSignIn: sign_in(Settings(jwt_secret=SECRET)),
        KeySetSignIn: sign_in(
            Settings(jwks_url="https://id.example/keys", jwt_issuer="https://id.example", jwt_audience="chat")
        ),
        HostSignIn: sign_in(Settings(jwt_secret=SECRET), host),
    }
    for expected, way in chosen.items():
        assert type(way) is expected
        await way.close()


async def test_settings_hand_on_issuer_and_audience() -> None:
    way = sign_in(Settings(jwt_secret=SECRET, jwt_issuer="us", jwt_audience="chat"))
    assert await way.user(with_token(issue_token(SECRET, ROOT, 60, Expected("us", "chat")))) == ROOT
    assert "`iss`" in await refusal(way, with_token(issue_token(SECRET, ROOT, 60, Expected(audience="chat"))))
    assert "`aud`" in await refusal(way, with_token(issue_token(SECRET, ROOT, 60, Expected("us"))))


@pytest.mark.parametrize("given", [{}, {"jwt_issuer": "https://id.example"}, {"jwt_audience": "chat"}])
def test_key_set_without_issuer_and_audience_lets_nobody_in(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"JWT_ISSUER and THREADKEEP_JWT_AUDIENCE"):
        sign_in(Settings(jwks_url="https://id.example/keys", **given))


@pytest.mark.parametrize(
    ("claim", "given"),
    [
        ("role=admin", {"role": "admin"}),
        ("groups=ops", {"groups": ["users", "ops"]}),
        ("realm_access.roles=threadkeep-admin", {"realm_access": {"roles": ["threadkeep-admin"]}}),
        ("https://app.example/role=admin", {"https://app.example/role": "admin"}),
        ("is_admin=true", {"is_admin": True}),
        ("a=b=c", {"a=b": "c"}),
    ],
)
async def test_operator_says_which_claim_makes_an_admin(claim: str, given: dict[str, Any]) -> None:
    way = sign_in(Settings(jwt_secret=SECRET, admin_claim=claim))
    assert (await way.user(with_token(secret_token(**given)))).is_admin
    assert (
        await way.user(with_token(issue_token(SECRET, ROOT, 60, Expected(admin=AdminClaim.read(claim)))))
    ) == ROOT
    others: list[dict[str, Any]] = [
        {}, {"role": "user"}, {"groups": "opsy"}, {"groups": [["ops"]]}, {"realm_access": "roles"},
        {"realm_access": {"roles": "x"}}, {"realm_access.roles": []}, {"is_admin": "yes"}, {"is_admin": 1},
    ]  # fmt: skip
    for other in others:
        assert not (await way.user(with_token(secret_token(**other)))).is_admin


async def test_operator_who_configures_another_claim_is_not_deceived_by_the_usual_one() -> None:
    for claim in ("groups=ops", "off"):
        way = sign_in(Settings(jwt_secret=SECRET, admin_claim=claim))
        assert await way.user(with_token(secret_token(role="admin"))) == ALICE
    with pytest.raises(SettingsError, match="`off`"):
        issue_token(SECRET, ROOT, 60, Expected(admin=None))


# A shared secret


@pytest.mark.parametrize("user", [ALICE, ROOT, User(UserId("用户 1@example"))])
async def test_issued_token_signs_its_user_in(user: User) -> None:
    assert await SharedSecretSignIn(SECRET).user(with_token(issue_token(SECRET, user, 60))) == user


async def test_request_without_a_token_is_refused() -> None:
    assert "missing" in await refusal(SharedSecretSignIn(SECRET), request())


@pytest.mark.parametrize("role", ["Admin", "ADMIN", "user", "", True, 1, [["admin"]], {"admin": True}])
async def test_only_the_exact_admin_claim_gives_the_admin_role(role: object) -> None:
    assert await SharedSecretSignIn(SECRET).user(with_token(secret_token(role=role))) == ALICE
    assert (await SharedSecretSignIn(SECRET).user(with_token(secret_token(role="admin")))).is_admin


async def test_expired_token_is_refused_after_the_leeway() -> None:
    way, now = SharedSecretSignIn(SECRET), int(time.time())
    assert await way.user(with_token(secret_token(exp=now - 10))) == ALICE
    assert "expired" in await refusal(way, with_token(secret_token(exp=now - 31)))
    assert "expired" in await refusal(way, with_token(issue_token(SECRET, ALICE, -3600)))


@pytest.mark.parametrize("claim", ["nbf", "iat"])
async def test_token_from_the_future_is_refused_after_the_leeway(claim: str) -> None:
    way, now = SharedSecretSignIn(SECRET), int(time.time())
    assert await way.user(with_token(secret_token(**{claim: now + 10}))) == ALICE
    assert "not valid yet" in await refusal(way, with_token(secret_token(**{claim: now + 50})))


@pytest.mark.parametrize("claim", ["exp", "sub"])
async def test_token_without_a_required_claim_is_refused(claim: str) -> None:
    message = await refusal(SharedSecretSignIn(SECRET), with_token(secret_token(**{claim: None})))
    assert f"`{claim}`" in message


@pytest.mark.parametrize("sub", ["", " \n", "\u200b", "x" * 256, "a\x00b", 7, ["alice"], {"id": 1}, False])
async def test_token_with_an_unusable_subject_is_refused(sub: object) -> None:
    await refusal(
        SharedSecretSignIn(SECRET), with_token(handmade({"alg": "HS256"}, claims(sub=sub), SECRET.encode()))
    )


@pytest.mark.parametrize("exp", ["soon", [], {}, "NaN", 1e400, -1e400, float("nan"), True])
async def test_token_with_an_unusable_expiry_is_refused(exp: object) -> None:
    await refusal(
        SharedSecretSignIn(SECRET), with_token(handmade({"alg": "HS256"}, claims(exp=exp), SECRET.encode()))
    )


@pytest.mark.parametrize("audience", ["other", ["other"], ["other", 7], "chat2", "cha", {"chat": 1}])
async def test_token_for_another_audience_is_refused(audience: object) -> None:
    way = SharedSecretSignIn(SECRET, Expected(audience="chat"))
    assert "audience" in await refusal(way, with_token(secret_token(aud=audience)))
    assert "`aud`" in await refusal(way, with_token(secret_token()))
    assert await way.user(with_token(secret_token(aud=["other", "chat"]))) == ALICE


async def test_any_audience_is_accepted_where_none_is_configured() -> None:
    for audience in ("chat", ["a", "b"], None):
        assert await SharedSecretSignIn(SECRET).user(with_token(secret_token(aud=audience))) == ALICE


@pytest.mark.parametrize("issuer", ["other", "u", "us2", ["us"], 7])
async def test_token_of_another_issuer_is_refused(issuer: object) -> None:
    way = SharedSecretSignIn(SECRET, Expected(issuer="us"))
    token = handmade({"alg": "HS256"}, claims(iss=issuer), SECRET.encode())
    assert "issuer" in await refusal(way, with_token(token))
    assert "`iss`" in await refusal(way, with_token(secret_token()))
    assert await way.user(with_token(secret_token(iss="us"))) == ALICE


async def test_token_signed_with_another_secret_is_refused() -> None:
    token = issue_token(SECRET + "!", ROOT, 60)
    assert "not signed" in await refusal(SharedSecretSignIn(SECRET), with_token(token))


async def test_changed_token_is_refused() -> None:
    header, _, signature = issue_token(SECRET, ALICE, 60).split(".")
    _, admin, _ = issue_token(SECRET + "!", ROOT, 60).split(".")
    assert "not signed" in await refusal(
        SharedSecretSignIn(SECRET), with_token(f"{header}.{admin}.{signature}")
    )


@pytest.mark.parametrize("algorithm", NO_ALGORITHMS)
async def test_unsigned_token_is_refused_where_a_secret_is_shared(algorithm: object) -> None:
    token = handmade({"alg": algorithm}, claims(), None)
    assert "not signed" in await refusal(SharedSecretSignIn(SECRET), with_token(token))


@pytest.mark.parametrize("algorithm", ["HS384", "HS512"])
async def test_only_hs256_is_accepted_where_a_secret_is_shared(algorithm: str) -> None:
    long = SECRET * 2
    token = jwt.encode(claims(), long, algorithm=algorithm)
    assert "not signed" in await refusal(SharedSecretSignIn(long), with_token(token))
    assert "not signed" in await refusal(SharedSecretSignIn(long), with_token(rsa_token()))


@pytest.mark.parametrize("token", GARBAGE)
async def test_garbage_is_refused_where_a_secret_is_shared(token: str) -> None:
    await refusal(SharedSecretSignIn(SECRET), with_token(token))


async def test_deeply_nested_token_is_refused() -> None:
    deep = base64.urlsafe_b64encode(b"[" * 30_000).rstrip(b"=").decode()
    await refusal(SharedSecretSignIn(SECRET), with_token(f"{deep}.e30.AAAA"))


_leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_branch = _leaf | st.lists(_leaf, max_size=3) | st.dictionaries(st.text(), _leaf, max_size=3)
_json = _branch | st.lists(_branch, max_size=3) | st.dictionaries(st.text(), _branch, max_size=3)


@given(st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64"]), _json), _json, st.booleans())
async def test_no_token_causes_anything_but_a_refusal(
    header: dict[str, Any], value: Any, as_claims: bool
) -> None:
    payload = (
        dict.fromkeys(["sub", "exp", "aud", "iss", "nbf", "iat", "jti", "role"], value)
        if as_claims
        else value
    )
    token = handmade({"alg": "HS256"} | header, payload, SECRET.encode())
    for way in (SharedSecretSignIn(SECRET), SharedSecretSignIn(SECRET, Expected("us", "chat"))):
        with pytest.raises(Unauthenticated):
            await way.user(with_token(token))


@pytest.mark.parametrize("secret", ["short", "", "x" * 31, "\udcff" * 40])
async def test_unusable_secret_is_a_settings_error(secret: str) -> None:
    with pytest.raises(SettingsError, match="THREADKEEP_JWT_SECRET") as caught:
        SharedSecretSignIn(secret)
    assert not secret or secret not in caught.value.message
    with pytest.raises(SettingsError):
        issue_token(secret, ALICE, 60)
