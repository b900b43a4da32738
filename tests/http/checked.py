"""A running Threadkeep of which every response is held against the OpenAPI document."""

from dataclasses import dataclass

import httpx

from tests.conftest import Api
from tests.http.document import check_response


@dataclass(frozen=True)
class CheckedApi(Api):
    """A running Threadkeep whose every response must be as documented."""

    def client(self, **headers: str) -> httpx.AsyncClient:
        client = super().client(**headers)
        client.event_hooks["response"].append(check_response)
        return client

    @staticmethod
    def on(api: Api) -> "CheckedApi":
        """The same Threadkeep, with clients that check."""
        return CheckedApi(api.app, api.store, api.clients)
