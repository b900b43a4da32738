"""Makes the data of a release, for the tests of upgrades: run it with the code of the release's tag.

    python -m tests.storage.make_release        writes tests/storage/version-X.Y.Z

`backup.tar.gz` is a backup of a data folder whose server was killed in the middle of its work;
`facts.json.gz` says what is in it: the ids of conversations, files and turns, and the messages as that
version gave them.

There are files that were sent, not sent, and queued; branches; tools with a large result; a document and a
prompt file; a compaction; a deleted conversation; a message held behind a turn that failed; a turn that was
aborted while it asked, one that still asks, and two that were killed while a tool ran: one that may be
repeated, with a message queued behind it, and one that may not.
"""

import asyncio
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from PIL import Image

from tests.storage.released import BACKUP, FACTS
from tests.talking import JSON, Talk, talking
from threadkeep.client import Client
from threadkeep.storage.database.backup import back_up
from threadkeep.testing import (
    Fail,
    Gate,
    Say,
    ScriptedModel,
    Think,
    ToolServer,
    UseTool,
    Wait,
    scripted_settings,
    until,
)
from threadkeep.version import __version__

reached = threading.Event()


async def send(to: str) -> str:
    """Sends a letter."""
    if to == "nobody":
        reached.set()
        await asyncio.Event().wait()
    return f"sent to {to}"


async def look(at: str = "") -> str:
    """Looks."""
    if at == "forever":
        reached.set()
        await asyncio.Event().wait()
    return "seen " + at * 20_000


def picture(red: int) -> tuple[str, bytes]:
    raw = io.BytesIO()
    Image.new("RGB", (8, 8), (red, 0, 0)).save(raw, "PNG")
    return f"{red}.png", raw.getvalue()


class Making:
    """A user at work, up to the kill."""

    def __init__(self, talk: Talk, client: Client, model: ScriptedModel, server: ToolServer) -> None:
        self.talk, self.client, self.model, self.server = talk, client, model, server
        self.facts: dict[str, Any] = {"toolUrl": server.url, "conversations": {}, "files": {}, "turns": {}}

    async def conversation(self, name: str, **settings: Any) -> str:
        servers = {"post": self.server.settings | {"trustAnnotations": True}}
        rules = {"post.send": {"access": "ask"}}
        made = await self.talk.titled_conversation(
            name=name, settings={"mcpServers": servers, "tools": rules, **settings}
        )
        self.facts["conversations"][name] = made
        return made

    async def post(self, path: str, body: Any, **headers: str) -> dict[str, Any]:
        response = await self.talk.client.post(path, json=body, headers=JSON | headers)
        assert response.status_code < 300, response.text
        return response.json() if response.content else {}

    async def ask(self, conversation: str, content: str, *replies: Any, **more: Any) -> dict[str, Any]:
        self.model.script(*replies)
        return await self.post(
            f"/api/conversations/{conversation}/messages?wait=true", {"content": content, **more}
        )

    async def make(self) -> None:
        await self._plain()
        await self._branches()
        await self._tools()
        await self._compacted()
        await self._deleted()
        await self._held()
        await self._aborted()
        await self._asking()
        await self._killed()

    async def _plain(self) -> None:
        plain = await self.conversation("Plain")
        sent, unsent = (
            await self.client.upload_file(picture(100)),
            await self.client.upload_file(picture(200)),
        )
        text = await self.client.upload_file(("notes.txt", "Words. 押金".encode()))
        await self.ask(plain, "What is this?", [Think("Hm."), Say("Red. 押金")], files=[sent.id, text.id])
        self.facts["files"] = {"sent": sent.id, "unsent": unsent.id, "text": text.id}
        self.facts["key"] = "a key of before"
        self.model.script([Say("Once.")])
        await self.post(
            f"/api/conversations/{plain}/messages?wait=true",
            {"content": "Only once?"},
            **{"Idempotency-Key": self.facts["key"]},
        )

    async def _branches(self) -> None:
        branched = await self.conversation("Branches")
        await self.ask(branched, "First", [Say("One.")])
        await self.ask(branched, "Second", [Say("Two.")])
        self.model.script([Say("Two, again.")])
        await self.post(f"/api/conversations/{branched}/regenerate?wait=true", {})
        messages = await self.talk.messages(branched)
        await self.ask(branched, "Another second", [Say("Another two.")], parentId=messages[1]["id"])

    async def _tools(self) -> None:
        tools = await self.conversation("Tools")
        await self.ask(
            tools, "Look!", [Say("I look."), UseTool("post__look", {"at": "tree"})], [Say("A tree.")]
        )
        agent = (await self.client.conversation(tools)).agent_id
        document = await self.client.add_document(agent, "law.txt", b"Everyone may ask. Nobody must answer.")
        await self.client.until_read(agent, document.id)
        await self.talk.client.put(f"/api/agents/{agent}/prompt/RULES.md", json={"text": "Be brief."})

    async def _compacted(self) -> None:
        compacted = await self.conversation("Compacted", contextMessages=4, compactionThreshold=10)
        for number in range(6):
            await self.ask(compacted, f"Question {number}", [Say(f"Answer {number}.")])
        self.model.script([Say("They asked and got answers.")])
        await self.post(f"/api/conversations/{compacted}/compact", {})

    async def _deleted(self) -> None:
        deleted = await self.conversation("Deleted")
        await self.ask(deleted, "Keep this?", [Say("Yes.")])
        await self.client.delete_conversation(deleted)

    async def _held(self) -> None:
        """A turn that failed, and a message that was queued behind it."""
        held = await self.conversation("Held")
        gate = Gate()
        self.model.script([Say("I begin"), Wait(gate), Fail("no more")])
        turn = await self.talk.begin(held, "Long story")
        await gate.reached()
        file = await self.client.upload_file(picture(50))
        self.facts["files"]["held"] = file.id
        await self.post(
            f"/api/conversations/{held}/messages",
            {"content": "And then?", "files": [file.id], "whenBusy": "queue"},
        )
        gate.open()
        await self.talk.events(turn)

    async def _aborted(self) -> None:
        """A turn that was aborted while it asked: its request stayed open in the database."""
        aborted = await self.conversation("Aborted")
        await self.ask(aborted, "Send it.", [UseTool("post__send", {"to": "Eve"})])
        await self.client.abort(aborted)

    async def _asking(self) -> None:
        asking = await self.conversation("Asking")
        waiting = await self.ask(asking, "Send it.", [Say("May I?"), UseTool("post__send", {"to": "Ada"})])
        self.facts["turns"]["asking"] = waiting["turnId"]

    async def _killed(self) -> None:
        """Turns in the middle of a tool: one that may be repeated, and one that may not."""
        looking = await self.conversation("Killed looking")
        self.model.script([Say("I look."), UseTool("post__look", {"at": "forever"})])
        self.facts["turns"]["looking"] = await self.talk.begin(looking, "Look!")
        await until(reached.is_set)
        reached.clear()
        await self.post(
            f"/api/conversations/{looking}/messages", {"content": "And after that?", "whenBusy": "queue"}
        )
        sending = await self.conversation("Killed sending", tools={"post.send": {"access": "allow"}})
        self.model.script([Say("I send."), UseTool("post__send", {"to": "nobody"})])
        self.facts["turns"]["sending"] = await self.talk.begin(sending, "Send!")
        await until(reached.is_set)
        await asyncio.sleep(1)  # until all is written
        self.facts["messages"] = {
            name: await self.talk.messages(id_)
            for name, id_ in self.facts["conversations"].items()
            if name not in {"Deleted"} and not name.startswith("Killed")
        }


async def work(folder: Path) -> NoReturn:
    """Works in a data folder and leaves the facts beside it."""
    with ScriptedModel() as model, ToolServer(send, reading=[look]) as server:
        settings = scripted_settings(model, data=folder / "data", embedding_url="off", mcp_allow_private=True)
        async with talking(settings) as talk, Client(talk.url) as client:
            making = Making(talk, client, model, server)
            await making.make()
            (folder / "facts.json").write_text(json.dumps(making.facts, ensure_ascii=False, indent=1))
            os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it was not killed")


def make_release(target: Path) -> None:
    """Writes the backup and the facts."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        done = subprocess.run([sys.executable, "-m", __spec__.name, name], check=False)
        assert done.returncode == -signal.SIGKILL, done
        back_up(folder / "data", folder / "backup.tar")
        target.mkdir()
        (target / BACKUP).write_bytes(gzip.compress((folder / "backup.tar").read_bytes(), mtime=0))
        (target / FACTS).write_bytes(gzip.compress((folder / "facts.json").read_bytes(), mtime=0))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(work(Path(sys.argv[1])))
    else:
        make_release(Path(__file__).parent / f"version-{__version__}")
