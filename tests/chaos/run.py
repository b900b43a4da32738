"""A run: people who do something all the time, and faults, until all have come to an end."""

import asyncio
import random
import tempfile
import time
import traceback
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from tests.chaos.doings import DOINGS
from tests.chaos.faults import Faults
from tests.chaos.person import Loss, Somebody
from tests.chaos.seen import Record
from tests.chaos.world import MODEL, Engine, World
from tests.faults.scene import agent_settings

PEOPLE = 6
GIVES_BACK_S = 60.0
TOGETHER = 3
"""How many faults can last at once."""


class Chaos:
    """One run on one engine."""

    def __init__(self, engine: Engine, seed: int, folder: Path, *, people: int = PEOPLE) -> None:
        self.record = Record(engine, seed)
        self._world = World(engine, folder)
        self._seed = seed
        self._people_count = people
        self._over_at = 0.0
        self.people: Sequence[Somebody] = ()

    async def run(self, seconds: float) -> Record:
        """Lets everything happen for so long; then all come to their ends, and nothing is left."""
        async with self._world:
            agents = await self._make_agents()
            self.people = [
                Somebody(f"user-{it}", self._world, random.Random(f"{self._seed}/{it}"), self.record, agents)
                for it in range(self._people_count)
            ]
            self._over_at = time.monotonic() + seconds
            async with asyncio.TaskGroup() as living:
                for person in self.people:
                    living.create_task(self._live(person))
                chance = random.Random(f"{self._seed}/faults")
                living.create_task(
                    self._strike(Faults(self._world, self.record, chance, self.people), chance)
                )
            await self._check_rest()
        if self.record.losses:
            self._keep_logs()
        return self.record

    def _keep_logs(self) -> None:
        """What the nodes have said, for whoever looks for the reason."""
        folder = Path(tempfile.mkdtemp(prefix=f"threadkeep-chaos-{self._seed}-"))
        for node in self._world.nodes:
            (folder / f"node-{node.number}.log").write_text("".join(node.said), encoding="utf-8")
        self.record.losses.append(f"the nodes' logs are in {folder}")

    def describe(self) -> str:
        """What goes on, in a line for each."""
        now = time.monotonic()
        lines = [f"{dict(self.record.faults)}, {dict(self.record.turns)}, {len(self.record.losses)} losses"]
        lines += self.record.losses
        lines += [f"    {now - it.progressed_at:4.0f} s since progress: {it.doing}" for it in self.people]
        return "\n".join(lines)

    @property
    def _is_over(self) -> bool:
        return time.monotonic() > self._over_at or bool(self.record.losses)

    async def _live(self, who: Somebody) -> None:
        """One thing after the other."""
        for number in count():
            if self._is_over:
                return
            (doing,) = who.chance.choices([*DOINGS], [*DOINGS.values()])
            about = f"{who.name}-{number}"
            who.doing = f"{doing.__name__.replace('_', ' ')} {about}"
            try:
                await doing(who, about)
            except (Loss, AssertionError) as exc:
                self.record.losses.append(f"{who.doing}: {exc}")
            except Exception:
                self.record.losses.append(f"{who.doing}: {traceback.format_exc()}")

    async def _strike(self, faults: Faults, chance: random.Random) -> None:
        """One fault every few hundred milliseconds; some last while others come."""
        await asyncio.sleep(1)
        async with asyncio.TaskGroup() as lasting:
            room = asyncio.Semaphore(TOGETHER)
            while not self._is_over:
                await room.acquire()
                task = lasting.create_task(faults.strike())
                task.add_done_callback(lambda _: room.release())
                await asyncio.sleep(chance.uniform(0.2, 1.5))

    async def _make_agents(self) -> dict[str, str]:
        settings = agent_settings(self._world.tools)
        settings["mcpServers"]["desk"]["url"] = self._world.tool_url
        careful = {**settings, "tools": {"desk.note": {"access": "ask"}}}
        async with self._world.client(self._world.nodes[0], "admin", admin=True) as http:
            for name, its in {"clerk": settings, "careful clerk": careful}.items():
                body = {"name": name, "model": MODEL, "settings": its, "visibility": "public"}
                made = await http.post("/api/agents", json=body)
                assert made.status_code == 201, made.text
            found = (await http.get("/api/agents?limit=200")).json()["items"]
        return {it["name"]: it["id"] for it in found}

    async def _check_rest(self) -> None:
        """Once all turns are over, nothing is set aside for them."""
        until = time.monotonic() + GIVES_BACK_S
        left: Sequence[tuple[str, str]] = ()
        while time.monotonic() < until:
            left = await asyncio.to_thread(self._world.left)
            if not left:
                return
            await asyncio.sleep(0.5)
        self.record.losses.append(f"left in the database: {left}")
