"""Plays scenarios; knows where their recordings are."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.corpus.scenarios import (
    ag_ui,
    agents,
    agentx,
    ai_sdk,
    conversations,
    mcp,
    openai,
    operating,
    signing_in,
    steps,
    tools,
    turns,
)
from tests.corpus.stage import Stage, stage

RECORDED = Path(__file__).parent / "recorded"

Scenario = Callable[[Stage], Awaitable[None]]
SCENARIOS: Mapping[str, Scenario] = {
    scenario.__name__.replace("_", "-"): scenario
    for module in (
        *(agents, conversations, turns, tools, operating, signing_in),
        *(agentx, ai_sdk, ag_ui, openai, mcp, steps),
    )
    for scenario in module.SCENARIOS
}


async def play(name: str) -> Mapping[str, str]:
    """Plays a scenario: the recordings by their file names."""
    with TemporaryDirectory(prefix="corpus-") as folder:
        async with stage(Path(folder), **signing_in.SETTINGS.get(name, {})) as it:
            await SCENARIOS[name](it)
            return {f"{name}.{wire}": text for wire, text in it.recordings().items()}


def recorded(name: str) -> Mapping[str, str]:
    """The committed recordings of a scenario, by their file names."""
    return {path.name: path.read_bytes().decode() for path in sorted(RECORDED.glob(f"{name}.*"))}
