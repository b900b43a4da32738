"""What a turn pays for its system prompt: seven components whose files have not changed."""

import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from tests.making import make_agent

from bench.measure import Effort, block
from bench.table import Aim, Times
from threadkeep.domain.workspace import PromptComponent, Workspaces
from threadkeep.services.prompts import Prompts
from threadkeep.storage.prompt_files import SETTLED_NS, FolderPromptFiles

TEXT = "You answer briefly, name the clause you mean, and say when you do not know. 请用中文回答。\n" * 25
CALLS_A_BLOCK = 50
AIM = Aim("≤", 200, "P50")


async def measure(effort: Effort, databases: Sequence[str]) -> Sequence[Times]:
    """Six files and the agent's own prompt, put together again and again."""
    with TemporaryDirectory(prefix="threadkeep-bench-") as folder:
        files = FolderPromptFiles(Workspaces(Path(folder)))
        agent = make_agent(system_prompt=TEXT)
        for component in PromptComponent:
            await files.write(agent.id, component, TEXT)
        time.sleep(2 * SETTLED_NS / 1e9)  # noqa: ASYNC251 - files just written are not cached yet
        nothing = cast("Any", None)  # neither the store, the agents nor the models are asked
        prompts = Prompts(nothing, nothing, files, None, nothing)
        prompt = await prompts.assemble(agent, None)
        assert len([it for it in prompt.components if it.text]) == len(PromptComponent) + 1 == 7
        await block(lambda: prompts.assemble(agent, None), CALLS_A_BLOCK)
        blocks = [
            await block(lambda: prompts.assemble(agent, None), CALLS_A_BLOCK)
            for _ in range(effort.read_rounds)
        ]
    return [
        Times.of(
            "system prompt of 7 unchanged components",
            [it.wall for it in blocks],
            unit="µs",
            aim=AIM,
        ),
        Times.of("the same, processor time", [it.cpu for it in blocks], unit="µs"),
    ]
