"""Where a browser begins to sign in with a provider, and where it comes back."""

import logging
from collections.abc import Awaitable, Callable, Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from threadkeep.domain.errors import RateLimited
from threadkeep.domain.sign_in.identity import ATTEMPT_MS, Problem, ProviderAnswer, SignInProblem
from threadkeep.domain.sign_in.public_url import PublicUrl
from threadkeep.handling.addresses import client_address
from threadkeep.handling.services import Services
from threadkeep.http.sign_in.session_cookie import SessionCookie

log = logging.getLogger("threadkeep.http.sign_in")

_HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_FOREIGN = {"cross-site", "same-site"}


def provider_routes(public_url: PublicUrl, services: Callable[[], Awaitable[Services]]) -> list[BaseRoute]:
    """The two routes of every provider."""

    async def start(request: Request) -> Response:
        # Only a click on our page begins it: a link elsewhere must not switch the browser's account.
        if request.headers.get("sec-fetch-site") in _FOREIGN:
            return _to(f"{public_url.text}/#/sign-in")
        name, known = await _known(request)
        cookie = SessionCookie(public_url, known.store.installation).before
        address = client_address(request, known.sign_in_rules.trusted_proxies)
        try:
            known.begun_sign_ins.check(address)
            known.begun_sign_ins.note(address)
            begun = await known.provider_sign_ins.begin(
                name, request.query_params.get("next"), cookie.sent(request)
            )
        except RateLimited:
            return _problem("too_many", name)
        except SignInProblem as exc:
            return _problem(exc.problem, name, exc.detail)
        return _to(begun.url, {"Set-Cookie": cookie.given(begun.browser, ATTEMPT_MS // 1000)})

    async def come_back(request: Request) -> Response:
        name, known = await _known(request)
        cookie = SessionCookie(public_url, known.store.installation)
        try:
            finished = await known.provider_sign_ins.finish(
                name,
                _answer(request),
                browser=cookie.before.sent(request),
                device=request.headers.get("user-agent", ""),
                replaced=cookie.sent(request),
            )
        except SignInProblem as exc:
            return _problem(exc.problem, name, exc.detail)
        given = cookie.given(finished.started.token)
        return _to(f"{public_url.text}{finished.next}", {"Set-Cookie": given})

    async def _known(request: Request) -> tuple[str, Services]:
        if request.method != "GET":  # what only looks must not use a sign-in up
            raise HTTPException(405, headers={"Allow": "GET"})
        name, known = request.path_params["name"], await services()
        if not known.provider_sign_ins.knows(name):
            raise HTTPException(404)
        return name, known

    def _problem(problem: Problem, name: str, detail: str | None = None) -> Response:
        if detail is not None:
            log.warning("a sign-in with the provider %s didn't work: %s", name, detail)
        return _to(f"{public_url.text}/#/sign-in?problem={problem}&provider={name}")

    return [
        Route("/oauth/sign-in/{name}/start", start),
        Route("/oauth/sign-in/{name}", come_back),
    ]


def _to(url: str, headers: Mapping[str, str] | None = None) -> Response:
    return RedirectResponse(url, 303, headers={**_HEADERS, **(headers or {})})


def _answer(request: Request) -> ProviderAnswer:
    """What the provider sent, each value once: with two, one part of us could check the other."""
    given = request.query_params
    if any(len(given.getlist(name)) > 1 for name in ("state", "code", "iss", "error")):
        raise SignInProblem("invalid")
    return ProviderAnswer(
        state=given.get("state", ""),
        code=given.get("code"),
        issuer=given.get("iss"),
        error=given.get("error"),
    )
