"""Every answer that a test of the HTTP face sees is held against the OpenAPI document."""

import pytest

from tests.conftest import Api
from tests.http.checked import CheckedApi


@pytest.fixture
def api(api: Api) -> Api:
    """The common fixture, with clients that check."""
    return CheckedApi.on(api)
