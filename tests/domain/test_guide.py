"""What the Guide is asked to show, told by the words of a question."""

import pytest

from threadkeep.domain.guide import Show, wanted


@pytest.mark.parametrize(
    ("question", "show"),
    [
        ("Show me a crash", Show.CRASH),
        ("给我看看图表", Show.CHART),
        ("Take me on the tour", Show.EVERYTHING),
        ("Who are you?", Show.MENU),
        ("发送前会问我吗？需要审批吗", Show.APPROVAL),
    ],
)
def test_question_names_what_is_shown(question: str, show: Show):
    assert wanted(question) is show
