-- One text for SQLite and PostgreSQL. Types are PostgreSQL's; SQLite takes them by affinity.
-- Times are milliseconds since 1970 (UTC). JSON is kept as the text that was written, since it is
-- handed on as it is. :blank stands for the characters of domain/text.py that show nothing.

CREATE TABLE tk_meta (
    name text NOT NULL PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE tk_users (
    id text NOT NULL PRIMARY KEY,
    created_at bigint NOT NULL
);

CREATE TABLE tk_agents (
    id uuid NOT NULL PRIMARY KEY,
    -- Set to NULL when the owner is deleted: other people's conversations with the agent stay.
    owner_id text REFERENCES tk_users (id) ON DELETE SET NULL,
    name text NOT NULL CHECK (trim(name, :blank) <> ''),
    description text NOT NULL,
    primary_role_id text NOT NULL,
    system_prompt text NOT NULL,
    model text,
    visibility text NOT NULL CHECK (visibility IN ('private', 'public')),
    settings text NOT NULL,
    is_default boolean NOT NULL,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    deleted_at bigint
);
CREATE INDEX tk_agents_by_owner ON tk_agents (owner_id, id) WHERE deleted_at IS NULL;
CREATE INDEX tk_agents_public ON tk_agents (id) WHERE deleted_at IS NULL AND visibility = 'public';
CREATE UNIQUE INDEX tk_agents_default ON tk_agents (is_default) WHERE is_default;

-- What the tools of an agent's MCP servers are, and what they were when the agent was last saved (hashes).
CREATE TABLE tk_seen_tools (
    agent_id uuid NOT NULL REFERENCES tk_agents (id) ON DELETE CASCADE,
    server text NOT NULL,
    accepted text NOT NULL,
    seen text NOT NULL,
    PRIMARY KEY (agent_id, server)
);

CREATE TABLE tk_conversations (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    agent_id uuid NOT NULL REFERENCES tk_agents (id) ON DELETE CASCADE,
    session_id text NOT NULL UNIQUE,
    title text CHECK (trim(title, :blank) <> ''),
    title_source text CHECK (title_source IN ('derived', 'model', 'user')),
    status text NOT NULL CHECK (status IN ('active', 'archived')),
    is_main boolean NOT NULL,
    metadata text NOT NULL,
    last_seq bigint NOT NULL,
    message_count bigint NOT NULL,
    archived_to_seq bigint NOT NULL,
    active_turn_id uuid,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    last_message_at bigint,
    deleted_at bigint
);
-- The status stands last in the two list indexes so that filtering by it needs no look at the rows.
CREATE INDEX tk_conversations_by_user
    ON tk_conversations (user_id, updated_at DESC, id DESC, status) WHERE deleted_at IS NULL;
CREATE INDEX tk_conversations_by_agent
    ON tk_conversations (user_id, agent_id, updated_at DESC, id DESC, status) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX tk_conversations_main
    ON tk_conversations (user_id, agent_id) WHERE is_main AND deleted_at IS NULL;
CREATE INDEX tk_conversations_deleted ON tk_conversations (deleted_at) WHERE deleted_at IS NOT NULL;
-- For the end of an agent: each would otherwise cost a walk over everybody's conversations.
CREATE INDEX tk_conversations_of_agent ON tk_conversations (agent_id);

CREATE TABLE tk_turns (
    id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    -- The conversation's user once more, so that what a user has spent is found by one index.
    user_id text REFERENCES tk_users (id) ON DELETE CASCADE,
    user_message_id uuid NOT NULL,
    assistant_message_id uuid NOT NULL,
    origin text NOT NULL CHECK (origin IN ('live', 'recorded')),
    status text NOT NULL CHECK (status IN ('RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    model text,
    usage text,
    -- The numbers of `usage`, for sums.
    input_tokens bigint,
    output_tokens bigint,
    usage_estimated boolean,
    error text,
    idempotency_key text,
    request_hash text,
    node_id text,
    fence bigint NOT NULL DEFAULT 0,
    lease_until bigint,
    abort_requested boolean NOT NULL DEFAULT FALSE,
    last_event_seq bigint NOT NULL DEFAULT 0,
    started_at bigint NOT NULL,
    ended_at bigint
);
CREATE INDEX tk_turns_by_conversation ON tk_turns (conversation_id, id);
CREATE INDEX tk_turns_by_user ON tk_turns (user_id, started_at);
CREATE UNIQUE INDEX tk_turns_active ON tk_turns (conversation_id) WHERE status = 'RUNNING' AND origin = 'live';
CREATE INDEX tk_turns_leases ON tk_turns (lease_until) WHERE status = 'RUNNING' AND origin = 'live';
CREATE UNIQUE INDEX tk_turns_idempotency
    ON tk_turns (conversation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE tk_messages (
    id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    turn_id uuid REFERENCES tk_turns (id) ON DELETE CASCADE,
    role text NOT NULL CHECK (role IN ('user', 'assistant', 'system')),
    content_type text NOT NULL CHECK (content_type IN ('text', 'briefing_card')),
    content text NOT NULL,
    status text NOT NULL
        CHECK (status IN ('PENDING', 'STREAMING', 'COMPLETED', 'FAILED', 'CANCELLED', 'OVERWRITTEN')),
    thought_process text,
    citations text,
    artifact_ids text,
    tool_call_count bigint NOT NULL DEFAULT 0,
    token_count bigint,
    usage text,
    model text,
    error text,
    created_at bigint NOT NULL,
    completed_at bigint,
    CHECK ((role = 'assistant' AND status <> 'COMPLETED') OR trim(content, :blank) <> '')
);
CREATE UNIQUE INDEX tk_messages_by_seq ON tk_messages (conversation_id, seq);
CREATE INDEX tk_messages_by_turn ON tk_messages (turn_id);

-- The event log of a turn: one row holds a run of consecutive events.
CREATE TABLE tk_turn_chunks (
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL CHECK (last_seq >= first_seq),
    events text NOT NULL,
    PRIMARY KEY (turn_id, first_seq)
);

-- What the model was sent, by hash; the texts themselves are kept once.
CREATE TABLE tk_receipts (
    turn_id uuid NOT NULL PRIMARY KEY REFERENCES tk_turns (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    receipt text NOT NULL
);
CREATE INDEX tk_receipts_by_conversation ON tk_receipts (conversation_id);
CREATE TABLE tk_prompt_texts (
    sha256 text NOT NULL PRIMARY KEY,
    text text NOT NULL
);
-- Which receipts need a text: once none does, it goes.
CREATE TABLE tk_receipt_texts (
    turn_id uuid NOT NULL REFERENCES tk_receipts (turn_id) ON DELETE CASCADE,
    sha256 text NOT NULL REFERENCES tk_prompt_texts (sha256),
    PRIMARY KEY (turn_id, sha256)
);
CREATE INDEX tk_receipt_texts_by_text ON tk_receipt_texts (sha256);

CREATE TABLE tk_tool_calls (
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    tool_call_id text NOT NULL,
    message_id uuid NOT NULL REFERENCES tk_messages (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    position bigint NOT NULL,
    tool_name text NOT NULL,
    server text NOT NULL,
    arguments text NOT NULL,
    status text NOT NULL CHECK (status IN ('running', 'ok', 'error', 'timeout', 'denied', 'interrupted')),
    result text,
    error text,
    chart_data text,
    -- Which of these fields lie in the payload store, and where. What looks like a reference in the
    -- fields themselves is a tool's own words.
    refs text,
    duration_ms bigint,
    created_at bigint NOT NULL,
    PRIMARY KEY (turn_id, tool_call_id)
);
CREATE INDEX tk_tool_calls_by_message ON tk_tool_calls (message_id, position);
CREATE INDEX tk_tool_calls_by_conversation
    ON tk_tool_calls (conversation_id, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE INDEX tk_tool_calls_by_user
    ON tk_tool_calls (user_id, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE INDEX tk_tool_calls_by_tool
    ON tk_tool_calls (user_id, tool_name, created_at DESC, turn_id DESC, tool_call_id DESC);

-- The user comes first in the key: with a key on the id alone PostgreSQL may walk everybody's
-- briefings by id to find a user's newest ones.
CREATE TABLE tk_briefings (
    id uuid NOT NULL,
    agent_id uuid NOT NULL REFERENCES tk_agents (id) ON DELETE CASCADE,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    title text NOT NULL CHECK (trim(title, :blank) <> ''),
    summary text NOT NULL CHECK (trim(summary, :blank) <> ''),
    priority text NOT NULL CHECK (priority IN ('P0', 'P1', 'P2', 'P3')),
    data text,
    actions text,
    message_id uuid REFERENCES tk_messages (id) ON DELETE SET NULL,
    created_at bigint NOT NULL,
    read_at bigint,
    PRIMARY KEY (user_id, id)
);
CREATE INDEX tk_briefings_unread ON tk_briefings (user_id, id DESC) WHERE read_at IS NULL;
CREATE INDEX tk_briefings_by_agent ON tk_briefings (agent_id);
CREATE INDEX tk_briefings_by_message ON tk_briefings (message_id);

CREATE TABLE tk_documents (
    id uuid NOT NULL PRIMARY KEY,
    agent_id uuid NOT NULL REFERENCES tk_agents (id) ON DELETE CASCADE,
    file_name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    sha256 text NOT NULL,
    status text NOT NULL CHECK (status IN ('processing', 'ready', 'failed')),
    progress double precision NOT NULL,
    chunk_count bigint NOT NULL,
    error text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    UNIQUE (agent_id, sha256)
);
-- What is searched together: an agent's documents, or a user's messages. Its number stands before each of
-- its terms, so that a search reads nothing of anybody else.
CREATE TABLE tk_collections (
    number bigint NOT NULL PRIMARY KEY,
    agent_id uuid UNIQUE REFERENCES tk_agents (id) ON DELETE CASCADE,
    user_id text UNIQUE REFERENCES tk_users (id) ON DELETE CASCADE,
    chunk_count bigint NOT NULL DEFAULT 0,
    term_count bigint NOT NULL DEFAULT 0,
    -- How often chunks were taken away: whoever keeps a copy of the others starts anew.
    removals bigint NOT NULL DEFAULT 0
);
-- In how many chunks a term is: what is rare says more.
CREATE TABLE tk_terms (
    collection bigint NOT NULL REFERENCES tk_collections (number) ON DELETE CASCADE,
    term text NOT NULL,
    chunks bigint NOT NULL,
    PRIMARY KEY (collection, term)
);
-- `terms` is what a chunk is found by, as often as it occurs, with a space between; each database keeps
-- an index of its own kind on it.
CREATE TABLE tk_chunks (
    id bigint NOT NULL PRIMARY KEY,
    document_id uuid NOT NULL REFERENCES tk_documents (id) ON DELETE CASCADE,
    position bigint NOT NULL,
    page bigint,
    heading text,
    text text NOT NULL,
    term_count bigint NOT NULL,
    terms text NOT NULL,
    UNIQUE (document_id, position)
);
CREATE TABLE tk_vectors (
    chunk_id bigint NOT NULL PRIMARY KEY REFERENCES tk_chunks (id) ON DELETE CASCADE,
    seq bigint NOT NULL UNIQUE,
    embedder text NOT NULL,
    vector bytea NOT NULL
);
-- Chunks that an embedder did not take though it took others: after some tries they are left to their words.
CREATE TABLE tk_refused_chunks (
    chunk_id bigint NOT NULL PRIMARY KEY REFERENCES tk_chunks (id) ON DELETE CASCADE,
    embedder text NOT NULL,
    tries bigint NOT NULL
);

-- What of a user's conversations can be searched: their messages, and their titles (without a message).
CREATE TABLE tk_entries (
    id bigint NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    message_id uuid UNIQUE REFERENCES tk_messages (id) ON DELETE CASCADE,
    terms text NOT NULL
);
CREATE INDEX tk_entries_by_conversation ON tk_entries (conversation_id, message_id);
-- How far a conversation has been made searchable.
CREATE TABLE tk_searchable (
    conversation_id uuid NOT NULL PRIMARY KEY REFERENCES tk_conversations (id) ON DELETE CASCADE,
    to_seq bigint NOT NULL,
    title text
);

CREATE TABLE tk_compactions (
    id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL CHECK (to_seq >= from_seq),
    summary text NOT NULL CHECK (trim(summary, :blank) <> ''),
    archived_count bigint NOT NULL,
    tokens_before bigint NOT NULL,
    tokens_after bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX tk_compactions_by_conversation ON tk_compactions (conversation_id, to_seq DESC);

-- Large values and files; the bytes lie in a folder or in the table below, by conversation and hash.
CREATE TABLE tk_payloads (
    id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('value', 'artifact')),
    media_type text NOT NULL,
    file_name text,
    size bigint NOT NULL,
    sha256 text NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX tk_payloads_by_content ON tk_payloads (conversation_id, sha256);
CREATE TABLE tk_payload_contents (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    sha256 text NOT NULL,
    content bytea NOT NULL,
    written_at bigint NOT NULL,
    PRIMARY KEY (conversation_id, sha256)
);

-- What an agent remembers of a user.
CREATE TABLE tk_memories (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    agent_id uuid NOT NULL REFERENCES tk_agents (id) ON DELETE CASCADE,
    content text NOT NULL CHECK (trim(content, :blank) <> ''),
    tags text,
    created_at bigint NOT NULL
);
CREATE INDEX tk_memories_by_user ON tk_memories (user_id, agent_id, id);
CREATE INDEX tk_memories_by_agent ON tk_memories (agent_id);

-- Domain events of turns that ran in another engine, kept until the terminal one arrives.
CREATE TABLE tk_executions (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    run_id text NOT NULL,
    event_id text NOT NULL,
    type text NOT NULL,
    at bigint NOT NULL,
    event text NOT NULL,
    PRIMARY KEY (conversation_id, run_id, event_id)
);

CREATE TABLE tk_counters (
    name text NOT NULL PRIMARY KEY,
    value bigint NOT NULL
);

CREATE TABLE tk_jobs (
    id uuid NOT NULL PRIMARY KEY,
    kind text NOT NULL,
    arguments text NOT NULL,
    attempts bigint NOT NULL,
    run_at bigint NOT NULL,
    holder text,
    lease_until bigint,
    error text,
    created_at bigint NOT NULL
);
CREATE INDEX tk_jobs_due ON tk_jobs (run_at);
CREATE INDEX tk_jobs_alike ON tk_jobs (kind, arguments);

-- Who changed which agent. No foreign keys: the record outlives user and agent.
CREATE TABLE tk_audit (
    id uuid NOT NULL PRIMARY KEY,
    at bigint NOT NULL,
    actor_id text NOT NULL,
    action text NOT NULL,
    agent_id uuid,
    details text NOT NULL
);
