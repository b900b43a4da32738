"""AgentX 1.9.0: its envelopes over SSE, and its web socket."""
