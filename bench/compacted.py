"""What the next turn costs in a conversation of 5,000 messages that was compacted, against one of 50."""

from collections.abc import Sequence

from bench.data import Dataset, make_conversation
from bench.databases import LARGE_DATABASES
from bench.measure import Effort, compare
from bench.sample import READER
from bench.servers import Server
from bench.sse import Streams
from bench.table import Aim, Times
from bench.turns import ask, serve_with_speaker, signed_in
from threadkeep.domain.conversation import Conversation
from threadkeep.domain.ids import AgentId, new_uuid

SHORT, LONG = 50, 5_000
COPIES = 4
PIECES, RATE = 20, 200
AIM = Aim("≤", 1.2, "P50")


async def measure(effort: Effort, databases: Sequence[str]) -> Sequence[Times]:
    """The server's processor time a turn, round by round, both kinds in turns."""
    lines: list[Times] = []
    for name, loaded in LARGE_DATABASES.items():
        if name not in databases:
            continue
        agent = AgentId(new_uuid())
        short, long = (
            [make_conversation(READER, agent, length=length) for _ in range(COPIES)]
            for length in (SHORT, LONG)
        )
        async with loaded(Dataset(agent, [*short, *long])) as url:
            rounds = _rounds(url, short, long, 1 + effort.http_rounds)
        floor, ours = zip(*rounds[1:], strict=True)  # the first round warms up
        ratio = compare(floor, ours).ratio
        lines += [
            Times.of(f"{name}: a turn after {SHORT} messages, server CPU", floor),
            Times.of(f"{name}: a turn after {LONG:,} messages, compacted, server CPU", ours),
            Times.of(f"{name}: the second against the first (medians)", [ratio], "times", AIM),
        ]
    return lines


def _rounds(
    url: str, short: Sequence[Conversation], long: Sequence[Conversation], count: int
) -> list[tuple[float, float]]:
    with (
        serve_with_speaker(url) as server,
        signed_in(server) as client,
    ):
        for conversation in long:
            client.post(f"/api/conversations/{conversation.id}/compact", json={}).raise_for_status()
        return [(_cost(server, short), _cost(server, long)) for _ in range(count)]


def _cost(server: Server, conversations: Sequence[Conversation]) -> float:
    """Milliseconds of the server's processors a turn."""
    before = server.cpu_s()
    streams = Streams(server.port)
    streams.open(ask(it.id, PIECES, RATE) for it in conversations)
    streams.read_all()
    return (server.cpu_s() - before) * 1000 / len(conversations)
