"""The client for programs without asyncio: the same calls, blocking."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future, wait
from copy import copy
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from threadkeep.client.client import USUAL_URL, Client
from threadkeep.tasks import end_tasks

P = ParamSpec("P")
T = TypeVar("T")

LOOK_EVERY_S = 0.1


class LoopThread:
    """An event loop in a separate thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="threadkeep-client", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Starts work in the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for work in the loop; Ctrl-C cancels it."""
        future = self.start(work)
        try:
            return result_of(future)
        except KeyboardInterrupt:
            future.cancel()
            raise

    @property
    def is_closed(self) -> bool:
        """Whether the thread has ended."""
        return self.loop.is_closed()

    def close(self, within_s: float | None = None) -> None:
        """Cancels running work, then ends the thread; if work takes longer than that, the thread stays."""
        if self.is_closed:
            return
        ending = self.start(_end_all())
        if not wait([ending], within_s).done:
            return
        ending.result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


def result_of(future: "Future[T]") -> T:
    """The result of work in a loop; Ctrl-C works meanwhile.

    Python misses one that arrives just before it starts to wait, so no single wait is long.
    """
    while not future.done():
        wait([future], LOOK_EVERY_S)
    return future.result()


async def _end_all() -> None:
    loop = asyncio.get_running_loop()
    await end_tasks(*(asyncio.all_tasks() - {asyncio.current_task()}))
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


def _waited(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["BlockingClient", P], T]:
    """A client call that returns its result."""

    @wraps(method)
    def call(self: "BlockingClient", *args: P.args, **kwargs: P.kwargs) -> T:
        return self.loop.wait(method(self.client, *args, **kwargs))

    return call


def _iterated(
    method: Callable[Concatenate[Client, P], AsyncGenerator[T]],
) -> Callable[Concatenate["BlockingClient", P], Generator[T]]:
    """A client call that yields items."""

    @wraps(method)
    def call(self: "BlockingClient", *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        items = method(self.client, *args, **kwargs)

        async def following() -> tuple[T] | None:
            async for item in items:
                return (item,)
            return None

        try:
            while (found := self.loop.wait(following())) is not None:
                yield found[0]
        finally:
            if not self.loop.loop.is_closed():
                self.loop.wait(items.aclose())

    return call


class BlockingClient:
    """The client without asyncio: `with BlockingClient(url) as client: for event in client.send(…)`."""

    def __init__(
        self,
        url: str = USUAL_URL,
        *,
        token: str | None = None,
        user: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.client = Client(url, token=token, user=user, headers=headers)
        self.loop = LoopThread()
        self._is_shared = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections and ends the thread, unless they are another's."""
        if not self._is_shared and not self.loop.loop.is_closed():
            self.loop.wait(self.client.close())
            self.loop.close()

    def acting_for(self, user: str) -> "BlockingClient":
        """A client for one of an application's users; the token must be an API key that acts for them.

        It shares this client's connections and thread, which only this one closes.
        """
        other = copy(self)
        other.client, other._is_shared = self.client.acting_for(user), True
        return other

    is_there = _waited(Client.is_there)
    me = _waited(Client.me)
    delete_user = _waited(Client.delete_user)
    agents = _iterated(Client.agents)
    agent = _waited(Client.agent)
    create_agent = _waited(Client.create_agent)
    update_agent = _waited(Client.update_agent)
    preview_agent = _waited(Client.preview_agent)
    duplicate_agent = _waited(Client.duplicate_agent)
    delete_agent = _waited(Client.delete_agent)
    test_mcp_server = _waited(Client.test_mcp_server)
    documents = _iterated(Client.documents)
    add_document = _waited(Client.add_document)
    upload = _waited(Client.upload)
    until_read = _waited(Client.until_read)
    document = _waited(Client.document)
    retry_document = _waited(Client.retry_document)
    delete_document = _waited(Client.delete_document)
    search_documents = _waited(Client.search_documents)
    upload_file = _waited(Client.upload_file)
    read_file = _waited(Client.read_file)
    save_file = _waited(Client.save_file)
    conversations = _iterated(Client.conversations)
    main_conversation = _waited(Client.main_conversation)
    create_conversation = _waited(Client.create_conversation)
    conversation = _waited(Client.conversation)
    update_conversation = _waited(Client.update_conversation)
    delete_conversation = _waited(Client.delete_conversation)
    restore_conversation = _waited(Client.restore_conversation)
    choose_path = _waited(Client.choose_path)
    fork = _waited(Client.fork)
    messages = _iterated(Client.messages)
    context = _waited(Client.context)
    record = _waited(Client.record)
    models = _waited(Client.models)
    send = _iterated(Client.send)
    ask = _waited(Client.ask)
    start = _waited(Client.start)
    post = _waited(Client.post)
    queued = _waited(Client.queued)
    edit_queued = _waited(Client.edit_queued)
    remove_queued = _waited(Client.remove_queued)
    send_held = _iterated(Client.send_held)
    regenerate = _iterated(Client.regenerate)
    follow = _iterated(Client.follow)
    reply = _waited(Client.reply)
    approvals = _waited(Client.approvals)
    answer = _waited(Client.answer)
    abort = _waited(Client.abort)
    turn = _waited(Client.turn)
    receipt = _waited(Client.receipt)
    steps = _iterated(Client.steps)
    feedback = _waited(Client.feedback)
    agent_feedback = _iterated(Client.agent_feedback)
    rerun = _waited(Client.rerun)
    usage = _waited(Client.usage)
    keys = _iterated(Client.keys)
    create_key = _waited(Client.create_key)
    revoke_key = _waited(Client.revoke_key)
    gateways = _waited(Client.gateways)
    create_gateway = _waited(Client.create_gateway)
    delete_gateway = _waited(Client.delete_gateway)
    test_gateway = _waited(Client.test_gateway)
