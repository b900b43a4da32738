"""`turn.state`: what an agent keeps for the next turn of the same branch."""

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, cast

import msgspec
from msgspec import Raw

from threadkeep.agents.errors import NotJson, StateReadOnly
from threadkeep.agents.values import with_article
from threadkeep.wire.programs import NOTHING

MOST_STATE_BYTES = 8 * 1024 * 1024

_BYTES = "threadkeep:bytes"
"""The one key of an object that is bytes; with a list of one value, of one that the program keeps itself."""


def encode_state(state: Mapping[str, Any]) -> bytes:
    """A state as JSON; raises NotJson."""
    try:
        encoded = _encode(state)
        if _BYTES.encode() in encoded:
            encoded = _encode(_escaped(state))
    except (TypeError, ValueError, RecursionError) as exc:
        raise NotJson("`turn.state` can't be stored", str(exc), "It takes what JSON has, and bytes.") from exc
    if len(encoded) > MOST_STATE_BYTES:
        raise NotJson(f"`turn.state` has {len(encoded)} bytes; the most is {MOST_STATE_BYTES}.")
    return encoded


def decode_state(encoded: Raw) -> dict[str, Any]:
    """A state from its JSON."""
    raw = bytes(encoded)
    if _BYTES.encode() in raw:
        return json.loads(raw, object_hook=_from_json)
    return msgspec.json.decode(raw, type=dict[str, Any])


def _encode(state: object) -> bytes:
    return json.dumps(
        state, default=_as_json, allow_nan=False, ensure_ascii=False, separators=(",", ":")
    ).encode()


def _escaped(value: Any) -> Any:
    """A value in which no object that the program keeps looks like bytes: what it keeps may be its user's."""
    if isinstance(value, dict):
        kept = {key: _escaped(it) for key, it in cast("dict[str, Any]", value).items()}
        return {_BYTES: [kept[_BYTES]]} if kept.keys() == {_BYTES} else kept
    if isinstance(value, list | tuple):
        return [*map(_escaped, cast("Iterable[Any]", value))]
    return value


def _as_json(value: object) -> dict[str, str]:
    if isinstance(value, bytes | bytearray):
        return {_BYTES: base64.b64encode(value).decode()}
    raise TypeError(f"it contains {with_article(type(value).__qualname__)}")


def _from_json(found: dict[str, Any]) -> Any:
    if found.keys() != {_BYTES}:
        return found
    kept = found[_BYTES]
    return {_BYTES: cast("list[Any]", kept)[0]} if isinstance(kept, list) else base64.b64decode(kept)


def _refuse(*_: object, **__: object) -> NoReturn:
    raise StateReadOnly(
        "`turn.state` can't be changed inside a step: the change would be lost when the function runs again. "
        "Return the value from the step, and change the state after it."
    )


class _FrozenDict(dict[str, Any]):
    __setitem__ = __delitem__ = __ior__ = _refuse  # type: ignore[assignment]
    pop = popitem = clear = update = setdefault = _refuse  # type: ignore[assignment]


class _FrozenList(list[Any]):
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse  # type: ignore[assignment]
    append = extend = insert = pop = remove = clear = sort = reverse = _refuse  # type: ignore[assignment]


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return _FrozenDict({key: _frozen(it) for key, it in cast("dict[str, Any]", value).items()})
    if isinstance(value, list | tuple):
        return _FrozenList(map(_frozen, cast("Iterable[Any]", value)))
    return value


class State(dict[str, Any]):
    """A dict that can't be changed inside a step, nor can what is in it."""

    def __init__(self, stored: Raw, is_in_step: Callable[[], bool]) -> None:
        super().__init__(decode_state(stored) if bytes(stored) else {})
        self._is_in_step = is_in_step
        self._before = bytes(stored) or b"{}"  # a large state takes long to encode

    def changed(self) -> Raw:
        """The state as JSON, if it isn't what it was; raises NotJson."""
        now = encode_state(self)
        return NOTHING if now == self._before else Raw(now)

    def view(self) -> dict[str, Any]:
        """Itself; inside a step, a copy that can't be changed."""
        return _frozen(self) if self._is_in_step() else self

    def replace(self, state: Mapping[str, Any]) -> None:
        """Becomes another state."""
        kept = dict(state)
        self.clear()
        self.update(kept)

    def _check(self) -> None:
        if self._is_in_step():
            _refuse()

    def __setitem__(self, key: str, value: Any) -> None:
        self._check()
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self._check()
        super().__delitem__(key)

    def __getitem__(self, key: str) -> Any:
        found = super().__getitem__(key)
        return _frozen(found) if self._is_in_step() else found

    def __ior__(self, other: Any) -> "State":  # type: ignore[override]
        self.update(other)
        return self

    def get(self, key: str, default: Any = None) -> Any:
        """What `dict.get` returns."""
        return self.view().get(key, default) if self._is_in_step() else super().get(key, default)

    def pop(self, *args: Any) -> Any:
        """Does what `dict.pop` does."""
        self._check()
        return super().pop(*args)

    def popitem(self) -> tuple[str, Any]:
        """Does what `dict.popitem` does."""
        self._check()
        return super().popitem()

    def clear(self) -> None:
        """Does what `dict.clear` does."""
        self._check()
        super().clear()

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Does what `dict.update` does."""
        self._check()
        super().update(*args, **kwargs)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Does what `dict.setdefault` does."""
        self._check()
        return super().setdefault(key, default)
