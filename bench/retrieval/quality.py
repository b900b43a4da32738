"""How well the right passage is found; weights are fitted on one half of the questions."""

import tempfile
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.making import keep_agent, keep_document

from bench.retrieval.labelled import CHINESE, ENGLISH, UNANSWERABLE, Labelled
from threadkeep.domain.ids import AgentId
from threadkeep.ports.embedder import Embedder
from threadkeep.retrieval.embed import bundled_embedder
from threadkeep.retrieval.index import DocumentIndex, Weights
from threadkeep.storage.store import Store, open_store

TOP = 5
NEARLY = 0.02
GRID = [Weights(meaning=tenths / 10) for tenths in range(1, 10)]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the passage that answers it."""

    language: str
    kind: str
    text: str
    passage: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the place of its passage among the hits (0: not found), and the best score."""

    question: Question
    place: int
    score: float


def questions() -> list[Question]:
    """All questions, in an order in which each second one is of every kind."""
    found: list[Question] = []
    for language, labelled in (("English", ENGLISH), ("Chinese", CHINESE)):
        for kind in ("literal", "paraphrased"):
            found += [Question(language, kind, getattr(it, kind), it.passage) for it in labelled]
    return found


@asynccontextmanager
async def collection(embedder: Embedder | None) -> AsyncGenerator[tuple[Store, AgentId]]:
    """All passages as one agent's documents."""
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(f"sqlite:///{Path(folder)}/bench.db")
        agent = await keep_agent(store)
        everything: Sequence[Labelled] = (*ENGLISH, *CHINESE)
        await keep_document(store, agent.id, *(it.passage for it in everything))
        if embedder is not None:
            waiting = await store.chunks.without_vector(agent.id, embedder.name, limit=1000)
            pairs = [(id_, await embedder.embed_query(text)) for id_, text in waiting]
            await store.chunks.add_vectors(embedder.name, pairs)
        yield store, agent.id
        await store.close()


async def ask(index: DocumentIndex, agent_id: AgentId, asked: Iterable[Question]) -> list[Asked]:
    """Puts questions to an index."""
    answers: list[Asked] = []
    for question in asked:
        hits = (await index.search(agent_id, question.text, top_k=TOP, threshold=0)).hits
        place = next((n for n, hit in enumerate(hits, 1) if hit.text == question.passage), 0)
        answers.append(Asked(question, place, hits[place - 1].score if place else 0.0))
    return answers


def recall(answers: Sequence[Asked]) -> float:
    """The share of questions whose passage is among the first five."""
    return sum(bool(it.place) for it in answers) / len(answers)


def reciprocal_rank(answers: Sequence[Asked]) -> float:
    """The mean of one through the place: 1 where every passage came first."""
    return sum(1 / it.place for it in answers if it.place) / len(answers)


async def fit(store: Store, agent_id: AgentId, embedder: Embedder, half: list[Question]) -> Weights:
    """The weights that put the right passages highest; of nearly equal ones those that trust words most.

    For these questions hold few names and numbers, by which people look for things too.
    """
    ranks = {
        weights: reciprocal_rank(await ask(DocumentIndex(store.chunks, embedder, weights), agent_id, half))
        for weights in GRID
    }
    print("share of meaning: MRR on the fitting half")
    print(", ".join(f"{weights.meaning:.1f}: {rank:.3f}" for weights, rank in ranks.items()))
    return next(weights for weights, rank in ranks.items() if rank > max(ranks.values()) - NEARLY)


async def report() -> None:
    """Prints the tables of docs/retrieval.md."""
    embedder = bundled_embedder()
    assert embedder is not None, "the extra `documents` and the weights are needed"
    everything = questions()
    fitting, telling = everything[::2], everything[1::2]
    async with collection(embedder) as (store, agent_id):
        fitted = await fit(store, agent_id, embedder, fitting)
        print(f"{len(everything)} questions; weights fitted on {len(fitting)}: {fitted}")
        print(f"in use: {Weights()}\n")
        print("| questions (other half) | words: recall@5 | words: MRR | fused: recall@5 | fused: MRR |")
        print("|---|---|---|---|---|")
        words = await ask(DocumentIndex(store.chunks, None), agent_id, telling)
        fused = await ask(DocumentIndex(store.chunks, embedder), agent_id, telling)
        kinds = dict.fromkeys((it.language, it.kind) for it in telling)
        for language, kind in [*kinds, ("all", "")]:
            chosen = [
                [
                    it
                    for it in answers
                    if language == "all" or (it.question.language, it.question.kind) == (language, kind)
                ]
                for answers in (words, fused)
            ]
            numbers = " | ".join(f"{recall(it):.2f} | {reciprocal_rank(it):.2f}" for it in chosen)
            print(f"| {language} {kind} | {numbers} |")
        threshold = 0.3
        kept = sum(it.score >= threshold for it in fused) / len(fused)
        strangers = [
            (
                await DocumentIndex(store.chunks, embedder).search(agent_id, q, top_k=1, threshold=threshold)
            ).hits
            for q in UNANSWERABLE
        ]
        print(f"\nright passages above the default threshold of {threshold}: {kept:.2f}")
        print(
            f"questions that nothing answers with a hit above it: "
            f"{sum(map(bool, strangers))} of {len(strangers)}"
        )
    await embedder.close()
