"""What single things cost: documents, history, compaction, prompts, finding a path."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from bench import beside, branches, compacted, context, history, paths, prompting
from bench.measure import Effort
from bench.retrieval import near, speed
from bench.table import Times

Measure = Callable[[Effort, Sequence[str]], Awaitable[Sequence[Times]]]

KNOWLEDGE: Mapping[str, Measure] = {
    "prompt": prompting.measure,
    "context": context.measure,
    "compaction": compacted.measure,
    "ingest": beside.measure,
    "search": speed.measure,
    "near": near.measure,
    "history": history.measure,
    "paths": paths.measure,
    "branches": branches.measure,
}
