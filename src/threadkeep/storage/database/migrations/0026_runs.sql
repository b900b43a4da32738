-- How much of another engine's run has arrived: its events are counted when they are added, so that nobody has
-- to read them to know whether the run is complete, and whether there is room for more.
CREATE TABLE tk_runs (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    run_id text NOT NULL,
    parts bigint NOT NULL,
    bytes bigint NOT NULL,
    has_start boolean NOT NULL,
    has_end boolean NOT NULL,
    PRIMARY KEY (conversation_id, run_id)
);
-- Those that a crash has left between their last event and their turn.
CREATE INDEX tk_runs_complete ON tk_runs (conversation_id, run_id) WHERE has_start AND has_end;
