"""The words of a report for people, and how its reader writes times."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from threadkeep.domain.times import time_in
from threadkeep.domain.tool_call import ToolCallStatus

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a report says besides what was said."""

    language: str
    conversation: str = "Conversation"
    exported: str = "exported"
    you: str = "You"
    agent: str = "Agent"
    briefing: str = "Briefing"
    other_branch: str = "another branch"
    sources: str = "Sources"
    files: str = "Files"
    page: str = "p."
    thought: str = "Thought"
    no_answer: str = "no answer"
    between: str = ": "
    not_typeset: str = "This report is long: its last texts are shown as they were written."
    statuses: Mapping[str, str] = field(
        default_factory=lambda: {
            ToolCallStatus.RUNNING: "running",
            ToolCallStatus.ERROR: "failed",
            ToolCallStatus.TIMEOUT: "timed out",
            ToolCallStatus.DENIED: "denied",
            ToolCallStatus.INTERRUPTED: "interrupted",
            ToolCallStatus.UNKNOWN: "outcome unknown",
            "cancelled": "cancelled",
        }
    )


ENGLISH = Words(language="en")
CHINESE = Words(
    language="zh-CN",
    conversation="对话",
    exported="导出于",
    you="我",
    agent="智能体",
    briefing="简报",
    other_branch="其他分支",
    sources="来源",
    files="文件",
    page="页",
    thought="思考",
    no_answer="未回应",
    between="：",
    not_typeset="本报告较长，最后的文本按原样显示。",
    statuses={
        ToolCallStatus.RUNNING: "运行中",
        ToolCallStatus.ERROR: "失败",
        ToolCallStatus.TIMEOUT: "超时",
        ToolCallStatus.DENIED: "已拒绝",
        ToolCallStatus.INTERRUPTED: "已中断",
        ToolCallStatus.UNKNOWN: "结果未知",
        "cancelled": "已取消",
    },
)


@dataclass(frozen=True, slots=True)
class Reader:
    """Who a report is for: their language and their time zone."""

    words: Words = ENGLISH
    zone: tzinfo = UTC

    def day(self, at: int) -> str:
        """A day as the reader writes it."""
        day = time_in(at, self.zone)
        if self.words is CHINESE:
            return f"{day.year}年{day.month}月{day.day}日"
        return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"

    def moment(self, at: int) -> str:
        """A time as the reader writes it; the zone is named only if it isn't the reader's own."""
        named = " UTC" if self.zone is UTC else ""
        between = " " if self.words is CHINESE else ", "
        return f"{self.day(at)}{between}{time_in(at, self.zone):%H:%M}{named}"


def duration(milliseconds: int) -> str:
    """How long something took, as the page writes it."""
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def reader_of(language: str, zone: str | None) -> Reader:
    """A reader by what their page says; ValueError if there is no such time zone."""
    words = CHINESE if language == "zh" else ENGLISH
    if zone is None:
        return Reader(words)
    try:
        return Reader(words, ZoneInfo(zone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"There is no time zone {zone!r}.") from error
