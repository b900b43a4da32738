"""The store of documents and the index of their chunks, on every database."""

import pytest

from tests.making import ALICE, NOW, keep_agent, keep_document
from threadkeep.domain.agent import Agent
from threadkeep.domain.document import Chunk, Document, DocumentStatus
from threadkeep.domain.errors import StorageConflict
from threadkeep.domain.ids import DocumentId, UserId, new_uuid
from threadkeep.ports.documents import ExtractedPart, IndexedChunk
from threadkeep.search.terms import query_terms
from threadkeep.storage.database.connector import Database, Statement
from threadkeep.storage.store import Store
from threadkeep.storage.users import Purged

ROWS = Statement(
    """SELECT (SELECT COUNT(*) FROM tk_documents), (SELECT COUNT(*) FROM tk_chunks),
        (SELECT COUNT(*) FROM tk_vectors), (SELECT COUNT(*) FROM tk_terms),
        (SELECT COALESCE(SUM(chunk_count + term_count), 0) FROM tk_collections)"""
)


async def found(store: Store, agent: Agent, query: str, limit: int = 10) -> list[str]:
    """The texts of the candidates for a query, in their order."""
    candidates = await store.chunks.candidates(agent.id, query_terms(query), limit=limit)
    if candidates is None:
        return []
    texts = {id_: hit.text for id_, hit in await store.chunks.chunks(candidates.chunk_ids)}
    return [texts[id_] for id_ in candidates.chunk_ids if id_ in texts]


async def rows(database: Database) -> list[tuple[int, ...]]:
    return [tuple(map(int, row)) for row in await database.fetch(ROWS())]


async def test_same_content_is_added_once(store: Store):
    agent = await keep_agent(store)
    first = Document(
        DocumentId(new_uuid()), agent.id, "a", "text/plain", 1, "same", DocumentStatus.PROCESSING, NOW, NOW
    )
    again = Document(
        DocumentId(new_uuid()), agent.id, "b", "text/plain", 1, "same", DocumentStatus.PROCESSING, NOW, NOW
    )
    assert await store.documents.add(first) == await store.documents.add(again) == first


async def test_rare_terms_come_before_common_ones(store: Store):
    agent = await keep_agent(store)
    await keep_document(store, agent.id, "common words", "common rare", "common again", "nothing of it")
    assert await found(store, agent, "common rare") == ["common rare", "common words", "common again"]
    assert await found(store, agent, "common rare", limit=1) == ["common rare"]
    assert await found(store, agent, "unheard") == []


async def test_chunks_of_a_document_that_is_not_ready_are_not_handed_out(store: Store):
    agent = await keep_agent(store)
    await keep_document(store, agent.id, "half done", ready=False)
    assert await found(store, agent, "half done") == []
    assert not await store.documents.has_ready(agent.id)
    await keep_document(store, agent.id, "all done")
    assert await found(store, agent, "done") == ["all done"]
    assert await store.documents.has_ready(agent.id)


async def test_passages_of_a_document_are_read_in_order_from_a_position_on(store: Store):
    agent = await keep_agent(store)
    document = await keep_document(store, agent.id, "one", "two", "three")
    await keep_document(store, agent.id, "another")
    assert [it.text for it in await store.documents.passages(document, first=0, limit=2)] == ["one", "two"]
    assert [it.text for it in await store.documents.passages(document, first=1, limit=9)] == ["two", "three"]
    assert await store.documents.passages(document, first=3, limit=9) == []


async def test_agents_have_indexes_of_their_own(store: Store):
    first, second = await keep_agent(store), await keep_agent(store)
    await keep_document(store, first.id, "shared word of the first")
    await keep_document(store, second.id, "shared word of the second")
    assert await found(store, first, "shared word") == ["shared word of the first"]
    assert await found(store, second, "shared word") == ["shared word of the second"]


async def test_numbers_of_collections_and_terms_are_not_mixed_up(store: Store):
    """Collection 1 with the term `1x2` beside collection 11 with `2` and the like."""
    agents = [await keep_agent(store) for _ in range(12)]
    for number, agent in enumerate(agents):
        await keep_document(store, agent.id, f"1x2 2 x2 12 own{number}")
    for number, agent in enumerate(agents):
        for query in ("2", "x2", "12", "1x2"):
            assert await found(store, agent, query) == [f"1x2 2 x2 12 own{number}"]


async def test_terms_are_counted_as_often_as_they_occur(store: Store):
    agent = await keep_agent(store)
    await keep_document(store, agent.id, "tick tick tock", "违约金，违约")
    candidates = await store.chunks.candidates(agent.id, ["tick", "违约"], limit=5)
    assert candidates
    assert candidates.frequencies == {"tick": 1, "违约": 1}
    counted = await store.chunks.term_counts(
        candidates.collection, candidates.chunk_ids, ["tick", "tock", "违约", "none"]
    )
    assert sorted((dict(it.counts), it.term_count) for it in counted if it.term_count == 3) == [
        ({"tick": 2, "tock": 1}, 3)
    ]
    assert [dict(it.counts) for it in counted if it.term_count > 3] == [{"违约": 2}]


async def test_removed_chunks_leave_nothing_in_any_index(store: Store, database: Database):
    agent = await keep_agent(store)
    kept = await keep_document(store, agent.id, "lasting words")
    before = await rows(database)
    document = await keep_document(store, agent.id, "passing words", "more passing", "and more")
    candidates = await store.chunks.candidates(agent.id, ["pass"], limit=5)
    assert candidates
    await store.chunks.add_vectors("m", [(id_, b"\0\0") for id_ in candidates.chunk_ids])
    assert [await store.documents.remove_chunks(document, limit=2) for _ in range(3)] == [2, 1, 0]
    await store.documents.delete(document)
    assert await rows(database) == before
    assert await found(store, agent, "passing") == []
    assert await found(store, agent, "words") == ["lasting words"]
    assert kept


async def test_nothing_is_added_to_a_document_that_is_no_longer_worked_on(store: Store, database: Database):
    document = await keep_document(store, (await keep_agent(store)).id, "words")
    before = await rows(database)
    late = ExtractedPart([IndexedChunk(Chunk(1, "late"), ["late"])], 1.0)
    assert not await store.documents.add_part(document, late, NOW)
    await store.documents.delete(document)
    assert not await store.documents.add_part(document, late, NOW)
    assert before[0][1] == 1


async def test_node_that_still_reads_a_document_after_another_has_started_over_adds_nothing(
    store: Store, database: Database
):
    document = await keep_document(store, (await keep_agent(store)).id, "one", "two", ready=False)
    while await store.documents.remove_chunks(document, limit=10):  # the other one starts over
        pass
    first, third = [
        ExtractedPart([IndexedChunk(Chunk(position, "words"), ["words"])], 0.5) for position in (0, 2)
    ]
    with pytest.raises(StorageConflict):
        await store.documents.add_part(document, third, NOW)
    assert await store.documents.add_part(document, first, NOW)
    with pytest.raises(StorageConflict):
        await store.documents.add_part(document, first, NOW)
    assert (await rows(database))[0][1] == 1


async def test_vectors_are_read_in_the_order_in_which_they_came(store: Store):
    agent = await keep_agent(store)
    await keep_document(store, agent.id, "one", "two", "three")
    waiting = sorted(await store.chunks.without_vector(agent.id, "m", limit=10))
    assert [text for _, text in waiting] == ["one", "two", "three"]
    (one, _), (two, _), (three, _) = waiting
    await store.chunks.add_vectors("m", [(three, b"3")])
    await store.chunks.add_vectors("m", [(one, b"1"), (10**9, b"of a chunk that is gone")])
    read = await store.chunks.vectors(agent.id, "m", after=0, limit=10)
    assert [(id_, vector) for _, id_, vector in read] == [(three, b"3"), (one, b"1")]
    await store.chunks.add_vectors("m", [(two, b"2")])
    for again in (store.chunks.vectors, store.chunks.newer_vectors):
        later = await again(agent.id, "m", after=read[-1][0], limit=10)
        assert [(id_, vector) for _, id_, vector in later] == [(two, b"2")]
    assert await store.chunks.newest_vector() == later[-1][0]
    assert await store.chunks.without_vector(agent.id, "m", limit=10) == []
    assert len(await store.chunks.without_vector(agent.id, "another model", limit=10)) == 3


async def test_user_who_goes_takes_documents_and_index_along(store: Store, database: Database):
    agent = await keep_agent(store, UserId("carol"))
    await keep_document(store, agent.id, "words of carol")
    other = await keep_agent(store, ALICE)
    await keep_document(store, other.id, "words of alice")
    assert await store.users.delete(UserId("carol"), NOW) == Purged([agent.id], [])
    assert (await rows(database))[0][:2] == (1, 1)
    assert await found(store, agent, "words") == []
    assert await found(store, other, "words") == ["words of alice"]
