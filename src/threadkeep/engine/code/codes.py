"""The codes of notices and errors that only turns of agents in code have."""

AGENT_NOTICE = "AGENT_NOTICE"
"""A notice of the program's own."""
OUTPUT_DIFFERED = "OUTPUT_DIFFERED"
"""The program, run again, said something else than before."""

AGENT_FAILED = "AGENT_FAILED"
REPLAY_DIVERGED = "REPLAY_DIVERGED"
OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
STEP_LIMIT = "STEP_LIMIT"
