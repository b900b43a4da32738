"""AgentX over its WebSocket: requests, turns, strangers."""

import base64

from tests.corpus.stage import PIXEL, UNKNOWN, Stage, token_of
from threadkeep.testing import Fail, Gate, NoUsage, Say, Status, Stop, Think, Usage, UseTool, Wait

IMAGE = base64.b64encode(PIXEL).decode()


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def fail() -> str:
    """Fails."""
    raise ValueError("The printer is on fire.")


def send(to: str) -> str:
    """Sends a letter."""
    return f"sent to {to}"


async def agentx_containers_and_images(stage: Stage) -> None:
    """Every request that starts no turn, with what exists, what doesn't, and what is malformed."""
    agent = (await stage.quietly("POST", "/api/agents", body={"name": "Advisor"}))["id"]
    async with stage.socket() as socket:
        for container in (agent, "default", UNKNOWN, "no id"):
            await socket.request("container_create", containerId=container)
            await socket.request("container_get", containerId=container)
        await socket.request("container_list")
        made = await socket.request("image_create", containerId=agent, config={"name": "First"})
        image = made["record"]["imageId"]
        await socket.request("image_create", containerId="default")
        await socket.request("image_create", containerId=agent, config={"systemPrompt": "Be brief."})
        await socket.request("image_create", containerId=UNKNOWN, config={})
        await socket.request("image_create", containerId=agent, config={"name": "x" * 300})
        await socket.request("image_get", imageId=image)
        await socket.request("image_get", imageId=UNKNOWN)
        await socket.request("image_list")
        await socket.request("image_list", containerId=agent)
        await socket.request("image_list", containerId=UNKNOWN)
        await socket.request("image_update", imageId=image, updates={"name": "法律 “First”"})
        await socket.request("image_update", imageId=image, updates={})
        await socket.request("image_update", imageId=UNKNOWN, updates={"name": "None"})
        await socket.request("image_messages", imageId=image)
        await socket.request("image_messages", imageId=UNKNOWN)
        await socket.request("image_run", imageId=image)
        await socket.request("agent_get", agentId=image)
        await socket.request("agent_list", containerId=agent)
        await socket.request("agent_list", containerId="default")
        await socket.request("agent_list", containerId=UNKNOWN)
        await socket.request("agent_destroy", agentId=image)
        await socket.request("agent_get", agentId=image)
        await socket.request("agent_get", agentId=UNKNOWN)
        await socket.request("agent_destroy", agentId=UNKNOWN)
        await socket.request("image_run", imageId=image)
        await socket.request("agent_destroy_all", containerId=agent)
        await socket.request("agent_list", containerId=agent)
        await socket.request("agent_destroy_all", containerId=UNKNOWN)
        await socket.request("image_run", imageId=UNKNOWN)
        await socket.request("image_stop", imageId=image)
        await socket.request("image_stop", imageId=UNKNOWN)
        await socket.request("agent_interrupt", imageId=image)
        await socket.request("agent_interrupt", agentId=image)
        await socket.request("agent_interrupt", imageId=UNKNOWN)
        await socket.request("agent_interrupt")
        await socket.request("message_send", imageId=UNKNOWN, content="Hello?")
        await socket.request("message_send", imageId=image, content=" ")
        await socket.request("message_send", imageId=image, content="x" * 10_001)
        await socket.request("message_send", content="To whom?")
        await socket.request("message_send", imageId=image)
        await socket.request("image_delete", imageId=image)
        await socket.request("image_delete", imageId=image)
        await socket.request("image_get", imageId=image)
        await socket.request("image_list")


async def agentx_malformed(stage: Stage) -> None:
    """What is no request, or one that can't be accepted."""
    conversation = await stage.conversation()
    async with stage.socket() as socket:
        for text in (
            "",
            "{",
            "[]",
            '"text"',
            "{}",
            '{"type":"dance"}',
            '{"type":5}',
            '{"type":"subscribe"}',
            '{"type":"subscribe","sessionId":7}',
            '{"type":"subscribe","sessionId":"no session"}',
            '{"type":"auth"}',
            '{"type":"auth","headers":{"Authorization":7}}',
            '{"type":"auth","headers":{"Authorization":"Bearer no.good.token"}}',
            '{"type":"container_list_request"' + ',"a":[' * 5 + "]" * 5 + "}",
            "[" * 1000,
        ):
            await socket.send(text)
            await socket.read("error")
        for text in (
            '{"type":"dance_request","data":{"requestId":1}}',
            '{"type":"dance_request"}',
            '{"type":"image_get_request","data":{"requestId":"a"}}',
            '{"type":"image_get_request","data":{"requestId":"a","imageId":5}}',
            '{"type":"image_get_request","data":{"requestId":{},"imageId":"x"}}',
            '{"type":"image_get_request","data":{"requestId":1.5,"imageId":"x"}}',
            '{"type":"image_get_request","data":{"requestId":9007199254740993,"imageId":"\\ud800"}}',
            '{"type":"image_update_request","data":{"requestId":"u","imageId":"x","updates":[]}}',
            '{"type":"message_send_request","data":{"requestId":"m","imageId":"x","content":7}}',
            '{"type":"message_send_request","data":{"requestId":"m","imageId":"x","content":[{"text":"a"}]}}',
            '{"type":"message_send_request","data":{"requestId":"m","imageId":"x","content":[{"type":"video"}]}}',
        ):
            await socket.send(text)
            await socket.read(text[9:].split('"')[0].replace("_request", "_response"))
        for part in (
            {"type": "image", "data": "no base64!"},
            {"type": "image", "data": "https://example.org/a.png"},
            {"type": "file", "data": base64.b64encode(b"\0\1\2\3").decode(), "filename": "a.bin"},
            {"type": "file", "data": "", "filename": "nothing.txt"},
        ):
            await socket.request("message_send", imageId=conversation, content=[part])
        await socket.request(
            "message_send", imageId=conversation, content=[{"type": "file", "data": IMAGE}] * 21
        )
        await socket.send({"__ack": "anything"})
        await socket.send({"type": "unsubscribe", "sessionId": "unknown"})


async def agentx_turns(stage: Stage) -> None:
    """Turns that end in every way, as a follower gets them, and then as the history shows them."""
    conversation = await stage.conversation()
    session = (await stage.quietly("GET", f"/api/conversations/{conversation}"))["sessionId"]
    async with stage.socket() as socket, stage.socket(user=None, wire="agentx-stranger") as stranger:
        for it in (socket, stranger):
            await it.send({"type": "subscribe", "sessionId": session})
        stage.script([Say("Gravity"), Say(" pulls\nthings “together”. 👋"), Usage(12, 5)])
        await socket.message(imageId=conversation, content="What is gravity?")
        await socket.read("conversation_end")
        await socket.send({"__ack": socket.cursor})

        stage.script([Think("Hmm."), Think(" Yes."), Say("It is \u2028 so."), Stop("max_tokens"), NoUsage()])
        text = [
            {"type": "text", "text": "Think"},
            {"type": "text", "text": ""},
            {"type": "text", "text": "twice"},
        ]
        await socket.message(agentId=conversation, content=text)
        await socket.read("conversation_end")

        stage.script([Say("I would rather not."), Stop("refusal")])
        await socket.message(imageId=conversation, content="Help me rob a bank.")
        await socket.read("conversation_end")

        stage.script([Status(400, "no such model")])
        await socket.message(imageId=conversation, content="And now?")
        await socket.read("error_message")

        stage.script([Say("Half of"), Fail("broken", "invalid_request_error")])
        await socket.message(imageId=conversation, content="Break.")
        await socket.read("error_message")

        gate = Gate()
        stage.script([Say("Once upon a time"), Wait(gate), Say(" it ended.")])
        await socket.message(imageId=conversation, content="Tell me a story.")
        await socket.read("conversation_responding")
        await socket.request("image_get", imageId=conversation)
        await socket.request("image_run", imageId=conversation)
        await socket.request("agent_get", agentId=conversation)
        await socket.request("agent_list", containerId="default")
        await socket.request("message_send", imageId=conversation, content="Faster!")
        await socket.send(
            {"type": "agent_interrupt_request", "data": {"requestId": "i", "imageId": conversation}}
        )
        await socket.read("agent_interrupt_response", "conversation_end")
        gate.open()

        stage.script([Say(" \n")])
        await socket.message(imageId=conversation, content="Say nothing.")
        await socket.read("error_message")

        await socket.request("image_messages", imageId=conversation)
        end, error = "conversation_end", "error_message"
        await stranger.read(end, end, end, error, error, end, error)
        await stranger.request("image_messages", imageId=conversation)


async def agentx_tools(stage: Stage) -> None:
    """Tool calls: their results, an error, a wrong name, and leave that is given, changed and refused."""
    servers = stage.tools(add, fail, send, name="desk")
    conversation = await stage.conversation(
        settings={
            "mcpServers": servers,
            "tools": {"desk.send": {"access": "ask"}},
        }
    )
    session = (await stage.quietly("GET", f"/api/conversations/{conversation}"))["sessionId"]
    async with stage.socket() as socket:
        await socket.send({"type": "subscribe", "sessionId": session})
        stage.script(
            [Say("Let me add."), UseTool("desk__add", {"a": 19, "b": 23.0}, id="call-1"), Usage(20, 4)],
            [UseTool("desk__fail", {}, id="call-2")],
            [UseTool("desk__nothing", {"x": None}, id="call-3")],
            [UseTool("desk__add", '{"a": 1, "b":', id="call-4")],
            [Say("It is 42."), Usage(50, 6)],
        )
        await socket.message(imageId=conversation, content="What is 19 + 23?")
        await socket.read("conversation_end")
        answers = (
            {"action": "allow"},
            {"action": "edit", "arguments": {"to": "Grace"}},
            {"action": "deny"},
        )
        for number, answer in enumerate(answers, 5):
            stage.script([UseTool("desk__send", {"to": "Ada"}, id=f"call-{number}")], [Say("Done.")])
            turn = await socket.message(imageId=conversation, content="Send it.")
            await socket.read("tool_call_message")
            request = (await stage.approval())["requestId"]
            path = f"/api/turns/{turn}/approvals/{request}"
            await stage.quietly("POST", path, body=answer)
            await socket.read("conversation_end")
        await socket.request("image_messages", imageId=conversation)


async def agentx_attachments(stage: Stage) -> None:
    """Images and files as parts of a message, and in the history."""
    conversation = await stage.conversation()
    async with stage.socket() as socket:
        stage.script([Say("A pixel and a note.")])
        note = base64.b64encode(b"Buy milk.\n").decode()
        content = [
            {"type": "text", "text": "What are these?"},
            {"type": "image", "data": IMAGE, "mediaType": "image/png", "name": "pixel.png"},
            {"type": "file", "data": note, "mediaType": "text/plain", "filename": "note.txt"},
        ]
        turn = await socket.message(imageId=conversation, content=content)
        await stage.ended(turn)
        stage.script([Say("Still one.")])
        turn = await socket.message(imageId=conversation, content=[{"type": "image", "data": IMAGE}])
        await stage.ended(turn)
        await socket.request("image_messages", imageId=conversation)


async def agentx_reconnecting(stage: Stage) -> None:
    """Cursors: each of a turn, in the middle of one, another session's, malformed ones; late subscribers."""
    conversation, other = await stage.conversation(), await stage.conversation()
    session, elsewhere = [
        (await stage.quietly("GET", f"/api/conversations/{it}"))["sessionId"] for it in (conversation, other)
    ]
    cursors: list[str] = []
    async with stage.socket() as socket:
        await socket.send({"type": "subscribe", "sessionId": session})
        stage.script([Say("One,"), Say(" two.")])
        await socket.message(imageId=conversation, content="Count.")
        for kind in ("conversation_start", "text_delta", "conversation_responding", "text_delta"):
            await socket.read(kind)
            cursors.append(socket.cursor)
        await socket.read("conversation_end")
        cursors.append(socket.cursor)
    for cursor in cursors:
        async with stage.socket() as socket:
            await socket.send({"type": "subscribe", "sessionId": session, "afterCursor": cursor})
            if cursor != cursors[-1]:
                await socket.read("conversation_end")
    gate = Gate()
    stage.script([Say("Three,"), Wait(gate), Say(" four.")])
    turn = await stage.begin(conversation, "Go on.")
    await gate.reached()
    async with stage.socket() as socket:
        await socket.send({"type": "subscribe", "sessionId": session})
        await socket.read("conversation_responding")
        middle = socket.cursor
        async with stage.socket(user=None, wire="agentx-stranger") as stranger:
            await stranger.send({"type": "subscribe", "sessionId": session, "afterCursor": middle})
            gate.open()
            await stranger.read("conversation_end")
        await socket.read("conversation_end")
        await socket.send({"type": "subscribe", "sessionId": session, "afterCursor": middle})
        await socket.read("conversation_end")
        for cursor in ("nonsense", f"{UNKNOWN}:1:0", f"{turn}:0:0", f"{turn}:99:0"):
            await socket.send({"type": "subscribe", "sessionId": session, "afterCursor": cursor})
            await socket.settle()
        await socket.send({"type": "subscribe", "sessionId": elsewhere, "afterCursor": middle})
        await socket.read("error")


async def agentx_changes(stage: Stage) -> None:
    """What a follower hears that belongs to no turn: another branch, a new session, a deletion."""
    conversation = await stage.conversation()
    path = f"/api/conversations/{conversation}"
    session = (await stage.quietly("GET", path))["sessionId"]
    stage.script([Say("First.")], [Say("Second.")])
    await stage.ended(await stage.begin(conversation))
    first = (await stage.quietly("GET", f"{path}/messages"))["items"][-1]["id"]
    again = await stage.quietly("POST", f"{path}/regenerate", body={})
    await stage.ended(again["turnId"])
    async with stage.socket() as socket:
        await socket.send({"type": "subscribe", "sessionId": session})
        await socket.settle()
        await stage.quietly("POST", f"{path}/path", body={"messageId": first})
        await socket.read("path_changed")
        session = (await stage.quietly("POST", f"{path}/session"))["sessionId"]
        await socket.read("error")
        await socket.send({"type": "subscribe", "sessionId": session})
        await socket.settle()
        await stage.quietly("DELETE", path)
        await socket.read("error")
        await socket.send({"type": "subscribe", "sessionId": session})
        await socket.read("error")


async def agentx_strangers(stage: Stage) -> None:
    """Nobody has signed in: each request is refused; sign-in by a message; other people's things."""
    conversation = await stage.conversation()
    async with stage.socket(user=None) as socket:
        await socket.request("container_list")
        await socket.request("message_send", imageId=conversation, content="Hello?")
        await socket.send({"type": "auth", "headers": {"authorization": f"Bearer {token_of('bob')}"}})
        await socket.request("image_get", imageId=conversation)
        await socket.request("message_send", imageId=conversation, content="Hello?")
        await socket.request("agent_destroy", agentId=conversation)
        await socket.send({"type": "auth", "headers": {"Authorization": f"Bearer {token_of('alice')}"}})
        await socket.read("error")
    async with stage.socket(user=None) as socket:
        for number in range(3):
            await socket.send({"type": "subscribe", "sessionId": f"unknown {number}"})
        await socket.closed()
    async with stage.socket(user=None) as socket:
        await socket.send({"type": "nothing_request", "data": {"text": "x" * 65_536}})
        await socket.closed()


SCENARIOS = (
    agentx_containers_and_images,
    agentx_malformed,
    agentx_turns,
    agentx_tools,
    agentx_attachments,
    agentx_reconnecting,
    agentx_changes,
    agentx_strangers,
)
