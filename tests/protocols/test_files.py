"""Files inside the messages of other protocols."""

import base64

import pytest

from tests.conftest import ONLY_SQLITE
from tests.talking import Talk
from threadkeep.domain.errors import InvalidRequest
from threadkeep.domain.ids import UserId
from threadkeep.domain.user import User, UserRole
from threadkeep.protocols.files import MOST_PERCENT_ENCODED_CHARACTERS, ReceivedFile, take_in

TOO_LONG = "a" * (MOST_PERCENT_ENCODED_CHARACTERS + 1)
LOCAL = User(UserId("local"), UserRole.ADMIN)


def text(content: str) -> str:
    return f"data:text/plain;base64,{base64.b64encode(content.encode()).decode()}"


@ONLY_SQLITE
async def test_files_stay_in_their_order_new_ones_and_those_that_were_uploaded(talk: Talk):
    files = (await talk.app.services()).files
    (known,) = await take_in(files, LOCAL, [ReceivedFile("folder/known.txt", text("a"))], param="messages")
    named = ReceivedFile("x", file_id=known.file_id.upper())
    sent = [ReceivedFile("1.txt", text("b")), named, ReceivedFile("2.txt", "data:text/plain,c%20d"), named]
    taken = await take_in(files, LOCAL, sent, param="messages")
    assert [it.file_name for it in taken] == ["1.txt", "known.txt", "2.txt", "known.txt"]


@ONLY_SQLITE
@pytest.mark.parametrize(
    "data",
    ["data:text/plain;base64,?", "?", f"data:text/plain,{'a' * (MOST_PERCENT_ENCODED_CHARACTERS + 1)}"],
)
async def test_what_cannot_be_decoded_is_refused(talk: Talk, data: str):
    files = (await talk.app.services()).files
    with pytest.raises(InvalidRequest, match="base64"):
        await take_in(files, LOCAL, [ReceivedFile("a.txt", data)], param="messages")
