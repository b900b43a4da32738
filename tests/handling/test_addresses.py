"""The addresses that clients get of us."""

import pytest
from starlette.requests import Request

from threadkeep.handling.addresses import own_path, own_url


def request(*, root_path: str = "", **headers: str) -> Request:
    named = {"host": "threads.example", **headers}
    return Request(
        {
            "type": "http",
            "scheme": "http",
            "path": f"{root_path}/api/me",
            "root_path": root_path,
            "query_string": b"",
            "server": ("127.0.0.1", 8710),
            "headers": [(name.replace("_", "-").encode(), it.encode()) for name, it in named.items()],
        }
    )


def test_link_of_an_app_that_is_mounted_below_another_path() -> None:
    assert own_path(request(root_path="/chat room"), "/api/me") == "/chat%20room/api/me"
    assert own_url(request(root_path="/chat"), "/mcp") == "http://threads.example/chat/mcp"


@pytest.mark.parametrize(
    ("forwarded", "scheme"),
    [("https", "https"), ("HTTPS, http", "https"), ("javascript", "http"), ("", "http")],
)
def test_link_has_the_scheme_that_a_proxy_names(forwarded: str, scheme: str) -> None:
    assert own_url(request(x_forwarded_proto=forwarded), "/mcp") == f"{scheme}://threads.example/mcp"
