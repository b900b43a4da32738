"""The page that compares reruns: everything is in it, and nothing in it can do anything."""

from html.parser import HTMLParser
from typing import Any

from threadkeep.cli.comparison import ComparedRun, comparison_page
from threadkeep.wire.messages import CostView, FailureView, UsageView
from threadkeep.wire.reruns import ModelRunView, RerunView, RunCallView

HOSTILE = "</div><script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;\u202e"
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "section", "article", "h1", "h2",
    "h3", "p", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul", "li", "em", "pre",
}  # fmt: skip


class Seen(HTMLParser):
    """The elements, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def call(query: str, *, in_both: bool) -> RunCallView:
    return RunCallView(tool_name="find", server="web", arguments={"q": query}, status="ok", in_both=in_both)


def ran(text: str, *calls: RunCallView, cost: str | None = "0.01", model: str = "old") -> ModelRunView:
    usage = UsageView(
        input_tokens=10, output_tokens=5, cache_read_tokens=0, cache_write_tokens=0, estimated=False
    )
    price = CostView(amount=cost, currency="USD") if cost else None
    return ModelRunView(model=model, text=text, calls=calls, usage=usage, cost=price, duration_ms=1500)


def compared(turn: str, model: str, **changes: Any) -> ComparedRun:
    values: dict[str, Any] = {
        "turn_id": turn,
        "question": f"Why {turn}?",
        "outcome": "COMPLETED",
        "rerun": ran(f"{model} says so.", model=model),
        "original": ran("Because."),
    }
    return ComparedRun(turn_id=turn, model=model, result=RerunView(**(values | changes)))


def test_answers_stand_side_by_side_with_cost_time_and_calls_that_differ():
    page = comparison_page(
        "Adviser",
        "About",
        [
            compared("1", "a", rerun=ran("A.", call("x", in_both=True), call("y", in_both=False))),
            compared("1", "b"),
            compared("2", "a"),
            ComparedRun(turn_id="2", model="b", result=None, error="The model is away."),
        ],
    )
    seen = Seen(page)
    text = " ".join(seen.texts)
    assert not seen.open
    assert seen.tags <= ALLOWED
    for expected in ("Why 1?", "Because.", "A.", "b says so.", "The model is away.", "0.01 USD · 1.5 s"):
        assert expected in text
    assert page.count('class="differs"') == 1
    assert "1 of 2 turns" in text
    assert "http" not in page.replace("http-equiv", "")


def test_no_text_of_a_model_or_a_user_becomes_markup():
    hostile = RunCallView(
        tool_name=HOSTILE, server=HOSTILE, arguments={HOSTILE: HOSTILE}, status=HOSTILE, in_both=False
    )
    run = ran(HOSTILE, hostile, model=HOSTILE)
    failure = FailureView(code=HOSTILE, message=HOSTILE, retryable=False)
    page = comparison_page(
        HOSTILE,
        HOSTILE,
        [
            compared(
                "1", HOSTILE, question=HOSTILE, rerun=run, original=run, error=failure, outcome="FAILED"
            ),
            ComparedRun(turn_id="2", model=HOSTILE, result=None, error=HOSTILE),
        ],
    )
    seen = Seen(page)
    assert not seen.open
    assert seen.tags <= ALLOWED
    assert seen.attributes <= {
        "lang",
        "charset",
        "name",
        "content",
        "http-equiv",
        "class",
        "dir",
        "scope",
        "aria-label",
    }
    assert "".join(seen.texts).count("<script>alert(1)</script>") >= 8


def test_unknown_price_makes_the_sum_unknown():
    runs = [compared("1", "a", rerun=ran("A.", cost=None)), compared("2", "a")]
    text = " ".join(Seen(comparison_page("t", "", runs)).texts)
    assert "unknown" in text
    assert "0.02 USD" in text  # the originals'
