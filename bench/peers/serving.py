"""Servers in folders of their own, started as their files say."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.contender import Api, Conversation, Pace, Place, ServerContender
from bench.peers.environments import python_of
from bench.peers.processes import Process, end, free_port, process_in, start, wait_until_open
from bench.peers.streams import Reader, answer_waiting

ONE_PIECE = Pace(1, 100)
WARM_UP_TURNS = 3
READY_S = 30
ANSWERED_EVERY_S = 5
QUIET_S, QUIET_SHARE = 0.2, 0.1
"""A server is quiet that uses less than so much of a core for so long."""
MOST_SETTLING_S = 10


@dataclass(slots=True)
class Server:
    """A contender that takes requests."""

    contender: ServerContender
    place: Place
    running: "subprocess.Popen[str]"
    api: Api = field(init=False)

    def __post_init__(self) -> None:
        self.api = Api(self.place.port)

    @property
    def process(self) -> Process:
        """What is measured of it."""
        return process_in(self.place.folder, self.running.pid)

    def reader(self) -> Reader:
        """For turns of this server."""
        return Reader(self.contender, self.place.port)

    def converse(self, count: int, *, with_turn: bool = False) -> list[Conversation]:
        """New conversations; with a turn in them already, nobody's first turn has to make one."""
        made: list[Conversation] = []
        answered_at = time.monotonic()
        for _ in range(count):
            made.append(self.contender.converse(self.api))
            if with_turn:
                reader = self.reader()
                (turn,) = reader.begin(made[-1:], ONE_PIECE)
                reader.read_all()
                if not turn.sent_at:
                    raise RuntimeError(turn.failure or "a turn without a piece")
            if time.monotonic() > answered_at + ANSWERED_EVERY_S:
                self.keep_alive(made)
                answered_at = time.monotonic()
        return made

    def keep_alive(self, conversations: Sequence[Conversation]) -> None:
        """Answers what has been asked on open connections meanwhile."""
        for conversation in conversations:
            if conversation.connection:
                answer_waiting(self.contender, conversation.connection)

    def settle(self) -> None:
        """Waits until it does nothing more for the turns that have ended: that counts, too."""
        until = time.monotonic() + MOST_SETTLING_S
        while time.monotonic() < until:
            cpu_s, syncs = self.process.cpu_s(), self.process.syncs()
            time.sleep(QUIET_S)
            if self.process.cpu_s() - cpu_s < QUIET_S * QUIET_SHARE and self.process.syncs() == syncs:
                return

    def kill(self) -> None:
        """Ends it at once."""
        end(self.running, signal.SIGKILL)

    def restart(self) -> None:
        """Starts it again in the same folder."""
        self.running = _launch(self.contender, self.place)


@contextlib.contextmanager
def serve(contender: ServerContender, folder: Path, model_url: str) -> Generator[Server]:
    """Runs a contender for as long as the block lasts, warmed up by a few turns."""
    folder.mkdir(parents=True)
    place = Place(python_of(contender.lock), folder, free_port(), model_url)
    server = Server(contender, place, _launch(contender, place))
    try:
        _warm_up(server)
        yield server
    finally:
        end(server.running)


def _launch(contender: ServerContender, place: Place) -> "subprocess.Popen[str]":
    launch = contender.launch(place)
    process = start(launch.command, place.folder, launch.environment)
    try:
        wait_until_open(place.port, process, place.folder.with_suffix(".log"))
    except RuntimeError:
        end(process)
        raise
    return process


def _warm_up(server: Server) -> None:
    """The first turns, retried: an open port is not yet a server that has started up."""
    until = time.monotonic() + READY_S
    while True:
        try:
            server.converse(WARM_UP_TURNS, with_turn=True)
        except (RuntimeError, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
        else:
            return
