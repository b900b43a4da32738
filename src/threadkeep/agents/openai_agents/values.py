"""What tools of the SDK return, as it can be stored."""

from collections.abc import Sequence
from typing import Any, cast

from agents import ToolOutputFileContent, ToolOutputImage, ToolOutputText


def as_stored(returned: Any) -> Any:
    """A tool's result as JSON, which the SDK takes as it would have taken the result.

    What isn't JSON is the text that the SDK would have given to the model, `str(returned)`.
    """
    if _is_output(returned):
        return returned.model_dump(mode="json", exclude_none=True)
    if isinstance(returned, list | tuple) and any(map(_is_output, cast("Sequence[Any]", returned))):
        return [as_stored(it) for it in cast("Sequence[Any]", returned)]
    value = cast("Any", returned)
    return value if _is_json(value) else str(value)


def _is_output(value: object) -> bool:
    return isinstance(value, ToolOutputText | ToolOutputImage | ToolOutputFileContent)


def _is_json(value: Any) -> bool:
    if value is None or type(value) in (bool, int, float, str):
        return True
    if type(value) is list:
        return all(map(_is_json, cast("list[Any]", value)))
    if type(value) is dict:
        return all(type(key) is str and _is_json(it) for key, it in cast("dict[Any, Any]", value).items())
    return False
