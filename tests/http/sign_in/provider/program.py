"""Django OAuth Toolkit as a provider of one application, with people whom tests add and remove.

    python -m tests.http.sign_in.provider.program ISSUER REDIRECT_URI CLIENT_SECRET

It prints its port. What it says about OpenID Connect is its own; ours are only the people, who need no password.
"""

import json
import sys
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import call_command
from django.http import HttpRequest, JsonResponse

CLAIMS: dict[str, dict[str, Any]] = {}
CLIENT_ID = "threadkeep"


def new_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def who_is_there(get_response: Any) -> Any:
    """Signs in whoever the browser's cookie names."""

    def respond(request: Any) -> Any:
        from django.contrib.auth.models import AnonymousUser, User

        person = User.objects.filter(username=request.COOKIES.get("person", "")).first()
        request.user = person or AnonymousUser()
        return get_response(request)

    return respond


def control(request: HttpRequest) -> JsonResponse:
    """What tests do here."""
    from django.contrib.auth.models import User
    from oauth2_provider.settings import oauth2_settings

    asked = json.loads(request.body)
    match asked["do"]:
        case "describe":
            User.objects.get_or_create(username=asked["person"])
            CLAIMS[asked["person"]] = asked["claims"]
        case "remove":
            User.objects.filter(username=asked["person"]).delete()
        case "rotate":
            oauth2_settings.OIDC_RSA_PRIVATE_KEY = new_key()
        case other:
            raise ValueError(other)
    return JsonResponse({"key": oauth2_settings.OIDC_RSA_PRIVATE_KEY})


def configure(issuer: str) -> None:
    settings.configure(
        SECRET_KEY="only-for-tests" * 4,
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF="tests.http.sign_in.provider.urls",
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
        MIGRATION_MODULES=dict.fromkeys(("auth", "contenttypes", "oauth2_provider")),  # tables at once
        MIDDLEWARE=["tests.http.sign_in.provider.program.who_is_there"],
        LOGIN_URL="/nobody",
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_ISS_ENDPOINT": issuer,
            "OIDC_RSA_PRIVATE_KEY": new_key(),
            "OAUTH2_VALIDATOR_CLASS": "tests.http.sign_in.provider.urls.Validator",
            "SCOPES": {"openid": "who", "profile": "name", "email": "address", "groups": "groups"},
            "PKCE_REQUIRED": True,
            "REFRESH_TOKEN_REUSE_PROTECTION": True,
            "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
        },
    )
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def main(issuer: str, redirect_uri: str, secret: str) -> None:
    configure(issuer)
    from oauth2_provider.models import Application

    Application.objects.create(
        client_id=CLIENT_ID,
        client_secret=secret,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        redirect_uris=redirect_uri,
        algorithm=Application.RS256_ALGORITHM,
        skip_authorization=True,
    )
    with make_server("127.0.0.1", 0, WSGIHandler(), handler_class=Quiet) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    # Not as `__main__`: the settings name this module, and both must be the same.
    from tests.http.sign_in.provider import program

    program.main(*sys.argv[1:])
