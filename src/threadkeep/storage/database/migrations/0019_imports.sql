-- Imports that users began, and how far each has come. `progress` and `failure` are JSON objects.
CREATE TABLE tk_imports (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    agent_id uuid NOT NULL,
    file_name text NOT NULL,
    size bigint NOT NULL,
    status text NOT NULL,
    progress text NOT NULL,
    failure text,
    stops boolean NOT NULL DEFAULT FALSE,
    started_at bigint NOT NULL,
    -- When its node last said that it runs.
    noted_at bigint NOT NULL,
    ended_at bigint
);
CREATE INDEX tk_import_user ON tk_imports (user_id, started_at);
-- One at a time for each user, on all nodes together.
CREATE UNIQUE INDEX tk_running_import ON tk_imports (user_id) WHERE status = 'RUNNING';
