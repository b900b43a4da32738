"""ID tokens: signed by the provider, for us, for this sign-in."""

from collections.abc import Mapping
from typing import Any

import jwt

from threadkeep.domain.errors import SignInUnavailable, Unauthenticated
from threadkeep.domain.sign_in.identity import SignInProblem
from threadkeep.http.sign_in.access_tokens import KEY_SET_ALGORITHMS, LEEWAY_S
from threadkeep.http.sign_in.key_set import KeySet

_jwt = jwt.PyJWT({"require": ["exp", "iat", "iss", "aud", "sub"], "enforce_minimum_key_length": True})


async def verified_claims(
    token: str, keys: KeySet, *, issuer: str, client_id: str, nonce: str | None
) -> Mapping[str, Any]:
    """The claims of an ID token; SignInProblem if anything is wrong. A refreshed one needs no nonce."""
    try:
        claims = await _signed_claims(token, keys, issuer, client_id)
    except SignInUnavailable:
        raise SignInProblem("unreachable", "Its keys can't be fetched.") from None
    except (jwt.PyJWTError, Unauthenticated, RecursionError, ValueError, TypeError, OverflowError) as exc:
        # Not its text: it can quote the token. The last three are what PyJWT makes of odd values.
        raise _wrong(type(exc).__name__) from None
    if not isinstance(claims["sub"], str):
        raise _wrong("its subject is no text")
    is_ours_alone = claims["aud"] in (client_id, [client_id])
    authorized = claims.get("azp", client_id if is_ours_alone else None)
    if authorized != client_id:
        raise _wrong("it was given to another application")
    if nonce is not None and claims.get("nonce") != nonce:
        raise _wrong("it belongs to another sign-in")
    return claims


async def _signed_claims(token: str, keys: KeySet, issuer: str, client_id: str) -> dict[str, Any]:
    header = jwt.get_unverified_header(token)
    if (algorithm := header.get("alg")) not in KEY_SET_ALGORITHMS:
        raise jwt.InvalidAlgorithmError
    kid = header.get("kid")
    key = await keys.key(kid if isinstance(kid, str) else None, algorithm)
    return _jwt.decode(
        token, key, list(KEY_SET_ALGORITHMS), issuer=issuer, audience=client_id, leeway=LEEWAY_S
    )


def _wrong(reason: str) -> SignInProblem:
    return SignInProblem("invalid", f"Its ID token doesn't count: {reason}.")
