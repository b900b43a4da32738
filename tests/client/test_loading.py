"""What a program loads that only talks to a Threadkeep."""

import subprocess
import sys

import pytest

SHOW = "import sys; print(*sorted(sys.modules))"
PROGRAMS = ["import threadkeep.client", "from threadkeep import BlockingClient, Client"]
# The layers of ours that a client is made of; `ports` has some of the values that views are made from.
OF_A_CLIENT = {"client", "wire", "domain", "ports", "loopback", "sse", "tasks", "version"}
OF_A_SERVER = {"starlette", "uvicorn", "mcp", "pydantic", "jwt", "cryptography", "jsonschema", "sqlite3"}


def loaded_by(program: str) -> set[str]:
    """The modules of a fresh interpreter after a program has run in it."""
    command = [sys.executable, "-c", f"{program}; {SHOW}"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.parametrize("program", PROGRAMS)
def test_client_loads_no_server(program: str):
    modules = loaded_by(program)
    layers = {module.split(".")[1] for module in modules if module.startswith("threadkeep.")}
    assert "client" in layers
    assert layers <= OF_A_CLIENT
    assert not OF_A_SERVER & {module.split(".")[0] for module in modules}


def test_server_is_loaded_when_it_is_asked_for():
    modules = loaded_by("from threadkeep import *; assert callable(create_app) and __version__")
    assert {"starlette", "threadkeep.bootstrap"} <= modules


def test_unknown_public_name_is_an_attribute_error_and_loads_nothing():
    modules = loaded_by("import threadkeep; assert not hasattr(threadkeep, 'nothing'); dir(threadkeep)")
    assert "threadkeep.client" not in modules
