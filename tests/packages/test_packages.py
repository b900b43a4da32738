"""The tarballs in an empty project, against a running server."""

import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripts import packages, page

from tests.browser.conftest import Replying
from tests.browser.relay import relayed
from tests.docs.scripts import ROOM
from tests.docs.walk import scripted
from tests.packages.project import Project
from tests.serving import Server
from threadkeep.testing import Gate, Recorded, Reply, Say, UseTool, Wait

LEASE = "lease.md"


@pytest.fixture(scope="module")
def tarballs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return packages.build(tmp_path_factory.mktemp("tarballs"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, tarballs: list[Path]) -> Project:
    installed = page.SOURCE / "node_modules"
    project = Project(tmp_path_factory.mktemp("project"), *tarballs, installed / "react")
    (project.folder / "node_modules" / "@types").symlink_to(installed / "@types")
    return project


@dataclass(frozen=True)
class Talk:
    """A server whose agent asks its user, and the gates of what the model says."""

    url: str
    agent: str
    count: Gate
    story: Gate


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    count, story = Gate(), Gate()
    songs = iter(("La.", "Lo.", "Le."))
    script: Mapping[str, Reply] = ROOM | {
        "Count": [Say("One. "), Wait(count), Say("Two.")],
        "story": [Say("Once"), Wait(story)],
        "what then": [Say("They lived.")],
        "rent": [Say("900 euros.")],
        "Which color": [UseTool("color", {"of": "sky"})],
        "sky: blue": [Say("It is blue.")],
        "Go on": [Say("Well, "), Wait(Gate())],
    }

    def reply(request: Recorded) -> Reply:
        sings = request.body["messages"][-1]["content"] == "Sing"
        return [Say(next(songs))] if sings else scripted(script)(request)

    settings = {"gateway": "openai", "model": "scripted"}
    with Replying(otherwise=reply) as model, Server(tmp_path, gateway_url=model.url, **settings) as server:
        with server.client() as client:
            body = {"name": "Clerk", "settings": {"askUser": True}}
            agent = client.post("/api/agents", json=body).raise_for_status().json()["id"]
        yield Talk(server.url, agent, count, story)


def test_programs_stream_resume_answer_branch_queue_and_send_files(project: Project, talk: Talk):
    with relayed(talk.url) as relay, project.program("client.mjs", relay.address, talk.agent) as program:
        assert program.next() == "One. "
        relay.cut()
        assert program.next() == "lost"
        talk.count.open()
        assert [program.next() for _ in range(2)] == ["Two.", "One. Two."]
        assert [program.next() for _ in range(2)] == ["Which room?", "The blue room is yours."]
        assert [program.next() for _ in range(3)] == ["La.", "Lo.", "La."]
        assert [program.next() for _ in range(2)] == [["And what then?"], "queued"]
        talk.story.open()
        assert program.rest() == [
            "They lived.",
            "900 euros.",
            [LEASE, "The rent is 900 euros."],
            "It is blue.",
            "GENERATION_ABORTED",
            "CANCELLED",
            "CANCELLED",
            "900 euros.",
        ]


def test_front_end_keeps_up_without_a_browser(project: Project, talk: Talk):
    with relayed(talk.url) as relay, project.program("front-end.mjs", relay.address, talk.agent) as program:
        assert program.next() == "One. "
        relay.cut()
        assert program.next() == "lost"
        talk.count.open()
        assert program.next() == ["Count", "One. Two."]
        assert [program.next() for _ in range(2)] == [True, "The blue room is yours."]
        assert [program.next() for _ in range(3)] == ["La.", "Lo.", "La."]
        assert program.next() == [["How much is the rent?", [LEASE]]]
        talk.story.open()
        assert program.rest() == [
            ["How much is the rent?", "900 euros."],
            "It is blue.",
            "CANCELLED",
            ["Well, ", "Sing", "Le."],
            1,
        ]


def test_same_sources_give_the_same_bytes(tarballs: list[Path], tmp_path: Path):
    again = packages.build(tmp_path)
    assert [it.name for it in again] == [it.name for it in tarballs]
    assert [it.read_bytes() for it in again] == [it.read_bytes() for it in tarballs]


def test_tarball_carries_what_npm_shows_and_no_source(tarballs: list[Path]):
    for tarball in tarballs:
        with tarfile.open(tarball) as held:
            names = {it.removeprefix("package/") for it in held.getnames()}
        assert {"LICENSE", "README.md", "package.json", "dist/index.js", "dist/index.d.ts"} <= names
        assert all(
            re.search(r"^dist/.*\.(js|d\.ts)$", it) for it in names - {"LICENSE", "README.md", "package.json"}
        )
        assert packages.version() in tarball.name


@pytest.mark.parametrize(
    "resolution", [("nodenext", "nodenext"), ("esnext", "bundler")], ids=lambda it: it[1]
)
def test_types_are_found_by_every_compiler_setting(project: Project, resolution: tuple[str, str]):
    program = project.folder / "types.ts"
    program.write_text("""
import { Client, FrontEnd, contentOf } from "@threadkeep/client";
import { browserPlatform } from "@threadkeep/client/browser";
import { useConversation } from "@threadkeep/react";

for await (const event of new Client({ baseUrl: "http://h" }).send("c", "hi")) {
  if (event.type === "text") event.text.trim();
  // @ts-expect-error: there is no such event
  if (event.type === "hologram") throw event;
}
new FrontEnd({ baseUrl: "http://h", platform: browserPlatform() });
export const texts: string[] = useConversation(null).messages.map(({ parts }) => contentOf(parts));
""")
    node, _ = page.commands()
    module, how = resolution
    done = subprocess.run(
        [
            *(
                *node,
                str(page.SOURCE / "node_modules/typescript/bin/tsc"),
                "--noEmit",
                "--strict",
                str(program),
            ),
            *("--target", "es2022", "--lib", "es2023,dom,dom.iterable", "--module", module),
            *("--moduleResolution", how, "--types", "react"),
        ],
        cwd=project.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
