"""The Guide: a script instead of a model, to show everything before a model is connected.

It replies through the real engine, according to the last question. Its next words depend on the request
alone, as with a model: a turn that continues after a crash says the same again.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from threadkeep.domain.guide import GUIDE_MODEL, Show, wanted
from threadkeep.domain.model import Model
from threadkeep.domain.money import FREE
from threadkeep.ports.gateway import (
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelStopped,
    TextBlock,
    TextDelta,
    ThoughtDelta,
    ToolResultBlock,
    ToolUse,
)

CONTEXT_TOKENS = 100_000
WORD_S = 0.03
"""As fast as a good model writes."""

_WIDE = "\u3000-\u9fff\uff00-\uffef"
_CHINESE = re.compile("[\u4e00-\u9fff]")
_PIECES = re.compile(rf"\s*[{_WIDE}]{{1,2}}|\s*[^\s{_WIDE}]+|\s+")
"""Splits a text into words, Chinese into two characters; joined, the pieces are the text."""


@dataclass(frozen=True, slots=True)
class _Call:
    """What one model call thinks, says and asks for."""

    say: str = ""
    think: str = ""
    use: str = ""
    arguments: Mapping[str, Any] | None = None


Script = Sequence[Callable[[Sequence[ToolResultBlock]], _Call]]
"""What each model call of a turn does, given the results so far."""


class GuideGateway:
    """A model that follows a script."""

    def describe(self, model: str) -> Model:
        """It needs no gateway, and takes no files."""
        return Model(gateway="", name=GUIDE_MODEL, context_tokens=CONTEXT_TOKENS, price=FREE)

    def signer(self, model: str) -> str:
        """It signs nothing."""
        return model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """The next part of the script."""
        # It has no titles or summaries to give.
        call = next_call(request.messages) if request.tools else _Call()
        for piece in _PIECES.findall(call.think):
            yield ThoughtDelta(piece)
            await asyncio.sleep(WORD_S)
        for piece in _PIECES.findall(call.say):
            yield TextDelta(piece)
            await asyncio.sleep(WORD_S)
        if call.use:
            yield ToolUse("", call.use, call.arguments or {})
        yield ModelStopped("tool_use" if call.use else "end_turn")

    async def retire(self) -> None:
        """Nothing to close."""

    async def close(self) -> None:
        """Nothing to close."""


def next_call(messages: Sequence[ModelMessage]) -> _Call:
    """The script's reply to these messages."""
    asked_at = max(at for at, message in enumerate(messages) if _is_question(message))
    texts = [block.text for block in messages[asked_at].blocks if isinstance(block, TextBlock)]
    question, since = texts[-1], messages[asked_at + 1 :]
    results = [block for message in since for block in message.blocks if isinstance(block, ToolResultBlock)]
    scripts = _CHINESE_SCRIPTS if _CHINESE.search(question) else _ENGLISH_SCRIPTS
    script = scripts[wanted(question)]
    done = sum(message.role == "assistant" for message in since)
    return script[min(done, len(script) - 1)](results)


def _is_question(message: ModelMessage) -> bool:
    kinds = [type(block) for block in message.blocks]
    return message.role == "user" and TextBlock in kinds and ToolResultBlock not in kinds


def _always(call: _Call) -> Callable[[Sequence[ToolResultBlock]], _Call]:
    return lambda _: call


def _after_asking(allowed: str, denied: str) -> Callable[[Sequence[ToolResultBlock]], _Call]:
    return lambda results: _Call(denied if results and results[-1].is_error else allowed)


_REPORT = {"to": "team@example.com", "subject": "Sales, January to June"}
_REPORT_ZH = {"to": "team@example.com", "subject": "一月到六月的销售额"}

_EN_SALES = _always(
    _Call(
        think="They want to know how sales went. The sales tool has monthly figures; a line chart shows the "
        "trend.",
        say="Let me look at the numbers.",
        use="look_up_sales",
        arguments={"from": "January", "to": "June"},
    )
)
_EN_SALES_SAID = "Sales grew from 12 in January to 31 in June, with one dip in April."
_EN_HANDBOOK = _always(
    _Call(use="search_handbook", arguments={"query": "what happens when the server stops"})
)
_EN_HANDBOOK_SAID = (
    "Threadkeep stores everything before you see it [1]. If the server stops, the turn resumes from what "
    "is stored [2]. The passages are below."
)
_EN_ASK = "Next I'd send a report to the team, but I need your approval first."
_EN_SENT = "You allowed it, so I sent the report. (This is a tour: nothing left your machine.)"
_EN_NOT_SENT = "You denied it, so nothing was sent. The turn continues either way."
_EN_MENU = """I am a guide, not a model: I follow a script through the real engine. Ask me to show you

- **a chart**: a thought, a tool and what it returned
- **the handbook**: an answer with its sources
- **an approval**: a tool that asks before it runs
- **a crash**: a turn that loses its server and goes on
- **everything** in one turn

To talk to a real model, set `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`, and restart."""
_EN_CRASH = _always(
    _Call(
        think="I'll lose my server mid-sentence, just as in a real crash.",
        say="Watch the next sentence.",
        use="unplug_server",
    )
)
_EN_AFTER_CRASH = (
    "While I write this sentence, the process behind it lets go of this turn, as if somebody had pulled the "
    "plug, and another run picks it up from its log. Only the sentence that was being written is written "
    "again: what you had seen before is still here, and no tool ran twice. The turn's details show the "
    "fragment."
)

_ZH_SALES = _always(
    _Call(
        think="对方想看销售走势。销售工具里有每月的数据，折线图最能看出趋势。",
        say="我先看一下数据。",
        use="look_up_sales",
        arguments={"from": "一月", "to": "六月"},
    )
)
_ZH_SALES_SAID = "销售额从一月的 12 增长到六月的 31，只有四月略有回落。"
_ZH_HANDBOOK = _always(_Call(use="search_handbook", arguments={"query": "服务器停止时会怎样"}))
_ZH_HANDBOOK_SAID = "所有内容都先保存再显示 [1]；服务器中断后，回合会从保存的位置继续 [2]。原文见下方来源。"
_ZH_ASK = "接下来我想把报告发给团队，但没有您的同意我不能发。"
_ZH_SENT = "您同意了，报告已发送。（这只是演示，没有任何内容离开您的电脑。）"
_ZH_NOT_SENT = "您拒绝了，所以什么都没有发送。回合照常继续。"
_ZH_MENU = """我是向导，不是模型：我按脚本回答，但走的是真正的引擎。您可以让我展示

- **图表**：一段思考、一次工具调用及其结果
- **手册**：带来源的回答
- **审批**：运行前先征求同意的工具
- **崩溃**：服务器中断后继续的回合
- **全部**：一个回合里看完

要连接真正的模型，请设置 `ANTHROPIC_API_KEY` 或 `OPENAI_API_KEY`，然后重启。"""
_ZH_CRASH = _always(
    _Call(think="我要在写到一半时失去服务器，就像真的出了事故。", say="请看下一句话。", use="unplug_server")
)
_ZH_AFTER_CRASH = (
    "就在我写这句话的时候，背后的进程放弃了这个回合，就像有人拔掉了电源，随后另一次运行从日志里接着写下去。"
    "只有正在写的那句话会重写：您之前看到的内容都还在，也没有工具运行两次。打开回合详情可以看到中断的片段。"
)


def _with_report(ask: str, report: Mapping[str, Any]) -> Callable[[Sequence[ToolResultBlock]], _Call]:
    return _always(_Call(say=ask, use="send_report", arguments=report))


_ENGLISH_SCRIPTS: Mapping[Show, Script] = {
    Show.MENU: [_always(_Call(_EN_MENU))],
    Show.CHART: [_EN_SALES, _always(_Call(_EN_SALES_SAID))],
    Show.HANDBOOK: [_EN_HANDBOOK, _always(_Call(_EN_HANDBOOK_SAID))],
    Show.APPROVAL: [_with_report(_EN_ASK, _REPORT), _after_asking(_EN_SENT, _EN_NOT_SENT)],
    Show.CRASH: [_EN_CRASH, _always(_Call(_EN_AFTER_CRASH))],
    Show.EVERYTHING: [
        _EN_SALES,
        _always(_Call(say=_EN_SALES_SAID, use="search_handbook", arguments={"query": "server stops"})),
        _with_report(f"{_EN_HANDBOOK_SAID} {_EN_ASK}", _REPORT),
        _after_asking(_EN_SENT, _EN_NOT_SENT),
    ],
}
_CHINESE_SCRIPTS: Mapping[Show, Script] = {
    Show.MENU: [_always(_Call(_ZH_MENU))],
    Show.CHART: [_ZH_SALES, _always(_Call(_ZH_SALES_SAID))],
    Show.HANDBOOK: [_ZH_HANDBOOK, _always(_Call(_ZH_HANDBOOK_SAID))],
    Show.APPROVAL: [_with_report(_ZH_ASK, _REPORT_ZH), _after_asking(_ZH_SENT, _ZH_NOT_SENT)],
    Show.CRASH: [_ZH_CRASH, _always(_Call(_ZH_AFTER_CRASH))],
    Show.EVERYTHING: [
        _ZH_SALES,
        _always(_Call(say=_ZH_SALES_SAID, use="search_handbook", arguments={"query": "服务器停止"})),
        _with_report(f"{_ZH_HANDBOOK_SAID}{_ZH_ASK}", _REPORT_ZH),
        _after_asking(_ZH_SENT, _ZH_NOT_SENT),
    ],
}
