"""The Guide: an agent that demonstrates the features, without a model."""

from threadkeep.domain.choice import Choice
from threadkeep.domain.ids import AgentId

GUIDE_MODEL = "guide"
GUIDE_ID = AgentId("01900000-0000-7000-8000-00000000901d")
"""Always the same, so that a deleted Guide stays deleted."""


class Show(Choice):
    """What the Guide shows."""

    MENU = "menu"
    CHART = "chart"
    HANDBOOK = "handbook"
    APPROVAL = "approval"
    CRASH = "crash"
    EVERYTHING = "everything"


_WORDS: tuple[tuple[Show, tuple[str, ...]], ...] = (
    (Show.EVERYTHING, ("everything", "tour", "all of it", "全部", "完整", "所有", "一遍")),
    (Show.CRASH, ("crash", "kill", "unplug", "power", "restart", "崩溃", "断电", "中断", "重启")),
    (Show.APPROVAL, ("approv", "permission", "send", "report", "审批", "批准", "同意", "发送", "报告")),
    (Show.HANDBOOK, ("handbook", "document", "source", "cit", "手册", "文档", "来源", "引用")),
    (Show.CHART, ("chart", "sales", "tool", "thought", "graph", "图表", "销售", "工具", "思考")),
)


def wanted(question: str) -> Show:
    """What a question asks the Guide to show."""
    asked = question.lower()
    return next((show for show, words in _WORDS if any(word in asked for word in words)), Show.MENU)
