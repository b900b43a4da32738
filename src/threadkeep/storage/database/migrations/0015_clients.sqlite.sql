-- A turn can also wait for the client to run a tool. SQLite can't change a table's checks.
CREATE TABLE tk_approvals_after (
    id uuid NOT NULL PRIMARY KEY,
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('tool', 'question', 'elicitation', 'client_tool')),
    message text NOT NULL,
    tool_call_id text,
    tool_name text,
    server text,
    arguments text,
    schema text,
    url text,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    answer text,
    granted boolean NOT NULL DEFAULT FALSE,
    answered_at bigint,
    tool_definition text
);
INSERT INTO tk_approvals_after SELECT id, turn_id, conversation_id, kind, message, tool_call_id, tool_name, server,
    arguments, schema, url, created_at, expires_at, answer, granted, answered_at, tool_definition
FROM tk_approvals;
DROP TABLE tk_approvals;
ALTER TABLE tk_approvals_after RENAME TO tk_approvals;
CREATE INDEX tk_approvals_by_turn ON tk_approvals (turn_id);
CREATE INDEX tk_approvals_by_conversation ON tk_approvals (conversation_id);
CREATE INDEX tk_approvals_open ON tk_approvals (expires_at) WHERE answered_at IS NULL;
