"""Fakes for testing applications that use Threadkeep: a scripted model, a tool server, a complete app.

They need only Threadkeep itself. docs/testing.md shows how to use them.
"""

from threadkeep.testing.agents import AgentRun, NotDeterministic, StepNotFaked, StepRuns, run_agent
from threadkeep.testing.app import RunningApp, running_app, scripted_settings
from threadkeep.testing.crashes import Crash, CrashReport, crash_everywhere
from threadkeep.testing.listening import listening
from threadkeep.testing.script import (
    BrokenJson,
    CutOff,
    Fail,
    Gate,
    Hang,
    NoEnd,
    NoUsage,
    Pause,
    Ping,
    Raw,
    Reply,
    Reset,
    Say,
    SayTime,
    Status,
    Step,
    Stop,
    Think,
    ThinkUnseen,
    UnknownEvent,
    Usage,
    UseTool,
    Wait,
)
from threadkeep.testing.scripted_model import Outcome, Recorded, ScriptedModel, closed_port
from threadkeep.testing.tool_server import ToolServer, ToolUse
from threadkeep.testing.waiting import until

__all__ = [
    "AgentRun",
    "BrokenJson",
    "Crash",
    "CrashReport",
    "CutOff",
    "Fail",
    "Gate",
    "Hang",
    "NoEnd",
    "NoUsage",
    "NotDeterministic",
    "Outcome",
    "Pause",
    "Ping",
    "Raw",
    "Recorded",
    "Reply",
    "Reset",
    "RunningApp",
    "Say",
    "SayTime",
    "ScriptedModel",
    "Status",
    "Step",
    "StepNotFaked",
    "StepRuns",
    "Stop",
    "Think",
    "ThinkUnseen",
    "ToolServer",
    "ToolUse",
    "UnknownEvent",
    "Usage",
    "UseTool",
    "Wait",
    "closed_port",
    "crash_everywhere",
    "listening",
    "run_agent",
    "running_app",
    "scripted_settings",
    "until",
]
