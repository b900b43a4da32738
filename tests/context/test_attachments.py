"""Files of earlier turns stay in the request while they fit; then the oldest become a line, for good."""

from dataclasses import replace

import pytest

from tests.making import make_receipt
from threadkeep.context.attachments import RECALL_FILE, FileRules, with_contents
from threadkeep.context.cards import CardStyle
from threadkeep.context.compaction import describe, extract_lines
from threadkeep.context.request import BuiltRequest, ContextRules, Sources, build_request, to_context
from threadkeep.domain.document import PDF
from threadkeep.domain.file import PNG
from threadkeep.domain.ids import ConversationId, MessageId, PayloadId
from threadkeep.domain.image import ImageTokenRule
from threadkeep.domain.message import Message, MessageRole, MessageStatus
from threadkeep.domain.parts import FilePart, text_parts
from threadkeep.domain.payload import Lost
from threadkeep.domain.receipt import Receipt
from threadkeep.ports.gateway import DocumentBlock, ImageBlock, TakenFiles, TextBlock, ToolSpec

TAKEN = TakenFiles(images=ImageTokenRule.OPENAI_TILES, pdfs=True)
RECALL = ToolSpec(RECALL_FILE, "", {"type": "object"})


def image(number: int, *, size: int = 50_000, width: int = 512, height: int = 512) -> FilePart:
    return FilePart(
        file_id=PayloadId(f"file-{number}"),
        file_name=f"image {number}.png",
        media_type=PNG,
        size=size,
        width=width,
        height=height,
        refs={"model": PayloadId(f"model-{number}"), "preview": PayloadId(f"preview-{number}")},
    )


def pdf(*, pages: int | None, size: int = 50_000) -> FilePart:
    return FilePart(
        file_id=PayloadId("pdf"),
        file_name="lease.pdf",
        media_type=PDF,
        size=size,
        pages=pages,
        refs={"text": PayloadId("text")},
    )


def said(number: int, *files: FilePart) -> Message:
    return Message(
        id=MessageId(f"m{number}"),
        conversation_id=ConversationId("c"),
        seq=number,
        turn_id=None,
        role=MessageRole.USER,
        parts=(*files, *text_parts(f"Question {number}.")),
        status=MessageStatus.COMPLETED,
        created_at=number,
    )


def build(
    path: list[Message], *, prior: Receipt | None = None, context_tokens: int = 100_000, text: str = ""
) -> BuiltRequest:
    sources = Sources(
        path=path,
        question_id=path[-1].id,
        tools=(RECALL,),
        prior=prior,
        payloads={PayloadId("text"): text.encode()} if text else {},
    )
    return build_request(sources, ContextRules(CardStyle(), context_tokens, files=TAKEN))


def images_of(built: BuiltRequest) -> list[str]:
    blocks = [it for message in built.request.messages for it in message.blocks]
    return [it.file_name for it in blocks if isinstance(it, ImageBlock)]


def test_images_stay_while_they_fit_then_half_of_them_become_lines_for_good():
    path = [said(at, image(at)) for at in range(1, 81)]
    assert len(images_of(build(path))) == 80
    longer = [*path, said(81, image(81)), said(82)]
    built = build(longer)
    kept = images_of(built)
    assert kept == [f"image {at}.png" for at in range(82 - len(kept), 82)]
    assert 35 <= len(kept) <= 41
    line = '[File image 1.png: image/png, 512 × 512 pixels; recall_file with id "file-1" returns it]'
    assert TextBlock(line) in built.request.messages[0].blocks
    again = build([*longer, said(83, image(83)), said(84)], prior=built.receipt)
    assert images_of(again) == [*kept, "image 83.png"]


def test_few_large_images_do_not_fit_either():
    path = [said(at, image(at, width=1568, height=1568)) for at in range(1, 20)]
    kept = images_of(build(path, context_tokens=1_000_000))
    assert kept[-1] == "image 19.png", "the question's own image is always sent"
    assert len(kept) < 19


def test_pdfs_of_a_message_that_are_too_much_together_are_lines():
    files = [replace(pdf(pages=1, size=9_000_000), file_id=PayloadId(f"pdf-{at}")) for at in range(2)]
    first, second, _ = build([said(1, *files)]).request.messages[0].blocks
    assert isinstance(first, DocumentBlock)
    assert isinstance(second, TextBlock)
    assert 'recall_file with id "pdf-1"' in second.text


def test_request_never_has_more_files_than_providers_take():
    request = build([said(1, *(image(at) for at in range(120)))]).request
    many = with_contents(request, {PayloadId(f"model-{at}"): b"png" for at in range(120)})
    assert [isinstance(it, ImageBlock) for it in many.messages[0].blocks] == [False] * 20 + [True] * 100 + [
        False
    ]
    few = with_contents(request, {PayloadId(f"model-{at}"): bytes(8_000_000) for at in range(120)})
    assert list(few.contents) == ["model-119", "model-118"]


def test_images_of_a_small_model_leave_room_for_words():
    path = [said(at, image(at, width=1568, height=1568)) for at in range(1, 9)]
    kept = images_of(build(path, context_tokens=4_000))
    assert "image 8.png" in kept
    assert len(kept) <= 3


@pytest.mark.parametrize(
    ("file", "is_document"),
    [
        (pdf(pages=3), True),
        (pdf(pages=None), False),
        (pdf(pages=15), False),
        (pdf(pages=3, size=11_000_000), False),
    ],
)
def test_pdf_is_a_document_where_the_provider_would_take_it(file: FilePart, is_document: bool):
    built = build([said(1, file)], text="The rent is 900.")
    first = built.request.messages[0].blocks[0]
    assert isinstance(first, DocumentBlock) is is_document
    if not is_document:
        assert first == TextBlock("[File lease.pdf]\nThe rent is 900.")


def test_text_of_a_file_never_takes_more_than_half_of_what_the_model_reads():
    built = build([said(1, pdf(pages=None))], context_tokens=4_000, text="word " * 50_000)
    (file, question) = built.request.messages[0].blocks
    assert isinstance(file, TextBlock)
    assert len(file.text) < 4_000 // 2 * 4 + 200
    assert 'recall_file with id "pdf" and offset 8000 returns more' in file.text
    assert question == TextBlock("Question 1.")
    assert built.receipt.dropped_messages == 0


def test_image_that_is_gone_is_told_to_the_model():
    built = build([said(1, image(1), image(2))])
    request = with_contents(
        built.request, {PayloadId("model-1"): b"png", PayloadId("model-2"): Lost("deleted")}
    )
    first, second, _ = request.messages[0].blocks
    assert isinstance(first, ImageBlock)
    assert second == TextBlock("[File image 2.png: its content is no longer available]")
    assert request.contents == {"model-1": b"png"}


def test_model_that_takes_nothing_gets_lines():
    rules = FileRules(TakenFiles(), 1000)
    assert rules.content_ref(image(1)) is None
    assert rules.content_ref(pdf(pages=3)) == "text"


def test_receipt_counts_images_and_documents():
    with_files = build([said(1, image(1), pdf(pages=3))]).receipt.token_estimate
    without = build([said(1)]).receipt.token_estimate
    assert with_files - without > 255 + 3 * 2_250
    assert make_receipt().shortened == ()


def test_message_that_has_only_files_is_summarised_and_told_to_other_engines():
    message = replace(said(1, image(1)), parts=(image(1),))
    assert describe(message, CardStyle()) == "User: [image image 1.png · 50 kB]"
    assert list(extract_lines(message)) == ["- user: [image image 1.png · 50 kB]"]
    (told,) = to_context([message], summary=None, cards=CardStyle())
    assert told.content == "[image image 1.png · 50 kB]"
