"""Reruns as one HTML file to compare: no script, nothing fetched, every text escaped."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape

from msgspec import UNSET

from threadkeep.wire.messages import CostView
from threadkeep.wire.reruns import ModelRunView, RerunView, RunCallView

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; --ink: #23211d; --soft: #5b574f; --paper: #fff; --sunk: #f6f4f0;
  --line: #e3dfd7; --mark: #24604f; --differs: #fdf1d6; --differs-ink: #6d4a00; --wrong: #a3271c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e5df; --soft: #aaa59b; --paper: #191816;
  --sunk: #23211e; --line: #3a3732; --mark: #7fc4ae; --differs: #3d3217; --differs-ink: #f0d898;
  --wrong: #f0998f; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 96rem;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1rem; margin: 0 0 .5rem; }
h3 { font-size: .9rem; margin: 0; overflow-wrap: anywhere; }
p { margin: .25rem 0; } .about, .figures, caption { color: var(--soft); font-size: .85rem; }
.totals { overflow-x: auto; margin: 1.25rem 0 0; }
table { border-collapse: collapse; min-width: 34rem; } caption { text-align: start; padding-bottom: .35rem; }
th, td { padding: .35rem .9rem .35rem 0; text-align: end; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th:first-child { text-align: start; } thead th { color: var(--soft); font-weight: 500; }
section { border-top: 1px solid var(--line); margin-top: 1.75rem; padding-top: 1.25rem; }
.asked { border-inline-start: 3px solid var(--mark); padding-inline-start: .8rem; margin-bottom: 1rem; }
.asked, .said { white-space: pre-wrap; overflow-wrap: anywhere; }
.runs { align-items: start; display: grid;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)); gap: .9rem; }
.run { min-width: 0; padding: .8rem .95rem; background: var(--sunk); border: 1px solid var(--line);
  border-radius: 10px; }
.run.original { background: none; } .figures { margin: .1rem 0 .6rem; }
.calls { display: grid; gap: .35rem; margin: .75rem 0 0; padding: 0; list-style: none; font-size: .85rem; }
.calls li { padding: .35rem .6rem; border: 1px solid var(--line); border-radius: 6px; }
.calls .differs { color: var(--differs-ink); background: var(--differs); border-color: currentcolor; }
.calls pre { margin: .2rem 0 0; font: .8rem/1.4 ui-monospace, monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; } .calls em { font-style: normal; font-weight: 600; }
.wrong { color: var(--wrong); } .nothing { color: var(--soft); font-style: italic; }
@media print { body { padding: 0; } .run, .asked { break-inside: avoid; } .run { background: none; } }
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A rerun with one model, or why there is none."""

    turn_id: str
    model: str
    result: RerunView | None
    error: str = ""


def comparison_page(title: str, about: str, runs: Sequence[ComparedRun]) -> str:
    """The document: totals, then each turn with its answers side by side."""
    models = list(dict.fromkeys(it.model for it in runs))
    by_turn: dict[str, list[ComparedRun]] = {}
    for it in runs:
        by_turn.setdefault(it.turn_id, []).append(it)
    sections = (_section(number, by_turn[id_]) for number, id_ in enumerate(by_turn, 1))
    return "".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f"<title>{escape(title)}</title>",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            f"<style>{_STYLE}</style></head><body><header><h1>{escape(title)}</h1>",
            f'<p class="about">{escape(about)}</p>{_totals(models, by_turn.values())}</header><main>',
            *sections,
            "</main></body></html>\n",
        ]
    )


def _totals(models: Sequence[str], turns: Iterable[Sequence[ComparedRun]]) -> str:
    """One row for the originals and one for each model, over the turns that all of them completed."""
    every = [turn for turn in turns if len(turn) == len(models)]
    whole = [turn for turn in every if all(it.result and it.result.outcome == "COMPLETED" for it in turn)]
    rows = [_row("Original", [it.original for turn in whole for it in _results(turn[:1])], None)]
    for model in models:
        outcomes = Counter(
            it.result.outcome if it.result else "ERROR" for turn in every for it in turn if it.model == model
        )
        ran = [it.result.rerun for turn in whole for it in turn if it.model == model and it.result]
        rows.append(_row(model, ran, outcomes))
    heads = ("Model", "Completed", "Needs a tool", "Failed", "Cost", "Time", "Output tokens")
    return "".join(
        [
            '<div class="totals"><table><caption>Cost, time and tokens are sums over the ',
            f"{len(whole)} of {len(every)} turns that every model completed.</caption><thead><tr>",
            *(f'<th scope="col">{it}</th>' for it in heads),
            "</tr></thead><tbody>",
            *rows,
            "</tbody></table></div>",
        ]
    )


def _results(turn: Iterable[ComparedRun]) -> Iterator[RerunView]:
    return (it.result for it in turn if it.result)


def _row(name: str, runs: Sequence[ModelRunView], outcomes: Counter[str] | None) -> str:
    counts = ("–", "–", "–")
    if outcomes is not None:
        failed = outcomes["FAILED"] + outcomes["ERROR"]
        counts = (f"{outcomes['COMPLETED']}", f"{outcomes['NEEDS_TOOL']}", f"{failed}")
    figures = (
        *counts,
        _cost_of_all([it.cost for it in runs]),
        _time(sum(it.duration_ms for it in runs)),
        f"{sum(it.usage.output_tokens for it in runs):,}",
    )
    return (
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(it)}</td>" for it in figures)}</tr>'
    )


def _section(number: int, turn: Sequence[ComparedRun]) -> str:
    parts = [f"<section><h2>Turn {number}</h2>"]
    known = next(_results(turn), None)
    if known is not None:
        parts.append(f'<div class="asked" dir="auto">{escape(known.question)}</div>')
    parts.append('<div class="runs">')
    if known is not None:
        name = f"Original: {known.original.model}" if known.original.model else "Original"
        parts.append(_article(name, _run(known.original), kind="run original"))
    for it in turn:
        if it.result is None:
            parts.append(_article(it.model, [_wrong(it.error)]))
        else:
            failure = [] if it.result.error is UNSET else [_wrong(it.result.error.message)]
            parts.append(_article(it.model, [*_run(it.result.rerun), *failure]))
    return "".join([*parts, "</div></section>"])


def _article(name: str, content: Iterable[str], *, kind: str = "run") -> str:
    return f'<article class="{kind}"><h3>{escape(name)}</h3>{"".join(content)}</article>'


def _wrong(why: str) -> str:
    return f'<p class="wrong">{escape(why)}</p>'


def _run(run: ModelRunView) -> Iterator[str]:
    figures = f"{_cost(run.cost)} · {_time(run.duration_ms)} · {run.usage.output_tokens:,} output tokens"
    yield f'<p class="figures">{escape(figures)}</p>'
    if run.text:
        yield f'<div class="said" dir="auto">{escape(run.text)}</div>'
    else:
        yield '<p class="nothing">No text</p>'
    if run.calls:
        yield '<ul class="calls" aria-label="Tool calls">'
        yield from map(_call, run.calls)
        yield "</ul>"


def _call(call: RunCallView) -> str:
    name = f"{call.server}.{call.tool_name}" if call.server else call.tool_name
    differs = "" if call.in_both else " <em>(only here)</em>"
    arguments = json.dumps(call.arguments, ensure_ascii=False, indent=1)
    kind = "" if call.in_both else ' class="differs"'
    return f"<li{kind}>{escape(name)}{differs}<pre>{escape(arguments)}</pre></li>"


def _cost(cost: CostView | None) -> str:
    return f"{cost.amount} {cost.currency}" if cost else "price unknown"


def _cost_of_all(costs: Sequence[CostView | None]) -> str:
    known = [it for it in costs if it is not None]
    if len(known) < len(costs) or len({it.currency for it in known}) > 1:
        return "unknown"
    if not known:
        return "–"
    return f"{sum((Decimal(it.amount) for it in known), Decimal(0)):f} {known[0].currency}"


def _time(milliseconds: int) -> str:
    return f"{milliseconds / 1000:,.1f} s"
