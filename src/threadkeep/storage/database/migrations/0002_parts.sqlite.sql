-- SQLite cannot change a CHECK: each table is built again and takes the other's place. This runs with foreign
-- keys off (storage/sqlite.py): otherwise a DROP would delete all that refers to the table.

CREATE TABLE tk_new_turns (
    id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    -- The conversation's user once more, so that what a user has spent is found by one index.
    user_id text REFERENCES tk_users (id) ON DELETE CASCADE,
    user_message_id uuid NOT NULL,
    assistant_message_id uuid NOT NULL,
    origin text NOT NULL CHECK (origin IN ('live', 'recorded')),
    status text NOT NULL CHECK (status IN ('RUNNING', 'WAITING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    model text,
    usage text,
    -- The numbers of `usage`, for sums.
    input_tokens bigint,
    output_tokens bigint,
    cache_read_tokens bigint,
    cache_write_tokens bigint,
    usage_estimated boolean,
    error text,
    idempotency_key text,
    request_hash text,
    node_id text,
    fence bigint NOT NULL DEFAULT 0,
    lease_until bigint,
    -- How often in a row the turn's node was lost.
    attempts bigint NOT NULL DEFAULT 0,
    abort_requested boolean NOT NULL DEFAULT FALSE,
    last_event_seq bigint NOT NULL DEFAULT 0,
    started_at bigint NOT NULL,
    ended_at bigint
);
INSERT INTO tk_new_turns (id, conversation_id, user_id, user_message_id, assistant_message_id, origin, status,
        model, usage, input_tokens, output_tokens, usage_estimated, error, idempotency_key, request_hash,
        node_id, fence, lease_until, abort_requested, last_event_seq, started_at, ended_at)
    SELECT id, conversation_id, user_id, user_message_id, assistant_message_id, origin, status,
        model, usage, input_tokens, output_tokens, usage_estimated, error, idempotency_key, request_hash,
        node_id, fence, lease_until, abort_requested, last_event_seq, started_at, ended_at
    FROM tk_turns;
DROP TABLE tk_turns;
ALTER TABLE tk_new_turns RENAME TO tk_turns;
CREATE INDEX tk_turns_by_conversation ON tk_turns (conversation_id, id);
CREATE INDEX tk_turns_by_user ON tk_turns (user_id, started_at);
CREATE UNIQUE INDEX tk_turns_active
    ON tk_turns (conversation_id) WHERE status IN ('RUNNING', 'WAITING') AND origin = 'live';
CREATE INDEX tk_turns_leases ON tk_turns (lease_until) WHERE status = 'RUNNING' AND origin = 'live';
CREATE UNIQUE INDEX tk_turns_idempotency
    ON tk_turns (conversation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE tk_new_messages (
    id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    turn_id uuid REFERENCES tk_turns (id) ON DELETE CASCADE,
    role text NOT NULL CHECK (role IN ('user', 'assistant', 'system')),
    content_type text NOT NULL CHECK (content_type IN ('text', 'briefing_card')),
    content text NOT NULL,
    status text NOT NULL CHECK (status IN ('PENDING', 'STREAMING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    -- NULL where the content says it all: one text, one card, or nothing yet (storage/parts.py).
    parts text,
    parent_id uuid,
    on_path boolean NOT NULL,
    tool_call_count bigint NOT NULL DEFAULT 0,
    file_count bigint NOT NULL DEFAULT 0,
    token_count bigint,
    usage text,
    model text,
    error text,
    created_at bigint NOT NULL,
    completed_at bigint,
    CHECK ((role = 'assistant' AND status <> 'COMPLETED')
        OR trim(content, :blank) <> '' OR (role = 'user' AND file_count > 0))
);
-- A reply's parent is its question, every other message's the one before it on the path. A message off the
-- path keeps the status that its turn ended in.
INSERT INTO tk_new_messages (id, conversation_id, seq, turn_id, role, content_type, content, status, parent_id,
        on_path, tool_call_count, token_count, usage, model, error, created_at, completed_at)
    SELECT message.id, message.conversation_id, message.seq, message.turn_id, message.role,
        message.content_type, message.content,
        CASE WHEN message.status <> 'OVERWRITTEN' THEN message.status
            WHEN turn.status IN ('FAILED', 'CANCELLED') THEN turn.status
            WHEN trim(message.content, :blank) = '' THEN 'CANCELLED'
            ELSE 'COMPLETED' END,
        COALESCE(
            CASE WHEN turn.assistant_message_id = message.id THEN turn.user_message_id END,
            (SELECT before.id FROM tk_messages AS before
            WHERE before.conversation_id = message.conversation_id AND before.seq < message.seq
                AND before.status <> 'OVERWRITTEN'
            ORDER BY before.seq DESC LIMIT 1)),
        message.status <> 'OVERWRITTEN', message.tool_call_count, message.token_count, message.usage,
        message.model, message.error, message.created_at, message.completed_at
    FROM tk_messages AS message LEFT JOIN tk_turns AS turn ON turn.id = message.turn_id;
DROP TABLE tk_messages;
ALTER TABLE tk_new_messages RENAME TO tk_messages;
CREATE UNIQUE INDEX tk_messages_by_seq ON tk_messages (conversation_id, seq);
-- The active path is one range of this index.
CREATE UNIQUE INDEX tk_messages_on_path ON tk_messages (conversation_id, seq) WHERE on_path;
CREATE INDEX tk_messages_by_parent ON tk_messages (conversation_id, parent_id);
CREATE INDEX tk_messages_by_turn ON tk_messages (turn_id);

CREATE TABLE tk_new_tool_calls (
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    tool_call_id text NOT NULL,
    message_id uuid NOT NULL REFERENCES tk_messages (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    position bigint NOT NULL,
    tool_name text NOT NULL,
    -- What the model called the tool.
    model_name text,
    server text NOT NULL,
    arguments text NOT NULL,
    status text NOT NULL
        CHECK (status IN ('running', 'ok', 'error', 'timeout', 'denied', 'interrupted', 'unknown')),
    result text,
    error text,
    chart_data text,
    -- Which of these fields lie in the payload store, and where. What looks like a reference in the
    -- fields themselves is a tool's own words.
    refs text,
    artifact_ids text,
    approval text,
    duration_ms bigint,
    created_at bigint NOT NULL,
    PRIMARY KEY (turn_id, tool_call_id)
);
INSERT INTO tk_new_tool_calls (turn_id, tool_call_id, message_id, conversation_id, user_id, position, tool_name,
        server, arguments, status, result, error, chart_data, refs, duration_ms, created_at)
    SELECT turn_id, tool_call_id, message_id, conversation_id, user_id, position, tool_name,
        server, arguments, status, result, error, chart_data, refs, duration_ms, created_at
    FROM tk_tool_calls;
DROP TABLE tk_tool_calls;
ALTER TABLE tk_new_tool_calls RENAME TO tk_tool_calls;
CREATE INDEX tk_tool_calls_by_message ON tk_tool_calls (message_id, position);
CREATE INDEX tk_tool_calls_by_conversation
    ON tk_tool_calls (conversation_id, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE INDEX tk_tool_calls_by_user
    ON tk_tool_calls (user_id, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE INDEX tk_tool_calls_by_tool
    ON tk_tool_calls (user_id, tool_name, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE INDEX tk_tool_calls_by_id ON tk_tool_calls (conversation_id, tool_call_id, created_at DESC);
-- Which role the agent has taken on.
CREATE INDEX tk_tool_calls_roles ON tk_tool_calls (conversation_id, created_at DESC, position DESC)
    WHERE server = 'promptx' AND tool_name = 'promptx_action' AND status = 'ok';
