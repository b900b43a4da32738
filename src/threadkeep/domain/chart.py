"""Charts from a tool's `chart_data`: an ECharts option, or rows with a kind."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from threadkeep.domain.choice import Choice
from threadkeep.domain.errors import InvalidRequest

MOST_POINTS = 1_000
MOST_SERIES = 20
_MOST_NAMED = 20


class ChartKind(Choice):
    """How the numbers are drawn."""

    BAR = "bar"
    LINE = "line"
    PIE = "pie"
    SCATTER = "scatter"


_KINDS = {kind.value: kind for kind in ChartKind}


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers of one kind; a missing one is a gap. For a scatter chart, `xs` are their x values."""

    kind: ChartKind
    name: str
    values: tuple[float | None, ...]
    xs: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """What can be drawn."""

    title: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]


def chart_option(
    kind: ChartKind, rows: Sequence[Mapping[str, Any]], x: str, y: Sequence[str], title: str = ""
) -> dict[str, Any]:
    """An ECharts option that draws columns `y` of rows over column `x`; refuses data that can't be drawn."""
    _check(rows, x, y)
    numbers = {name: [_number_in(row, name) for row in rows] for name in y}
    option: dict[str, Any] = {"tooltip": {}, "legend": {"data": list(y)}}
    if title:
        option["title"] = {"text": title}
    labels = [_label(row.get(x)) for row in rows]
    match kind:
        case ChartKind.PIE:
            slices = [{"name": it, "value": value} for it, value in zip(labels, numbers[y[0]], strict=True)]
            return {
                **option,
                "legend": {"data": labels},
                "series": [{"type": "pie", "name": y[0], "data": slices}],
            }
        case ChartKind.SCATTER:
            xs = [_number_in(row, x) for row in rows]
            axes: dict[str, Any] = {"xAxis": {"type": "value", "name": x}, "yAxis": {"type": "value"}}
            data = {
                name: [list(point) for point in zip(xs, values, strict=True)]
                for name, values in numbers.items()
            }
        case ChartKind.BAR | ChartKind.LINE:
            axes = {"xAxis": {"type": "category", "name": x, "data": labels}, "yAxis": {"type": "value"}}
            data = numbers
    series = [{"type": kind.value, "name": name, "data": values} for name, values in data.items()]
    return {**option, **axes, "series": series}


def read_chart(value: object) -> Chart | None:
    """The drawable part of a tool's `chart_data`; None if the format is unknown."""
    option = _mapping(value)
    if "rows" in option and "kind" in option:
        try:
            rows = [_mapping(row) for row in _sequence(option["rows"])]
            names = [str(name) for row in rows[:1] for name in row]
            x = str(option.get("x") or (names[0] if names else ""))
            y = option.get("y") or [name for name in names if name != x]
            columns = [y] if isinstance(y, str) else [str(name) for name in _sequence(y)]
            option = chart_option(ChartKind(option["kind"]), rows, x, columns, str(option.get("title") or ""))
        except (InvalidRequest, ValueError):
            return None
    series = tuple(_series(option))
    labels = _labels(option, series)
    return Chart(_label(_mapping(option.get("title")).get("text")), labels, series) if series else None


def _check(rows: Sequence[Mapping[str, Any]], x: str, y: Sequence[str]) -> None:
    if not 0 < len(rows) <= MOST_POINTS:
        raise InvalidRequest(f"A chart needs 1 to {MOST_POINTS} rows; you sent {len(rows)}.", param="rows")
    if not 0 < len(y) <= MOST_SERIES:
        raise InvalidRequest(f"A chart needs 1 to {MOST_SERIES} `y` columns; you sent {len(y)}.", param="y")
    known = {name for row in rows for name in row}
    for name in (x, *y):
        if name not in known:
            names = ", ".join(map(_label, sorted(known)[:_MOST_NAMED]))
            raise InvalidRequest(
                f"No row has a column {_label(name)!r}. Available columns: {names}.", param="rows"
            )


def _number_in(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    if value is None:
        return None
    number = _number(value)
    if number is None:
        raise InvalidRequest(
            f"Column {_label(name)!r} must contain numbers; {_label(value)!r} isn't a number.", param="rows"
        )
    return number


def _series(option: Mapping[str, Any]) -> Iterator[Series]:
    given = option.get("series")
    for series in [_mapping(it) for it in (_sequence(given) or [given])][:MOST_SERIES]:
        data = _sequence(series.get("data"))[:MOST_POINTS]
        kind = _KINDS.get(str(series.get("type")))
        if kind is None or not data:
            continue
        name, given_values = _label(series.get("name")), [_value(it) for it in data]
        if kind is ChartKind.SCATTER:
            points = [_sequence(it) for it in given_values]
            xs = tuple(_number(point[0]) if len(point) > 1 else None for point in points)
            values = tuple(_number(point[1]) if len(point) > 1 else None for point in points)
            yield Series(kind, name, values, xs)
        else:
            yield Series(kind, name, tuple(_number(it) for it in given_values))


def _labels(option: Mapping[str, Any], series: Sequence[Series]) -> tuple[str, ...]:
    axes = option.get("xAxis")
    axis = _mapping(next(iter(_sequence(axes)), axes))
    names = [_label(_value(it)) for it in _sequence(axis.get("data"))[:MOST_POINTS]]
    if series and series[0].kind is ChartKind.PIE:
        given = option.get("series")
        first = _mapping(next(iter(_sequence(given)), given))
        names = [_label(_mapping(it).get("name")) for it in _sequence(first.get("data"))[:MOST_POINTS]]
    most = max((len(it.values) for it in series), default=0)
    return tuple((names + [str(number) for number in range(len(names) + 1, most + 1)])[:most])


def _value(point: object) -> object:
    """A point's value: an option has the value itself, or an object with it."""
    return cast("Mapping[str, Any]", point).get("value") if isinstance(point, Mapping) else point


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _label(value: object) -> str:
    return "" if value is None else str(value)[:100]


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _sequence(value: object) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
