# pyright: basic
"""Django OAuth Toolkit as a provider of one application, with people whom tests add and remove.

    python -m tests.http.sign_in.provider.program ISSUER CLIENT_SECRET REDIRECT_URI…

It prints its port. What it says about OpenID Connect is its own; the people are ours, and need no password.
"""

import sys
from typing import Any, cast
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.apps import apps
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import call_command

CLIENT_ID = "threadkeep"
PEOPLE = "tests.http.sign_in.provider.people"


def new_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def configure(issuer: str) -> None:
    settings.configure(
        SECRET_KEY="only-for-tests" * 4,
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=PEOPLE,
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "oauth2_provider"],
        MIGRATION_MODULES=dict.fromkeys(("auth", "contenttypes", "oauth2_provider")),  # tables at once
        MIDDLEWARE=[f"{PEOPLE}.who_is_there"],
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],  # of the client's secret; fast
        LOGIN_URL="/nobody",
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_ISS_ENDPOINT": issuer,
            "OIDC_RSA_PRIVATE_KEY": new_key(),
            "OAUTH2_VALIDATOR_CLASS": f"{PEOPLE}.Validator",
            "SCOPES": {"openid": "who", "profile": "name", "email": "address", "groups": "groups"},
            "PKCE_REQUIRED": True,
            "REFRESH_TOKEN_REUSE_PROTECTION": True,
            "COMPLIANT_BCP_RFC9700_AUTHZ_RESPONSE_ISS": True,
        },
    )
    django.setup()
    call_command("migrate", run_syncdb=True, verbosity=0)


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        pass


def main(issuer: str, secret: str, *redirect_uris: str) -> None:
    configure(issuer)
    apps.get_model("oauth2_provider", "Application").objects.create(
        client_id=CLIENT_ID,
        client_secret=secret,
        client_type="confidential",
        authorization_grant_type="authorization-code",
        redirect_uris=" ".join(redirect_uris),
        algorithm="RS256",
        skip_authorization=True,
    )
    with make_server("127.0.0.1", 0, cast("Any", WSGIHandler()), handler_class=Quiet) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
