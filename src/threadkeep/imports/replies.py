"""Replies of other products' assistants: what they said, thought and did, in order."""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from threadkeep.imports.foreign import (
    ForeignCall,
    ForeignFile,
    ForeignPart,
    ForeignText,
    ForeignThought,
    MoreParagraphs,
)


class ForeignReply:
    """The parts of one reply; detects where another model call begins."""

    def __init__(self) -> None:
        self._parts: list[ForeignPart] = []
        self._more = MoreParagraphs()
        self._open: OrderedDict[int, str] = OrderedDict()
        """Indexes of the calls in `_parts` that have no result yet, and the calls' names."""
        self._open_by_name: defaultdict[str, deque[int]] = defaultdict(deque)
        self._iteration = 1
        self._said_in = 0
        """The call that the latest text belongs to."""
        self._is_answered = False

    @property
    def parts(self) -> Sequence[ForeignPart]:
        """The parts so far."""
        return self._more.added_to(self._parts)

    def say(self, text: str) -> None:
        """Adds a text; one right after another becomes its next paragraph."""
        if not text:
            return
        self._go_on()
        last = self._parts[-1] if self._parts else None
        if isinstance(last, ForeignText) and last.iteration == self._iteration:
            self._more.add(len(self._parts) - 1, text)
            return
        # Two texts of one call would run together; something between them means that another call began.
        self._iteration += self._said_in == self._iteration
        self._said_in = self._iteration
        self._parts.append(ForeignText(text, self._iteration))

    def show(self, file: ForeignFile) -> None:
        """Adds a file that the assistant showed or made."""
        self._parts.append(replace(file, iteration=self._iteration))

    def think(self, text: str) -> None:
        """Adds a thought."""
        if text:
            self._go_on()
            self._parts.append(ForeignThought(text, self._iteration))

    def call(self, name: str, arguments: Mapping[str, object]) -> None:
        """Adds a tool call, whose result may follow."""
        self._go_on()
        self._open[len(self._parts)] = name
        self._open_by_name[name].append(len(self._parts))
        self._parts.append(ForeignCall(name, arguments, None, iteration=self._iteration))

    def result(self, name: str | None, result: object, *, failed: bool = False) -> bool:
        """Gives its result to the oldest open call of this name, or of any; False if there is none."""
        named = next(iter(self._open.values()), None) if name is None else name
        if named is None or not (waiting := self._open_by_name.get(named)):
            return False
        at = waiting.popleft()
        del self._open[at]
        call = self._parts[at]
        assert isinstance(call, ForeignCall)
        self._parts[at] = replace(call, result=result, failed=failed)
        self._is_answered = True
        return True

    def forget_open(self) -> None:
        """Expects no more results for the calls so far."""
        self._open.clear()
        self._open_by_name.clear()

    def _go_on(self) -> None:
        """Whatever follows a result comes from another model call."""
        self._iteration += self._is_answered
        self._is_answered = False
