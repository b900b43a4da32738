"""The codes of notices and errors that only turns of agents in code have."""

AGENT_NOTICE = "AGENT_NOTICE"
"""A notice of the program's own."""
OUTPUT_DIFFERED = "OUTPUT_DIFFERED"
"""The program, run again, said something else than before."""

AGENT_FAILED = "AGENT_FAILED"
NOTHING_SAID = "The agent's code ended without a reply."
"""The error of a turn whose program returned and has said nothing; its code is AGENT_FAILED."""
REPLAY_DIVERGED = "REPLAY_DIVERGED"
OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
STEP_LIMIT = "STEP_LIMIT"
