"""Bad files: what is wrong is named, nothing is half brought in, and the rest goes on."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.imports.foreign import branched, chatgpt, claude, said
from tests.imports.making import keep_everything, kept_of, opened_store
from tests.making import ALICE, NOW, keep_agent
from tests.serving import environment
from threadkeep.cli.moving import export_user, import_file
from threadkeep.domain.conversation import Conversation, WholeConversation
from threadkeep.domain.errors import InvalidRequest, UnsupportedImport
from threadkeep.domain.ids import MessageId, new_uuid
from threadkeep.domain.import_run import ImportProblem
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import text_parts
from threadkeep.exports.format import encode
from threadkeep.exports.records import EXPORT_VERSION, ExportHeader
from threadkeep.imports import items as splitting
from threadkeep.imports import threadkeep
from threadkeep.imports.foreign import ForeignConversation
from threadkeep.imports.reading import reading
from threadkeep.settings import Settings
from threadkeep.testing.waiting import PATIENCE_S

GOOD = json.dumps(claude()).encode()
QUESTION = said("user", "Why?")


def found(file: Path) -> tuple[list[ForeignConversation], list[ImportProblem]]:
    with reading(file) as source:
        everything = list(source.found())
    good = [it for it in everything if isinstance(it, ForeignConversation)]
    return good, [it for it in everything if isinstance(it, ImportProblem)]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (json.dumps(chatgpt({"q": (None, {"id": "m"})}, "q")).encode(), "missing required field `author`"),
        (json.dumps({"title": "Leases", "mapping": {}}).encode(), "missing required field `conversation_id`"),
        (json.dumps({"title": "Leases"}).encode(), "neither `mapping` (ChatGPT) nor `chat_messages`"),
        (json.dumps(chatgpt({"a": ("b", QUESTION), "b": ("a", QUESTION)}, "a")).encode(), "cycle"),
        (json.dumps(chatgpt({"a": ("a", QUESTION)}, None)).encode(), "cycle"),
        (json.dumps(claude(chat_messages=[{"uuid": "m", "sender": "human"}] * 2)).encode(), "the id 'm'"),
        (json.dumps(claude(chat_messages="none")).encode(), "Expected `array`, got `str`"),
        (b'{"title": "Leases", "mapping": {"a": \xff\xfe}}', "utf-8"),
        (b'{"title": "Leases", "mapping": {"a" 1}}', "Expecting ':'"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion"),
        (GOOD, "has the same id '11111111-aaaa-4aaa-8aaa-111111111111'"),
    ],
)  # fmt: skip
def test_bad_conversation_is_named_and_the_others_are_read(bad: bytes, why: str, tmp_path: Path):
    file = tmp_path / "conversations.json"
    last = json.dumps(claude(uuid="last")).encode()
    file.write_bytes(b"[" + GOOD + b",\n" + bad + b", " + last + b"]")
    good, flaws = found(file)
    assert [it.id for it in good] == ["11111111-aaaa-4aaa-8aaa-111111111111", "last"]
    (flaw,) = flaws
    assert flaw.what.startswith("conversation 2 ")
    assert f"(at byte {len(GOOD) + 3:,})" in flaw.what
    assert why in flaw.why


def test_file_that_is_cut_off_anywhere_gives_whole_conversations_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(splitting, "PART_BYTES", 7)  # so that every state is met at an edge
    said = [{"uuid": "m", "sender": "human", "text": 'Why "\\'}]
    plain, tricky = claude(chat_messages=said), claude(uuid='x"]}\\', name='[{"', chat_messages=said)
    whole = json.dumps([plain, tricky]).encode()
    file = tmp_path / "conversations.json"
    file.write_bytes(whole)
    assert [it.id for it in found(file)[0]] == [plain["uuid"], tricky["uuid"]]
    for cut in range(1, len(whole) - 1):
        file.write_bytes(whole[:cut])
        good, flaws = found(file)
        assert [it.id for it in good] == ([plain["uuid"]] if cut > len(json.dumps(plain)) else [])
        assert [it.why for it in flaws] == ["the file ends before it is complete"]


def test_branches_beyond_the_most_are_told(tmp_path: Path):
    nodes = {"root": (None, said("user", "Root?"))} | {
        f"q{n}": ("root", said("user", f"{n}?")) for n in range(250)
    }
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([chatgpt(nodes, "q7")]))
    good, flaws = found(file)
    (foreign,) = good
    assert (len(foreign.messages), foreign.last) == (1 + 200, "q7")
    assert [it.why for it in flaws] == ["50 of its branches exceed the limit"]


@pytest.mark.parametrize(
    "name", ["letter.txt", "empty.json", "numbers.json", "other.zip", "cut.zip", "missing.json", "deep.json"]
)
async def test_somebody_elses_file_is_refused(name: str, tmp_path: Path):
    settings = Settings.load({}, data=tmp_path / "data")
    file = tmp_path / name
    match name:
        case "letter.txt":
            file.write_text("Dear Threadkeep")
        case "empty.json":
            file.write_bytes(b"")
        case "numbers.json":
            file.write_text("[1, 2, 3]")
        case "deep.json":
            file.write_text("[" * 100_000)
        case "other.zip" | "cut.zip":
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("conversations.json" if name == "cut.zip" else "letter.txt", "[]" * 5000)
            if name == "cut.zip":
                file.write_bytes(file.read_bytes()[:-100])
        case _:
            pass  # there is none
    if name == "deep.json":
        assert await import_file(settings, file, ALICE, None) == 1
        return
    with pytest.raises(InvalidRequest, match=name):
        await import_file(settings, file, ALICE, None)


def renamed(raw: bytes, name: bytes) -> bytes:
    """An archive that lists its only file under another name."""
    at = raw.index(b"PK\1\2")
    head = bytearray(raw[at : at + 46])
    head[8:10], head[28:30] = (0x800).to_bytes(2, "little"), len(name).to_bytes(2, "little")  # UTF-8
    return raw[:at] + bytes(head) + name + raw[at + 46 + len("conversations.json") :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "packed data": lambda raw: raw.replace(raw[60:90], b"\xff" * 30, 1),
    "no name": lambda raw: renamed(raw, b""),
    "broken name": lambda raw: renamed(raw, b"\xff" * 18),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_archive_is_refused(damage: Callable[[bytes], bytes], tmp_path: Path):
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps(list(range(500))))
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(InvalidRequest, match=r"export\.zip is a damaged or incomplete ZIP file"):
        found(file)


def test_archive_that_is_packed_in_a_rare_way_is_to_be_unpacked_first(tmp_path: Path):
    file = tmp_path / "export.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("conversations.json", "[]")
    with pytest.raises(InvalidRequest, match="unpack it first"):
        found(file)


def tampered(change: Callable[[dict[str, Any]], None], type_: str) -> Callable[[list[dict[str, Any]]], None]:
    def tamper(lines: list[dict[str, Any]]) -> None:
        for line in lines:
            if line["type"] == type_:
                change(line)

    return tamper


def with_flaw(lines: list[dict[str, Any]]) -> None:
    """Cuts the file in the middle of its first conversation."""
    first = next(n for n, line in enumerate(lines) if line["type"] == "message")
    del lines[first + 1 :]


A_FILE = {"type": "file", "file_id": "01890a5d-ac96-774b-bcce-b302099a8057"}
AT_NO_PRICE = {"input_tokens": 1, "output_tokens": 1, "cost": {"amount": "1e999999999", "currency": "USD"}}
TAMPERINGS: list[tuple[Callable[[list[dict[str, Any]]], None], str]] = [
    (tampered(lambda it: it.pop("parts"), "message"), "missing required field `parts`"),
    (tampered(lambda it: it.update(parts=[{"type": "odd"}]), "message"), "unknown part type 'odd'"),
    (tampered(lambda it: it.update(parts=[{"type": []}]), "message"), "unknown part type []"),
    (tampered(lambda it: it.update(type=["message"]), "message"), "missing required field `type`"),
    (tampered(lambda it: it.update(parts=[{"type": "text"}]), "message"), "missing required field `text`"),
    (tampered(lambda it: it.update(role="tool"), "message"), "Invalid enum value 'tool'"),
    (tampered(lambda it: it.update(id="not-an-id"), "message"), "is not a valid id"),
    (tampered(lambda it: it.update(parts=[{"type": "text", "text": "a\0b"}]), "message"), "NUL"),
    (tampered(lambda it: it["parts"].append(A_FILE), "message"), "a file of message"),
    (tampered(lambda it: it.update(parent_id=new_uuid()), "message"), "comes before the message it follows"),
    (tampered(lambda it: it.update(status="STREAMING", role="assistant"), "message"), "is not finished"),
    (tampered(lambda it: it.update(usage=AT_NO_PRICE), "message"), "An amount of money is"),
    (tampered(lambda it: it.update(usage=AT_NO_PRICE), "turn"), "An amount of money is"),
    (tampered(lambda it: it.update(seq=1), "message"), "out of order"),
    (tampered(lambda it: it.update(conversation_id=new_uuid()), "message"), "to another conversation"),
    (tampered(lambda it: it.update(status="RUNNING"), "turn"), "has not ended"),
    (tampered(lambda it: it.update(user_message_id=new_uuid()), "turn"), "the missing message"),
    (tampered(lambda it: it.update(sha256="../../../etc/passwd"), "payload"), "no SHA-256"),
    (tampered(lambda it: it.update(sha256="0" * 64), "payload"), "export doesn't contain"),
    (tampered(lambda it: it.update(size=1), "payload"), "damaged or too large"),
    (tampered(lambda it: it.update(agent_id=new_uuid()), "conversation"), "was not imported"),
    (tampered(lambda it: it.update(archived_to_seq=9), "conversation"), "but no summary"),
    (with_flaw, "the file ends before it is complete"),
]  # fmt: skip


async def test_tampered_exports_bring_in_nothing_of_what_is_wrong(
    here: Settings, there: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    async with opened_store(here) as store:
        await keep_everything(store, here)
    await export_user(here, ALICE, tmp_path / "alice.zip")
    folder = tmp_path / "alice"
    with zipfile.ZipFile(tmp_path / "alice.zip") as archive:
        archive.extractall(folder)
    data = folder / "data.jsonl"
    whole = data.read_text()
    for tamper, why in TAMPERINGS:
        lines = [json.loads(line) for line in whole.splitlines()]
        # The one with tools and files alone: whatever is changed is in it.
        first = next(
            n for n, it in enumerate(lines) if it["type"] == "conversation" and it["title"] == "租约"
        )
        last = next(n for n, it in enumerate(lines) if it["type"] == "conversation_end" and n > first)
        before = [it for it in lines[:first] if it["type"] in {"threadkeep-export", "agent"}]
        lines = [*before, *lines[first : last + 1], {"type": "end", "conversations": 1}]
        tamper(lines)
        data.write_text("".join(json.dumps(line) + "\n" for line in lines))
        assert await import_file(there, folder, ALICE, None) == 1, why
        told = capsys.readouterr().err
        assert why in told
        assert "租约" in told
    async with opened_store(there) as store:
        assert (await kept_of(store, ALICE))["order"] == []
    data.write_text(whole)
    assert await import_file(there, folder, ALICE, None) == 0
    async with opened_store(there) as store:
        assert len((await kept_of(store, ALICE))["order"]) == 3


async def test_export_of_a_later_version_or_from_before_the_first_release_is_refused(tmp_path: Path):
    settings = Settings.load({}, data=tmp_path / "data")
    file = tmp_path / "data.jsonl"
    file.write_text('{"type": "threadkeep-export", "version": 3, "user_id": "alice", "exported_at": 1}\n')
    with pytest.raises(InvalidRequest, match="Upgrade"):
        await import_file(settings, file, ALICE, None)
    file.write_text('{"type": "threadkeep-export", "version": 1, "user_id": "alice", "exported_at": 1}\n')
    with pytest.raises(InvalidRequest, match="Import it with commit 8c86409, and export it again"):
        await import_file(settings, file, ALICE, None)
    file.write_text('{"type": "threadkeep-export", "version": 2, "user_id": "alice", "exported_at": 1}\n')
    with pytest.raises(InvalidRequest, match="leave out --agent"):
        await import_file(settings, file, ALICE, "Claude")


MEASURE = """
import resource, sys
from threadkeep.cli import main
code = main(sys.argv[1:])
print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def peak_mb(folder: Path, *arguments: str) -> int:
    """The most memory that a command had."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *arguments],
        cwd=folder, env=environment({}), capture_output=True, text=True, timeout=4 * PATIENCE_S, check=True,
    )  # fmt: skip
    code, peak = done.stdout.splitlines()[-1].split()
    assert code == "0", done.stderr
    return int(peak)


@pytest.mark.parametrize("line", [b"\n", b"x\n", b"this is no JSON at all\n"])
def test_export_of_unreadable_lines_is_given_up(line: bytes, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(threadkeep, "MOST_UNREADABLE_LINES", 10)
    header = encode(ExportHeader(EXPORT_VERSION, ALICE, NOW)) + b"\n"
    assert len(list(threadkeep.read(BytesIO(header + line * 10), most=1000))) <= 11
    with pytest.raises(UnsupportedImport, match="More than 10 lines"):
        list(threadkeep.read(BytesIO(header + line * 11), most=1000))


MEGABYTES = 60


async def test_large_files_need_little_memory(tmp_path: Path):
    """60 MB, read and written: far less than that is needed beyond what any command needs."""
    padding = said("system", "x" * 300_000)
    with (tmp_path / "large.json").open("w") as file:
        file.write("[")
        for number in range(MEGABYTES * 1_000_000 // 300_000):
            nodes = {"system": (None, padding), "q": ("system", said("user", f"Question {number}?"))}
            file.write("," * bool(number) + json.dumps(chatgpt(nodes, "q", conversation_id=f"c{number}")))
        file.write("]")
    assert (tmp_path / "large.json").stat().st_size > MEGABYTES * 1_000_000
    (tmp_path / "small.json").write_text(json.dumps([branched()]))
    small = peak_mb(tmp_path, "import", "small.json", "--user", "alice", "--data", ".threadkeep")
    assert (
        peak_mb(tmp_path, "import", "large.json", "--user", "bob", "--data", ".threadkeep") - small
        < MEGABYTES / 2
    )
    async with opened_store(Settings.load({}, data=tmp_path / ".threadkeep")) as store:
        agent = await keep_agent(store)
        for _ in range(6):
            await store.whole_conversations.add(long_conversation(agent.id), lambda payload: b"")
    (tmp_path / "large.json").unlink()
    small = peak_mb(tmp_path, "export", "bob.zip", "--user", "bob")
    assert peak_mb(tmp_path, "export", "alice.zip", "--user", "alice") - small < MEGABYTES / 2


def long_conversation(agent_id: Any) -> WholeConversation:
    """Ten megabytes of messages."""
    started = Conversation.start(ALICE, agent_id, NOW)
    messages = [
        Message(
            MessageId(new_uuid()), started.id, seq, None, MessageRole.USER, text_parts("x" * 10_000),
            MessageStatus.COMPLETED, NOW, NOW,
        )
        for seq in range(1, 1001)
    ]  # fmt: skip
    return WholeConversation(started, (), messages)
