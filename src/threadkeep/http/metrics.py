"""This server's metrics in Prometheus' text format, for loopback and for admins."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from ipaddress import ip_address

from starlette.requests import Request
from starlette.responses import Response

from threadkeep.domain.agent import Places
from threadkeep.domain.errors import Forbidden, ThreadkeepError
from threadkeep.domain.money import UNIT
from threadkeep.handling.errors import error_response
from threadkeep.handling.services import Services
from threadkeep.http.siblings import Siblings
from threadkeep.http.sign_in.presence import Presence
from threadkeep.metrics import Histogram, Metrics
from threadkeep.ports.gateways import GatewayState
from threadkeep.runtime.programs import NodePrograms
from threadkeep.version import __version__

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_endpoint(
    presence: Presence, services: Callable[[], Awaitable[Services]], siblings: Siblings | None
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of `GET /metrics`."""

    async def respond(request: Request) -> Response:
        try:
            if not _is_from_here(request) and not (await presence.user(request)).is_admin:
                raise Forbidden("From other machines, metrics need the token or the API key of an admin.")
            served = await services()
            text = "".join(render(served)) if siblings is None else merge(await siblings.ask())
            reservations = await served.store.ledger.open_reservations()
            programs = [(it.key, it.is_ready) for it in await served.store.programs.all()]
            waiting = await served.workers.waiting_turns()
            idle, _ = await served.store.idle.noted()
            text += "".join(_of_all_nodes(reservations, programs, waiting, idle))
        except ThreadkeepError as exc:
            return error_response(exc, request_id=request.state.request_id)
        return Response(text, media_type=_TYPE)

    return respond


def _is_from_here(request: Request) -> bool:
    """Whether the request comes from this machine itself, and not through a proxy on it."""
    forwarded = any(name in request.headers for name in ("x-forwarded-for", "forwarded", "x-real-ip"))
    try:
        return not forwarded and request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def merge(texts: Mapping[int, str]) -> str:
    """The metrics of several processes, by their numbers, in one text: each family once, with all values."""
    families: dict[str, list[str]] = {}
    for number, text in texts.items():
        for family in text.split("# HELP ")[1:]:
            help_text, type_, *values = family.splitlines(keepends=True)
            merged = families.setdefault(f"# HELP {help_text}{type_}", [])
            merged += (_of_process(number, value) for value in values)
    return "".join(head + "".join(values) for head, values in families.items())


def _of_process(number: int, line: str) -> str:
    name, has_labels, rest = line.partition("{")
    if not has_labels:
        name, _, rest = line.partition(" ")
    return f'{name}{{worker="{number}"{"," if has_labels else "} "}{rest}'


def render(services: Services) -> Iterator[str]:
    """All metrics of this process, one per line."""
    metrics = services.metrics
    this = {f'version="{__version__}",node="{services.running_turns.node_id}"': 1}
    yield from _family("threadkeep_info", "gauge", "The running version and the node's name.", this)
    running = {"": services.turns.running_count}
    yield from _family("threadkeep_turns_running", "gauge", "Turns running on this node.", running)
    ended = _labelled("status", metrics.turns_ended)
    yield from _family("threadkeep_turns_ended_total", "counter", "Ended turns by status.", ended)
    tokens = _labelled("kind", metrics.tokens)
    yield from _family("threadkeep_tokens_total", "counter", "Tokens used by ended turns.", tokens)
    costs = {
        f'model="{_escaped(model)}",currency="{currency}"': cost / UNIT
        for (model, currency), cost in sorted(metrics.costs.items())
    }
    yield from _family("threadkeep_cost_total", "counter", "What model calls have cost, by model.", costs)
    help_text = "Conversations without messages whose users were told, and those deleted, on this node."
    yield from _family(
        "threadkeep_idle_conversations_total", "counter", help_text, _labelled("what", metrics.idle)
    )
    states = _labelled("state", Counter(it.value for it in services.mcp_servers.states()))
    yield from _family("threadkeep_mcp_servers", "gauge", "MCP servers on this node by state.", states)
    failures = _labelled("loop", services.loops.failures)
    yield from _family("threadkeep_loop_failures_total", "counter", "Failures of background loops.", failures)
    failing = {name: int(name in services.loops.failing) for name in services.loops.failures}
    help_text = "Whether a background loop keeps failing."
    yield from _family("threadkeep_loop_failing", "gauge", help_text, _labelled("loop", failing))
    services.live_gateways.look_soon()  # for the next scrape
    health = services.live_gateways.health().items()
    down = {name: int(it.state is GatewayState.FAILING) for name, it in health}
    help_text = "Whether the last request to a model provider failed."
    yield from _family("threadkeep_gateway_failing", "gauge", help_text, _labelled("gateway", down))
    yield from _of_programs(metrics, services.workers.here)
    lag = {"": metrics.event_lag}
    help_text = "Seconds from an event's arrival until it is stored and shown."
    yield from _histograms("threadkeep_event_lag_seconds", help_text, lag)
    latency = {f'kind="{kind}"': histogram for kind, histogram in metrics.store_latency.items()}
    help_text = "Seconds spent in the database."
    yield from _histograms("threadkeep_store_seconds", help_text, latency)


def _of_programs(metrics: Metrics, programs: NodePrograms) -> Iterator[str]:
    """What the programs of agents in code do in this process."""
    running = _labelled("agent", programs.running)
    help_text = "Turns of agents in code running on this node."
    yield from _family("threadkeep_program_turns_running", "gauge", help_text, running)
    steps = {
        f'agent="{_escaped(agent)}",name="{_escaped(name)}",status="{status}",effect="{effect}"': count
        for (agent, name, status, effect), count in sorted(metrics.steps.items())
    }
    help_text = "Ended steps of agents in code; beyond 200 names, `other`."
    yield from _family("threadkeep_program_steps_total", "counter", help_text, steps)
    for name, help_text, counts in (
        ("divergences", "Turns that ended because the code asked for something else.", metrics.divergences),
        ("unknown_outcomes", "Steps that may have taken effect; nobody knows.", metrics.unknown_outcomes),
        ("replayed", "Recorded results that code was run again with.", metrics.replayed),
    ):
        values = _labelled("agent", {_escaped(key): count for key, count in counts.items()})
        yield from _family(f"threadkeep_program_{name}_total", "counter", help_text, values)
    port = programs.port
    help_text = "Seconds for which agents in code have kept their event loop from answering."
    blocked = {"": port.blocked_total_s if port else 0.0}
    yield from _family("threadkeep_program_blocked_seconds_total", "counter", help_text, blocked)
    yield from _of_places(port.places if port else {})


def _of_places(places: Mapping[str, Places]) -> Iterator[str]:
    """How full the threads are that run what isn't `async`."""
    most, taken, waiting = Counter[str](), Counter[str](), Counter[str]()
    for kind, it in places.items():
        most[kind], taken[kind], waiting[kind] = it.most, it.taken, it.waiting
    for name, help_text, values in (
        ("places", "Threads for functions of agents in code that block.", most),
        ("places_taken", "Threads that run one now.", taken),
        ("places_awaited", "Functions that wait for one.", waiting),
    ):
        yield from _family(f"threadkeep_program_{name}", "gauge", help_text, _labelled("kind", values))


def _of_all_nodes(
    open_reservations: int, programs: Iterable[tuple[str, bool]], waiting: Mapping[str, int], idle: int
) -> Iterator[str]:
    """What the database knows, whichever process is asked."""
    help_text = "Model calls that have something reserved in a budget, on all nodes."
    yield from _family("threadkeep_reservations_open", "gauge", help_text, {"": open_reservations})
    help_text = "Conversations that will be deleted because nobody writes in them, as their users can see."
    yield from _family("threadkeep_conversations_deleting", "gauge", help_text, {"": idle})
    workers = Counter[str]()
    for key, is_ready in programs:
        workers[key] += is_ready
    help_text = (
        "Processes that run the program of an agent in code, on all nodes; 0 for a day after the last."
    )
    yield from _family("threadkeep_program_workers", "gauge", help_text, _labelled("agent", workers))
    help_text = "Turns on all nodes that wait because no process runs their program."
    yield from _family(
        "threadkeep_program_turns_waiting", "gauge", help_text, _labelled("agent", dict(waiting))
    )


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _labelled(label: str, counts: Mapping[str, int]) -> dict[str, int]:
    return {f'{label}="{name}"': count for name, count in sorted(counts.items())}


def _family(name: str, kind: str, help_text: str, values: Mapping[str, float]) -> Iterator[str]:
    yield f"# HELP {name} {help_text}\n# TYPE {name} {kind}\n"
    for labels, value in values.items():
        yield f"{name}{{{labels}}} {value}\n" if labels else f"{name} {value}\n"


def _histograms(name: str, help_text: str, by_labels: Mapping[str, Histogram]) -> Iterator[str]:
    yield f"# HELP {name} {help_text}\n# TYPE {name} histogram\n"
    for labels, histogram in by_labels.items():
        first = f"{labels}," if labels else ""
        seen = 0
        for bound, count in zip(_bounds(histogram), histogram.counts, strict=True):
            seen += count
            yield f'{name}_bucket{{{first}le="{bound}"}} {seen}\n'
        suffix = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{suffix} {histogram.total:.6f}\n{name}_count{suffix} {seen}\n"


def _bounds(histogram: Histogram) -> Iterable[str]:
    return (*(f"{bound:g}" for bound in histogram.bounds), "+Inf")
