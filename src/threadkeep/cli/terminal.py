"""`threadkeep chat`: chats with an agent in the terminal.

The terminal belongs to the main thread, which waits for lines and for Ctrl-C. Everything that waits for the
network runs in an event loop in a second thread.

By hand, with `readline`: prompt_toolkit and rich would add 0.2 seconds to the start of this command, and four
packages to every server.
"""

import importlib
import json
import os
import re
import sys
from collections import deque
from collections.abc import AsyncGenerator, Coroutine
from concurrent.futures import Future, wait
from contextlib import AsyncExitStack, aclosing, suppress
from typing import IO, Any

from threadkeep.cli.asking import Read, TypedDecision, ask
from threadkeep.cli.attaching import Attached
from threadkeep.cli.completion import complete_with
from threadkeep.cli.conversations import MOST_LISTED, listing, recap
from threadkeep.cli.keyboard import LOOK_EVERY_S, Keyboard, NoLongerAsked
from threadkeep.cli.target import connect, find_agent, leave
from threadkeep.cli.wrapping import Wrap
from threadkeep.client.blocking import LoopThread, result_of
from threadkeep.client.client import Client
from threadkeep.client.errors import ClientError
from threadkeep.domain.approval import ApprovalAction, ApprovalScope
from threadkeep.domain.errors import InvalidRequest, ThreadkeepError
from threadkeep.domain.events import (
    ApprovalRequest,
    ApprovalResponse,
    Done,
    EventBody,
    Failed,
    IterationRestart,
    IterationStart,
    Notice,
    Retrieval,
    StepChanged,
    Text,
    Thought,
    ToolCalled,
    ToolProgress,
    ToolResultStored,
    TurnEvent,
    TurnResumed,
    TurnStart,
    UsageReported,
    UserMessage,
)
from threadkeep.domain.file import file_line
from threadkeep.domain.mcp import USER
from threadkeep.domain.message import MessageRole
from threadkeep.ports.gateway import DEMONSTRATION_MODEL
from threadkeep.settings import Settings
from threadkeep.wire.approvals import ApprovalView
from threadkeep.wire.messages import MessageView
from threadkeep.wire.models import ModelView
from threadkeep.wire.parts import FilePartView
from threadkeep.wire.queue import SteeredView
from threadkeep.wire.turns import StartedTurnView
from threadkeep.wire.views import AgentView, ConversationDetailView, ConversationView

HELP = """/new        start a new conversation
/list       list your latest conversations with this agent
/open N     go on with conversation N of that list
/file PATH  attach files to your next message; press Enter to send. Without a path: list them
/unfile N   remove attached file N. Without a number: remove all
/model ID   choose the model that answers. Without an id: list the models that the agent offers
/help       show this help
/quit       leave (or press Ctrl-D)
Ctrl-C      stop the answer and keep what has arrived; press again to leave
While the agent answers, type a line and press Enter to queue it; start it with ! to steer the answer."""
DEMONSTRATION = (
    "This small demonstration model answers, but knows little. To use a real one, connect it on the page, or "
    "set ANTHROPIC_API_KEY or OPENAI_API_KEY."
)
MOST_ARGUMENT_CHARACTERS = 200
STEER = "!"
COMMANDS = ("/new", "/list", "/open ", "/file ", "/unfile", "/model ", "/help", "/quit", "/exit")

_COMMAND = re.compile(r"/(?:file|unfile|model|open)(?: .*)?|/\w+")

_DECIDED = {
    ApprovalAction.ALLOW: "allowed",
    ApprovalAction.DENY: "denied",
    ApprovalAction.EDIT: "allowed with changed arguments",
    ApprovalAction.ANSWER: "answered",
    ApprovalAction.RESULT: "run by the client",
    ApprovalAction.EXPIRE: "not answered in time",
}

_DIM, _PLAIN, _ERASE_LINE = "\x1b[2m", "\x1b[0m", "\r\x1b[K"
# A model's output is text and must not control the terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Screen:
    """Shows output as it arrives; on a terminal, wraps it at words and dims asides."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._is_terminal = out.isatty() and os.environ.get("TERM") != "dumb"
        self._dims = self._is_terminal and not os.environ.get("NO_COLOR")
        self._wrap = Wrap(self._columns)
        self._kind: str | None = None
        self._is_at_start = True
        self._is_waiting = False
        self._begins_call = False
        self._has_noted_demonstration = False
        self._questions: set[str] = set()
        """The calls that ask the user a question."""

    def show(self, event: EventBody) -> None:
        """One event of a turn."""
        match event:
            case TurnStart(model=model):
                if (model or "").endswith(DEMONSTRATION_MODEL) and not self._has_noted_demonstration:
                    self._has_noted_demonstration = True
                    self.aside(DEMONSTRATION)
            case Text(text):
                self._stream("text", text)
            case Thought(text):
                self._stream("thought", text)
            case ToolCalled(tool_call_id=id_, server=server) if server == USER:
                self._questions.add(id_)  # shown when it is asked
            case ToolResultStored(tool_call_id=id_, status="ok") if id_ in self._questions:
                pass
            case ToolCalled(tool_name=name, arguments=arguments):
                self.aside(f"→ {name} {_short(json.dumps(arguments, ensure_ascii=False))}")
            case ToolResultStored(tool_name=name, status=status, error=error):
                self.aside(f"← {name}: {_short(error or status)}")
            case StepChanged(status="running"):
                self.aside(f"→ {_short(event.title or event.name)}")
            case StepChanged(status="ok"):
                pass
            case StepChanged(status=status):
                self.aside(f"← {_short(event.title or event.name)}: {status}")
            case Notice(message=message):
                self.aside(f"! {message}")
            case Done(status=status):
                if status == "CANCELLED":
                    self.aside("(stopped; the partial answer is saved)")
                self._end_line()
            case Failed(message=message):
                self.line(f"Error: {message}")
            case IterationStart(iteration):
                self._wait()
                self._begins_call = iteration > 1
            case TurnResumed():
                self.aside("(the server was interrupted; resuming)")
            case IterationRestart():
                self.aside("(restarting the answer)")
                self._wait()
                self._begins_call = True
            case UserMessage(content=content):
                self.aside(f"> {_short(content)}")
            case ApprovalRequest(message=message):
                self.line(f"? {message}")
            case ApprovalResponse(action=action, scope=scope):
                here = " in this conversation" if scope is ApprovalScope.CONVERSATION else ""
                self.aside(f"({_DECIDED[action]}{here})")
            case Retrieval() | ToolProgress() | UsageReported():
                pass

    @property
    def is_terminal(self) -> bool:
        """Whether somebody looks."""
        return self._is_terminal

    def aside(self, text: str) -> None:
        """A line that isn't part of the reply."""
        self._end_line()
        self._part_calls()
        self._write(self._dimmed(self._wrapped(text)) + "\n")

    def line(self, text: str) -> None:
        """A separate line."""
        self._end_line()
        self._write(self._wrapped(text) + "\n")

    def end_line(self) -> None:
        """Makes the next output start a new line."""
        self._end_line()

    def _wait(self) -> None:
        """Shows that the model is working, until something replaces it."""
        if self._is_terminal:
            self._end_line()
            self._write(self._dimmed("…"))
            self._is_waiting = self._is_at_start = True

    def _stream(self, kind: str, text: str) -> None:
        if self._kind != kind:
            self._end_line()
            self._part_calls()
            self._kind = kind
        text = self._wrapped(text)
        self._write(self._dimmed(text) if kind == "thought" else text)

    def _end_line(self) -> None:
        self._kind = None
        self._wrap = Wrap(self._columns)
        if not self._is_at_start:
            self._write("\n")

    def _part_calls(self) -> None:
        """Puts a blank line before the output of a later model call."""
        if self._begins_call:
            self._begins_call = False
            self._write("\n")

    def _wrapped(self, text: str) -> str:
        """The next piece of a text, or all of it, wrapped."""
        return self._wrap.feed(clean(text))

    def _columns(self) -> int:
        """The terminal's width; 0 if there is none or it's unknown."""
        if self._is_terminal:
            with suppress(OSError):
                return os.get_terminal_size(self._out.fileno()).columns
        return 0

    def _dimmed(self, text: str) -> str:
        return f"{_DIM}{text}{_PLAIN}" if self._dims and text else text

    def _write(self, text: str) -> None:
        if text:
            self._out.write(_ERASE_LINE + text if self._is_waiting else text)
            self._out.flush()
            self._is_waiting = False
            self._is_at_start = text.removesuffix(_PLAIN).endswith("\n")


class Chat:
    """One chat: an agent, a conversation, and its screen."""

    def __init__(
        self, client: Client, agent: AgentView, conversation: ConversationDetailView, screen: Screen
    ) -> None:
        self.agent = agent
        self.has_more = False
        """Whether there are turns that haven't been shown."""
        self.asked: deque[ApprovalView] = deque()
        """Turns' requests that the user hasn't been asked yet."""
        self.decided: set[str] = set()
        """The requests that have a decision, from here or elsewhere, or whose turn has ended."""
        self._requested: set[str] = set()
        """All requests of turns so far."""
        self.attached = Attached(client, screen.aside)
        self.unsent = ""
        """Typed text that couldn't be sent."""
        self.model: str | None = None
        """The model that the user chose; None for the agent's own."""
        self.screen = screen
        self._client = client
        self._screen = screen
        self._listed: list[str] = []
        """The ids of the conversations in the list that was shown last."""
        self._enter(conversation)

    def _enter(self, conversation: ConversationDetailView) -> None:
        """Goes on with a conversation."""
        self._conversation: ConversationView = conversation
        self._seen = {message.turn_id for message in conversation.messages}
        """The turns that were shown, or existed before."""
        if conversation.active_turn_id is not None:  # it continues, or waits for a decision
            self._seen.discard(conversation.active_turn_id)
            self.has_more = True

    def show_where(self, conversation: ConversationDetailView) -> None:
        """Shows where a conversation goes on."""
        for text, is_aside in recap(conversation):
            (self._screen.aside if is_aside else self._screen.line)(text)

    async def list_conversations(self) -> None:
        """Lists the latest conversations with this agent."""
        found: list[ConversationView] = []
        try:
            async with aclosing(self._client.conversations(agent_id=self.agent.id)) as every:
                async for it in every:
                    if len(found) == MOST_LISTED:
                        break
                    found.append(it)
        except ThreadkeepError as exc:
            self._screen.line(f"Error: {exc.message}")
            return
        self._listed = [it.id for it in found]
        for line in listing(found, self._conversation.id):
            self._screen.aside(line)
        self._screen.aside("(/open N goes on with one of them)")

    async def open(self, number: str) -> None:
        """Goes on with a conversation of the list."""
        if not self._listed:
            await self.list_conversations()
        if not number.isdecimal() or not 0 < int(number) <= len(self._listed):
            self._screen.aside("Name one by its number in the list, for example /open 2.")
            return
        try:
            conversation = await self._client.conversation(self._listed[int(number) - 1])
        except ThreadkeepError as exc:
            self._screen.line(f"Error: {exc.message}")
            return
        self._enter(conversation)
        if conversation.messages:
            self.show_where(conversation)
        else:
            self._screen.aside("(an empty conversation)")

    async def say(self, content: str) -> None:
        """Sends a message with the attached files and shows the reply.

        If messages are held, it is queued behind them. Keeps what can't be sent.
        """
        attached, turns_before = self.attached, len(self._seen)
        for line in attached.lines():
            self._screen.aside(line)
        try:
            events = self._client.send(self._conversation.id, content, files=attached.files, model=self.model)
            if not await self._show(events):
                self._screen.aside("(queued)")
                self.has_more = True
        except ThreadkeepError as exc:
            self._screen.line(f"Error: {exc.message}")
            if len(self._seen) == turns_before:
                self.unsent = content
                return
        attached.files = []

    async def add(self, line: str) -> None:
        """Queues a line typed while a reply arrives, or steers the reply with it."""
        content = line.removeprefix(STEER).strip()
        if not content:
            return
        if _COMMAND.fullmatch(content):
            self._screen.aside("(commands are available once the answer is complete)")
            return
        try:
            when_busy = "steer" if line.startswith(STEER) else "queue"
            model = self.model if when_busy == "queue" else None
            sent = await self._client.post(self._conversation.id, content, when_busy=when_busy, model=model)
        except ThreadkeepError as exc:
            self._screen.line(f"Error: {exc.message}")
            return
        self.has_more = True
        if not isinstance(sent, StartedTurnView):
            self._screen.aside("(steered)" if isinstance(sent, SteeredView) else "(queued)")

    async def choose_model(self, wanted: str) -> None:
        """Chooses the model that replies from now on; without one, lists what the agent offers."""
        try:
            models = await self._client.models(self.agent.id)
        except ThreadkeepError as exc:
            self._screen.line(f"Error: {exc.message}")
            return
        named = [it for it in models if wanted in (it.id, it.name)]
        if len(named) == 1:
            self.model = None if named[0].default else named[0].id
            self._screen.aside(f"({named[0].id} answers)")
            return
        if wanted:
            self._screen.aside(f"The agent doesn't offer the model {wanted}.")
        used = self.model or next((it.id for it in models if it.default), "")
        for it in models:
            self._screen.aside(f"{'*' if it.id == used else ' '} {it.id}{_price(it)}")

    async def show_more(self) -> None:
        """Shows the replies to queued messages, until there are no more."""
        self.has_more = False
        try:
            while unseen := await self._unseen():
                for asked in unseen:
                    self._show_question(asked)
                    await self._show(self._client.follow(str(asked.turn_id)))
            held = await self._client.queued(self._conversation.id)
        except ThreadkeepError as exc:
            self._screen.line(f"Error: {exc.message}")
            return
        if held:
            self._screen.aside(f"({len(held)} queued; sent before your next message)")

    def _show_question(self, asked: MessageView) -> None:
        self._screen.aside(f"> {_short(str(asked.content))}")
        for part in asked.parts:
            if isinstance(part, FilePartView):
                self._screen.aside(file_line(part.file_name, part.media_type, part.size))

    async def _unseen(self) -> list[MessageView]:
        """The questions whose replies weren't shown: the next turn begins when the one before ends."""
        latest = (await self._client.conversation(self._conversation.id)).messages
        return [it for it in latest if it.role == MessageRole.USER and it.turn_id not in self._seen]

    async def _show(self, events: AsyncGenerator[TurnEvent]) -> bool:
        """Shows a turn; returns whether there was anything to show."""
        is_shown = False
        async for event in events:
            is_shown = True
            self._seen.add(event.turn_id)
            self._screen.show(event.body)
            await self._note_request(event)
        return is_shown

    async def _note_request(self, event: TurnEvent) -> None:
        """Queues a turn's request for the user, unless it has a decision."""
        match event.body:
            case ApprovalRequest(request_id=request_id):
                self._requested.add(request_id)
                self.asked.extend(it for it in await self._client.approvals() if it.request_id == request_id)
            case ApprovalResponse(request_id=request_id):
                self.decided.add(request_id)
            case Done() | Failed():
                self.decided |= self._requested
            case _:
                pass

    async def decide(self, asked: ApprovalView, reply: TypedDecision) -> bool:
        """Decides on a turn's request; returns whether that is settled."""
        try:
            await self._client.answer(
                asked.turn_id,
                asked.request_id,
                reply.action,
                scope=reply.scope,
                arguments=reply.arguments,
                content=reply.content,
            )
        except ClientError as exc:
            self._screen.line(f"Error: {exc.message}")
            return exc.code != InvalidRequest.code
        except ThreadkeepError as exc:
            self._screen.line(f"Error: {exc.message}")
            return False
        self.decided.add(asked.request_id)
        return True

    async def stop(self) -> None:
        """Stops the reply in progress."""
        try:
            await self._client.abort(self._conversation.id)
        except ThreadkeepError as exc:
            self._screen.line(f"Error: {exc.message} Ctrl-C leaves.")

    async def start_new_conversation(self) -> None:
        """Begins a new conversation."""
        try:
            fresh = await self._client.create_conversation(self.agent.id)
        except ThreadkeepError as exc:
            self._screen.line(f"Error: {exc.message}")
            return
        is_same = fresh.id == self._conversation.id
        self._conversation = fresh
        self._screen.aside(
            "This agent has only one conversation; continuing it." if is_same else "(new conversation)"
        )


def _price(model: ModelView) -> str:
    price = model.price
    return f"  ({price.input} in, {price.output} out, per million tokens)" if price else ""


def chat(
    settings: Settings, *, agent: str | None, model: str | None, url: str | None, token: str | None
) -> int:
    """Chats until the user leaves."""
    screen = Screen(sys.stdout)
    stack = AsyncExitStack()
    loop = LoopThread()
    try:
        talk = loop.wait(_open(settings, stack, screen, agent=agent, url=url, token=token))
        if model is not None:
            loop.wait(talk.choose_model(model))
        _converse(loop, talk, screen)
    except KeyboardInterrupt:
        screen.line("")
    finally:
        leave(loop, stack)
    return 0


async def _open(
    settings: Settings,
    stack: AsyncExitStack,
    screen: Screen,
    *,
    agent: str | None,
    url: str | None,
    token: str | None,
) -> Chat:
    client = await connect(settings, stack, url=url, token=token, creates_data=True)
    found = await find_agent(client, agent)
    main = await client.main_conversation(found.id)
    conversation = await client.conversation(main.id)
    talk = Chat(client, found, conversation, screen)
    screen.aside(f"Chatting with {found.name}. Type /help for commands, or press Ctrl-D to leave.")
    if screen.is_terminal:  # a program that reads knows what it has sent
        talk.show_where(conversation)
    return talk


def _converse(loop: LoopThread, talk: Chat, screen: Screen) -> None:
    keyboard = Keyboard()
    prompt = "> " if keyboard.is_terminal else ""
    if prompt:
        with suppress(ImportError):
            readline = importlib.import_module("readline")  # line editing and history
            readline.parse_and_bind("set enable-bracketed-paste on")  # pasted lines are one message
            complete_with(readline, COMMANDS)
    with suppress(EOFError):
        _wait_for_reply(loop, talk, keyboard)  # what began before
        while True:
            try:
                line = keyboard.line(prompt, begin_with=talk.unsent).encode("utf-8", "replace").decode()
            except EOFError:
                if prompt:
                    screen.line("")
                return
            talk.unsent = ""
            if line in {"/quit", "/exit"}:
                return
            if _COMMAND.fullmatch(line):
                _carry_out(loop, talk, line)
                _wait_for_reply(loop, talk, keyboard)  # the opened conversation's, if one is running
            elif line or talk.attached.files:
                _wait_for_reply(loop, talk, keyboard, line)


def _carry_out(loop: LoopThread, talk: Chat, line: str) -> None:
    command, _, rest = line.partition(" ")
    match command:
        case "/help":
            talk.screen.aside(HELP)
        case "/new":
            loop.wait(talk.start_new_conversation())
        case "/list":
            loop.wait(talk.list_conversations())
        case "/open":
            loop.wait(talk.open(rest.strip()))
        case "/file":
            try:
                loop.wait(talk.attached.add(rest.strip()))
            except KeyboardInterrupt:
                talk.screen.aside("(stopped; remaining files not attached)")
        case "/unfile":
            talk.attached.remove(rest)
        case "/model":
            loop.wait(talk.choose_model(rest.strip()))
        case _:
            talk.screen.aside(f"Unknown command {command}.\n{HELP}")


def _wait_for_reply(loop: LoopThread, talk: Chat, keyboard: Keyboard, line: str | None = None) -> None:
    """Waits for the reply. Ctrl-C stops it; a second one propagates and leaves the chat."""
    with keyboard.unseen():
        if line is not None:
            _wait_for(loop, talk, talk.say(line), keyboard)
        while talk.has_more:
            _wait_for(loop, talk, talk.show_more(), keyboard)


def _wait_for(loop: LoopThread, talk: Chat, work: Coroutine[Any, Any, None], keyboard: Keyboard) -> None:
    replying = loop.start(work)
    can_look = keyboard.can_look
    try:
        try:
            while not replying.done():
                if talk.asked:
                    _ask(loop, talk, keyboard, talk.asked.popleft(), replying)
                elif not can_look:
                    wait([replying], LOOK_EVERY_S)
                else:
                    can_look = _take_line(loop, talk, keyboard)
            replying.result()
        except KeyboardInterrupt:
            loop.wait(talk.stop())
            result_of(replying)
    finally:
        replying.cancel()


def _take_line(loop: LoopThread, talk: Chat, keyboard: Keyboard) -> bool:
    """Queues a line typed while a reply arrives; returns whether more may come."""
    try:
        line = keyboard.look()
    except EOFError:
        return False
    if line is not None:
        loop.wait(talk.add(line.strip()))
    return True


def _ask(
    loop: LoopThread, talk: Chat, keyboard: Keyboard, asked: ApprovalView, replying: "Future[None]"
) -> None:
    """Asks the user a turn's request, until it has a decision."""

    def is_asked() -> bool:
        return asked.request_id not in talk.decided and not replying.done()

    def read(prompt: str, begin_with: str) -> str:
        talk.screen.end_line()
        return keyboard.ask(clean(prompt).replace("\n", " "), is_asked, begin_with=begin_with)

    try:
        while is_asked() and not loop.wait(talk.decide(asked, ask(asked, Read(read), talk.screen.line))):
            pass
    except NoLongerAsked:
        pass
    except EOFError:
        talk.screen.line("(the turn is waiting for your answer; `threadkeep chat` asks again)")
        raise


def clean(text: str) -> str:
    """Text without terminal control sequences."""
    return _CONTROLS.sub("", text)


def _short(text: str) -> str:
    return text if len(text) <= MOST_ARGUMENT_CHARACTERS else f"{text[:MOST_ARGUMENT_CHARACTERS]}…"
