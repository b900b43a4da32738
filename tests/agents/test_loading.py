"""What importing the SDK loads, and agents by their names."""

import subprocess
import sys
from pathlib import Path

import pytest

from threadkeep.agents import AgentsNotLoaded, load, load_all

SHOW = "import sys; print(*sorted(sys.modules))"
OF_THE_SDK = {"agents", "wire", "ports", "domain", "version"}
OF_A_SERVER = {
    "starlette", "uvicorn", "mcp", "pydantic", "jwt", "cryptography", "jsonschema", "sqlite3", "httpx2",
}  # fmt: skip


def loaded_by(program: str) -> set[str]:
    """The modules of a fresh interpreter after a program has run in it."""
    command = [sys.executable, "-c", f"{program}; {SHOW}"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


def test_the_sdk_loads_no_server():
    modules = loaded_by("import threadkeep.agents")
    layers = {module.split(".")[1] for module in modules if module.startswith("threadkeep.")}
    assert "agents" in layers
    assert layers <= OF_THE_SDK
    assert not OF_A_SERVER & {module.split(".")[0] for module in modules}


GOOD = """
from threadkeep.agents import agent

@agent()
async def orders(turn): ...

@agent(key="orders")
async def other_orders(turn): ...

@agent()
async def refunds(turn): ...

all_of_them = [orders, refunds]
number = 5
async def bare(turn): ...
class place:
    inner = refunds
empty = []
mixed = [orders, 5]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules whose names no other test has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [it for it in sys.path if it])
    name = f"shop_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(GOOD)
    return tmp_path / f"{name}.py"


def test_a_function_and_a_list_of_them_are_loaded_from_the_current_folder(folder: Path):
    name = folder.stem
    assert [it.key for it in load(f"{name}:orders")] == ["orders"]
    assert [it.key for it in load(f"{name}:all_of_them")] == ["orders", "refunds"]
    assert [it.key for it in load(f"{name}:place.inner")] == ["refunds"]
    assert [it.key for it in load_all([f"{name}:orders", f"{name}:refunds"])] == ["orders", "refunds"]
    assert [it.key for it in load_all([f"{name}:orders", f"{name}:all_of_them"])] == ["orders", "refunds"]


def test_two_agents_with_one_key_are_refused_with_their_places(folder: Path):
    with pytest.raises(AgentsNotLoaded, match="Two agents have the key 'orders'") as caught:
        load_all([f"{folder.stem}:orders", f"{folder.stem}:other_orders"])
    assert f"{folder}:4" in str(caught.value)
    assert f"{folder}:7" in str(caught.value)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("{0}", "doesn't name agents. Write the module and the name: `shop:orders`"),
        (":x", "doesn't name agents"),
        ("{0}:", "doesn't name agents"),
        ("{0}:nothing", "has no `nothing`"),
        ("{0}:number", "is a int, not an agent"),
        ("{0}:bare", "is the function `bare`, not an agent. Write `@agent()` above a function."),
        ("{0}:empty", "is empty"),
        ("{0}:mixed", "is a int, not an agent"),
        ("no_such_module_here:x", "There is no module `no_such_module_here`"),
        ("no_such_module_here.inner:x", "There is no module `no_such_module_here`"),
        ("{0}.inner:x", "There is no module `shop_"),
        ("..x:x", "can't be imported"),
    ],
)
def test_what_names_no_agent_is_refused_with_a_sentence(folder: Path, place: str, sentence: str):
    with pytest.raises(AgentsNotLoaded) as caught:
        load(place.format(folder.stem))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "x = 1\nimport nothing_like_this\n",
            "line 2: ModuleNotFoundError: No module named 'nothing_like_this'",
        ),
        ("x = 1\n\nundefined\n", "line 3: NameError"),
        ("def f(:\n", "line 1: SyntaxError"),
        ("import sys\nsys.exit(3)\n", "line 2: SystemExit: 3"),
        (
            "from threadkeep.agents import agent\n\n@agent(version=0)\ndef f(turn): ...\n",
            "line 3: ValueError: `version` is a whole number from 1",
        ),
    ],
    ids=["module", "name", "syntax", "exit", "declaration"],
)
def test_what_fails_on_import_is_named_with_its_file_and_line(folder: Path, source: str, sentence: str):
    folder.write_text(source)
    with pytest.raises(AgentsNotLoaded) as caught:
        load(f"{folder.stem}:f")
    assert f"{folder}, {sentence}" in str(caught.value)
