"""Where Django OAuth Toolkit is in the tests' provider, and what it says of people."""

from typing import Any

from django.urls import include, path
from oauth2_provider.oauth2_validators import OAuth2Validator

from tests.http.sign_in.provider.program import CLAIMS, control

urlpatterns = [path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")), path("control", control)]


class Validator(OAuth2Validator):
    """Says all that it knows, whatever is asked for."""

    oidc_claim_scope = None

    def get_additional_claims(self, request: Any) -> dict[str, Any]:
        return CLAIMS.get(request.user.username, {})
