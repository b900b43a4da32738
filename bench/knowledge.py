"""What knowledge and memory cost: documents, history, compaction, prompts."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from bench import beside, compacted, context, history, prompting
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
}
