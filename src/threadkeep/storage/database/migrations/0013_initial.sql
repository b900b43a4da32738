-- The schema of the first release, 0.1.0. It has number 13 since twelve development versions came before it: a
-- database that they brought to 13 has the same schema (tests/storage/schema.*.sql).
--
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
-- When users were deleted: tokens issued before that stay refused. `name` doesn't reveal the user.
CREATE TABLE tk_deleted_users (
    name text NOT NULL PRIMARY KEY,
    deleted_at bigint NOT NULL
);
-- What each user has taken of their turns, for all nodes together. Used on PostgreSQL: a node that is alone
-- with its database counts by itself.
CREATE TABLE tk_allowances (
    user_id text NOT NULL PRIMARY KEY REFERENCES tk_users (id) ON DELETE CASCADE,
    -- In microseconds: until when the user's turns are used up, if they are spread evenly.
    paced_to bigint NOT NULL,
    -- The turns that were taken lately, each with its time (JSON).
    beginning text NOT NULL,
    -- Microseconds: the time up to which the user's uploads are used up if they come evenly.
    uploads_paced_to bigint NOT NULL DEFAULT 0
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
    deleted_at bigint,
    -- Whether nothing is left of a deleted agent's documents.
    is_cleared boolean NOT NULL DEFAULT FALSE
);
CREATE INDEX tk_agents_by_owner ON tk_agents (owner_id, id) WHERE deleted_at IS NULL;
CREATE INDEX tk_agents_public ON tk_agents (id) WHERE deleted_at IS NULL AND visibility = 'public';
CREATE UNIQUE INDEX tk_agents_default ON tk_agents (is_default) WHERE is_default;
-- For the cleanup, which reads only what it removes. tk_turns_logged and tk_documents_processing serve it, too.
CREATE INDEX tk_agents_uncleared ON tk_agents (deleted_at) WHERE deleted_at IS NOT NULL AND NOT is_cleared;
CREATE INDEX tk_agents_ownerless ON tk_agents (id) WHERE owner_id IS NULL;

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
    -- Sealed with the key for secrets, if there is one (storage/sessions.py).
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
    deleted_at bigint,
    -- The last message of the active path.
    tip_id uuid,
    session_hash text,
    -- Whether its user wants it at the top of the list.
    is_pinned boolean NOT NULL DEFAULT FALSE,
    -- The number of the last message when a compaction was last made or undone, or the path changed: the context
    -- windows of earlier replies no longer say where the next one starts.
    window_reset_seq bigint NOT NULL DEFAULT 0
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
CREATE UNIQUE INDEX tk_conversations_by_session ON tk_conversations (session_hash);
CREATE INDEX tk_conversations_pinned
    ON tk_conversations (user_id, updated_at DESC, id DESC, agent_id, status)
    WHERE is_pinned AND deleted_at IS NULL;
-- What a user has deleted, until it is purged.
CREATE INDEX tk_conversations_deleted_by_user
    ON tk_conversations (user_id, deleted_at DESC, id DESC, agent_id) WHERE deleted_at IS NOT NULL;

-- The keys of the requests that created conversations. Idempotency keys live as long as what they name.
CREATE TABLE tk_creation_keys (
    user_id text NOT NULL,
    idempotency_key text NOT NULL,
    request_hash text NOT NULL,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, idempotency_key)
);
CREATE INDEX tk_creation_keys_by_conversation ON tk_creation_keys (conversation_id);

CREATE TABLE tk_turns (
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
    ended_at bigint,
    -- The version of the log's format: a node leaves alone what a later version has written.
    log_version bigint NOT NULL DEFAULT 0,
    -- Above 0 where messages are queued behind the turn; counts those that come while it is active, so that its
    -- end has seen them all.
    queue_version bigint NOT NULL DEFAULT 0,
    -- Whether the turn's log may still be there.
    has_log boolean NOT NULL DEFAULT TRUE,
    -- The turn of a held message has that message's key; this is the key of the request that sent it.
    held_key text,
    held_request_hash text
);
CREATE INDEX tk_turns_by_conversation ON tk_turns (conversation_id, id);
CREATE INDEX tk_turns_by_user ON tk_turns (user_id, started_at);
CREATE UNIQUE INDEX tk_turns_active
    ON tk_turns (conversation_id) WHERE status IN ('RUNNING', 'WAITING') AND origin = 'live';
CREATE INDEX tk_turns_leases ON tk_turns (lease_until) WHERE status = 'RUNNING' AND origin = 'live';
CREATE UNIQUE INDEX tk_turns_idempotency
    ON tk_turns (conversation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX tk_turns_running_of_user ON tk_turns (user_id) WHERE status = 'RUNNING' AND origin = 'live';
-- For the few turns that wait, of a user or of all.
CREATE INDEX tk_turns_waiting ON tk_turns (user_id) WHERE status = 'WAITING' AND origin = 'live';
CREATE INDEX tk_turns_logged ON tk_turns (ended_at) WHERE has_log AND ended_at IS NOT NULL;
CREATE UNIQUE INDEX tk_turns_held_key ON tk_turns (conversation_id, held_key) WHERE held_key IS NOT NULL;

CREATE TABLE tk_messages (
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
    -- A reply's parent is its question, every other message's the one before it on its path.
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
CREATE UNIQUE INDEX tk_messages_by_seq ON tk_messages (conversation_id, seq);
-- The active path is one range of this index.
CREATE UNIQUE INDEX tk_messages_on_path ON tk_messages (conversation_id, seq) WHERE on_path;
CREATE INDEX tk_messages_by_turn ON tk_messages (turn_id);
-- By the parent first: an index that begins with the conversation looks as good for a page of messages as the
-- one on their numbers, and PostgreSQL sometimes took it and sorted.
CREATE INDEX tk_messages_by_parent ON tk_messages (parent_id, conversation_id);

-- Messages that wait for the turn before them, or join it where they steer it. One that left the queue without
-- a turn of its own stays as a row with its key and without its text; the waiting ones are found beside it.
CREATE TABLE tk_queued (
    message_id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    position bigint NOT NULL,
    content text NOT NULL,
    -- The files that it has (JSON).
    files text,
    steers_turn_id uuid,
    idempotency_key text,
    request_hash text,
    created_at bigint NOT NULL,
    -- When it left the queue.
    taken_at bigint,
    CHECK (trim(content, :blank) <> '' OR files IS NOT NULL)
);
CREATE UNIQUE INDEX tk_queued_by_conversation ON tk_queued (conversation_id, position);
CREATE INDEX tk_queued_waiting ON tk_queued (conversation_id, position) WHERE taken_at IS NULL;
CREATE INDEX tk_queued_by_key ON tk_queued (conversation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- The event log of a turn: one row holds a run of consecutive events.
CREATE TABLE tk_turn_chunks (
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL CHECK (last_seq >= first_seq),
    events text NOT NULL,
    PRIMARY KEY (turn_id, first_seq)
);

-- What turns ask their users, and what they answer (JSON).
CREATE TABLE tk_approvals (
    id uuid NOT NULL PRIMARY KEY,
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('tool', 'question', 'elicitation')),
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
    -- Whether the user allows every call of this tool in the conversation.
    granted boolean NOT NULL DEFAULT FALSE,
    answered_at bigint,
    -- The digest of the tool and its server as they were when the user was asked: permission for the conversation
    -- covers only that definition. Without it, as in rows of development versions, the user is asked again.
    tool_definition text
);
CREATE INDEX tk_approvals_by_turn ON tk_approvals (turn_id);
CREATE INDEX tk_approvals_by_conversation ON tk_approvals (conversation_id);
CREATE INDEX tk_approvals_open ON tk_approvals (expires_at) WHERE answered_at IS NULL;

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
CREATE INDEX tk_documents_processing ON tk_documents (updated_at) WHERE status = 'processing';
-- What is searched together: an agent's documents, or a user's messages. Its number stands before each of
-- its terms, so that a search reads nothing of anybody else.
CREATE TABLE tk_collections (
    number bigint NOT NULL PRIMARY KEY,
    agent_id uuid UNIQUE REFERENCES tk_agents (id) ON DELETE CASCADE,
    user_id text UNIQUE REFERENCES tk_users (id) ON DELETE CASCADE,
    chunk_count bigint NOT NULL DEFAULT 0,
    term_count bigint NOT NULL DEFAULT 0,
    -- How often chunks were removed: a copy of the others must then be read again.
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
-- Chunks that an embedder refused though it took others: after some attempts, only their words are searched.
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

-- Files of messages. They belong to their user: any of the user's conversations can use one, and bytes that a
-- user has twice are kept once.
CREATE TABLE tk_files (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    file_name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    sha256 text NOT NULL,
    width integer,
    height integer,
    -- How many pages a PDF has that anybody can open.
    pages integer,
    -- Its other forms (JSON).
    renditions text NOT NULL,
    created_at bigint NOT NULL,
    -- Since when it waits for its first message; NULL once a message has it.
    unsent_since bigint
);
CREATE INDEX tk_files_by_user ON tk_files (user_id);
CREATE INDEX tk_files_unsent ON tk_files (unsent_since) WHERE unsent_since IS NOT NULL;
CREATE INDEX tk_files_unsent_of_user ON tk_files (user_id) WHERE unsent_since IS NOT NULL;

-- The conversations that use a file. A file without one that does not wait for a message is deleted.
CREATE TABLE tk_file_uses (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    file_id uuid NOT NULL REFERENCES tk_files (id) ON DELETE CASCADE,
    PRIMARY KEY (conversation_id, file_id)
);
CREATE INDEX tk_file_uses_by_file ON tk_file_uses (file_id);

-- The bytes that a user's files have, each once. They lie in a folder under the id, or in the table of pieces.
-- An id is never used again, so that removing the bytes of a deleted row cannot hit those of a new one.
CREATE TABLE tk_contents (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    UNIQUE (user_id, sha256)
);
CREATE INDEX tk_contents_by_user ON tk_contents (user_id, size);
CREATE TABLE tk_content_pieces (
    content_id uuid NOT NULL REFERENCES tk_contents (id) ON DELETE CASCADE,
    number integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (content_id, number)
);

-- The forms of a file: the original, under the file's own id, and its renditions.
CREATE TABLE tk_file_forms (
    id uuid NOT NULL PRIMARY KEY,
    file_id uuid NOT NULL REFERENCES tk_files (id) ON DELETE CASCADE,
    content_id uuid NOT NULL REFERENCES tk_contents (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('value', 'artifact')),
    media_type text NOT NULL
);
CREATE INDEX tk_file_forms_by_file ON tk_file_forms (file_id);
CREATE INDEX tk_file_forms_by_content ON tk_file_forms (content_id);

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
CREATE INDEX tk_jobs_alike ON tk_jobs (kind, arguments);
-- Jobs that wait for another kind of node, or for later, are passed over.
CREATE INDEX tk_jobs_due ON tk_jobs (kind, run_at);

-- Who changed which agent. No foreign keys: the record outlives user and agent.
CREATE TABLE tk_audit (
    id uuid NOT NULL PRIMARY KEY,
    at bigint NOT NULL,
    actor_id text NOT NULL,
    action text NOT NULL,
    agent_id uuid,
    details text NOT NULL
);
