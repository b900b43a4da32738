# pyright: basic
"""The provider's paths, its people, and what it says of them. Django is set up before this is imported."""

import json
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest, JsonResponse
from django.urls import include, path
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauth2_provider.settings import oauth2_settings

from tests.http.sign_in.provider.program import new_key

KEY = "OIDC_RSA_PRIVATE_KEY"
CLAIMS: dict[str, dict[str, Any]] = {}


class Validator(OAuth2Validator):
    """Says all that it knows, whatever is asked for."""

    oidc_claim_scope = None

    def get_additional_claims(self, request: Any) -> dict[str, Any]:
        return CLAIMS.get(request.user.username, {})


def who_is_there(get_response: Any) -> Any:
    """Signs in whoever the browser's cookie names."""

    def respond(request: Any) -> Any:
        person = User.objects.filter(username=request.COOKIES.get("person", "")).first()
        request.user = person or AnonymousUser()
        return get_response(request)

    return respond


def control(request: HttpRequest) -> JsonResponse:
    """What tests do here."""
    asked = json.loads(request.body)
    match asked["do"]:
        case "describe":
            User.objects.get_or_create(username=asked["person"])
            CLAIMS[asked["person"]] = asked["claims"]
        case "remove":
            User.objects.filter(username=asked["person"]).delete()
        case "rotate":
            setattr(oauth2_settings, KEY, new_key())
        case other:
            raise ValueError(other)
    return JsonResponse({"key": getattr(oauth2_settings, KEY)})


urlpatterns = [
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
    path("control", control),
]
