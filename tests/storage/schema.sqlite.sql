CREATE INDEX tk_agents_by_owner ON tk_agents (owner_id, id) WHERE deleted_at IS NULL;
CREATE INDEX tk_agents_bytes ON tk_agents (owner_id, text_bytes) WHERE NOT is_cleared;
CREATE UNIQUE INDEX tk_agents_code_key ON tk_agents (code_key) WHERE code_key IS NOT NULL;
CREATE UNIQUE INDEX tk_agents_default ON tk_agents (is_default) WHERE is_default;
CREATE INDEX tk_agents_deleting ON tk_agents (id) WHERE delete_after_days > 0;
CREATE INDEX tk_agents_ownerless ON tk_agents (id) WHERE owner_id IS NULL;
CREATE INDEX tk_agents_public ON tk_agents (id) WHERE deleted_at IS NULL AND visibility = 'public';
CREATE INDEX tk_agents_uncleared ON tk_agents (deleted_at) WHERE deleted_at IS NOT NULL AND NOT is_cleared;
CREATE INDEX tk_approvals_by_conversation ON tk_approvals (conversation_id);
CREATE INDEX tk_approvals_by_turn ON tk_approvals (turn_id);
CREATE INDEX tk_approvals_open ON tk_approvals (expires_at) WHERE answered_at IS NULL;
CREATE INDEX tk_briefings_by_agent ON tk_briefings (agent_id, text_bytes);
CREATE INDEX tk_briefings_by_message ON tk_briefings (message_id);
CREATE INDEX tk_briefings_unread ON tk_briefings (user_id, id DESC) WHERE read_at IS NULL;
CREATE INDEX tk_compactions_by_conversation ON tk_compactions (conversation_id, to_seq DESC);
CREATE INDEX tk_contents_by_user ON tk_contents (user_id, size);
CREATE INDEX tk_conversations_by_agent ON tk_conversations (user_id, agent_id, updated_at DESC, id DESC, status) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX tk_conversations_by_session ON tk_conversations (session_hash);
CREATE INDEX tk_conversations_by_user ON tk_conversations (user_id, updated_at DESC, id DESC, status) WHERE deleted_at IS NULL;
CREATE INDEX tk_conversations_bytes ON tk_conversations (user_id, text_bytes);
CREATE INDEX tk_conversations_deleted ON tk_conversations (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX tk_conversations_deleted_by_user ON tk_conversations (user_id, deleted_at DESC, id DESC, agent_id) WHERE deleted_at IS NOT NULL;
CREATE INDEX tk_conversations_deleting ON tk_conversations (deletes_at) WHERE deletes_at IS NOT NULL;
CREATE INDEX tk_conversations_held ON tk_conversations (deleted_at) WHERE held_by IS NOT NULL;
CREATE INDEX tk_conversations_idle ON tk_conversations (agent_id, updated_at) WHERE deletes_at IS NULL AND deleted_at IS NULL AND NOT is_pinned;
CREATE UNIQUE INDEX tk_conversations_main ON tk_conversations (user_id, agent_id) WHERE is_main AND deleted_at IS NULL;
CREATE INDEX tk_conversations_of_agent ON tk_conversations (agent_id);
CREATE INDEX tk_conversations_pinned ON tk_conversations (user_id, updated_at DESC, id DESC, agent_id, status) WHERE is_pinned AND deleted_at IS NULL;
CREATE INDEX tk_creation_keys_by_conversation ON tk_creation_keys (conversation_id);
CREATE INDEX tk_documents_processing ON tk_documents (updated_at) WHERE status = 'processing';
CREATE INDEX tk_entries_by_conversation ON tk_entries (conversation_id, message_id);
CREATE INDEX tk_feedback_agent ON tk_feedback (agent_id, updated_at, message_id);
CREATE INDEX tk_feedback_conversation ON tk_feedback (conversation_id);
CREATE INDEX tk_file_forms_by_content ON tk_file_forms (content_id);
CREATE INDEX tk_file_forms_by_file ON tk_file_forms (file_id);
CREATE INDEX tk_file_uses_by_file ON tk_file_uses (file_id);
CREATE INDEX tk_files_by_user ON tk_files (user_id);
CREATE INDEX tk_files_unsent ON tk_files (unsent_since) WHERE unsent_since IS NOT NULL;
CREATE INDEX tk_files_unsent_of_user ON tk_files (user_id) WHERE unsent_since IS NOT NULL;
CREATE INDEX tk_import_user ON tk_imports (user_id, started_at);
CREATE INDEX tk_invitations_of_user ON tk_invitations (user_id);
CREATE INDEX tk_jobs_alike ON tk_jobs (kind, arguments);
CREATE INDEX tk_jobs_due ON tk_jobs (kind, run_at);
CREATE INDEX tk_key_user ON tk_keys (user_id, created_at);
CREATE INDEX tk_keys_by_parent ON tk_keys (parent_id);
CREATE INDEX tk_ledger_agent ON tk_ledger (agent_id, day);
CREATE INDEX tk_ledger_day ON tk_ledger (day);
CREATE INDEX tk_ledger_user ON tk_ledger (user_id, day);
CREATE INDEX tk_memories_by_agent ON tk_memories (agent_id);
CREATE INDEX tk_memories_by_user ON tk_memories (user_id, agent_id, id);
CREATE INDEX tk_memories_bytes ON tk_memories (user_id, text_bytes);
CREATE INDEX tk_messages_by_parent ON tk_messages (parent_id, conversation_id, seq);
CREATE UNIQUE INDEX tk_messages_by_seq ON tk_messages (conversation_id, seq);
CREATE INDEX tk_messages_by_turn ON tk_messages (turn_id);
CREATE UNIQUE INDEX tk_messages_on_path ON tk_messages (conversation_id, seq) WHERE on_path;
CREATE INDEX tk_outside_conversation ON tk_outside_conversations (conversation_id);
CREATE INDEX tk_outside_message ON tk_outside_messages (message_id);
CREATE INDEX tk_payloads_by_content ON tk_payloads (conversation_id, sha256);
CREATE INDEX tk_programs_node ON tk_programs (node);
CREATE UNIQUE INDEX tk_queued_by_conversation ON tk_queued (conversation_id, position);
CREATE INDEX tk_queued_by_key ON tk_queued (conversation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX tk_queued_waiting ON tk_queued (conversation_id, position) WHERE taken_at IS NULL;
CREATE INDEX tk_receipt_texts_by_text ON tk_receipt_texts (sha256);
CREATE INDEX tk_receipts_by_conversation ON tk_receipts (conversation_id);
CREATE INDEX tk_request_began ON tk_requests (began_at);
CREATE INDEX tk_reservation_time ON tk_reservations (at);
CREATE INDEX tk_reservation_user ON tk_reservations (user_id);
CREATE INDEX tk_reservations_turn ON tk_reservations (turn_id) WHERE turn_id IS NOT NULL;
CREATE UNIQUE INDEX tk_running_import ON tk_imports (user_id) WHERE status = 'RUNNING';
CREATE INDEX tk_runs_complete ON tk_runs (conversation_id, run_id) WHERE has_start AND has_end;
CREATE INDEX tk_sessions_of_user ON tk_sessions (user_id);
CREATE INDEX tk_share_conversation ON tk_shares (conversation_id, created_at);
CREATE INDEX tk_sign_in_grants_due ON tk_sign_in_grants (provider, due_at);
CREATE INDEX tk_spending_period ON tk_spending (period);
CREATE INDEX tk_states_conversation ON tk_states (conversation_id);
CREATE INDEX tk_step_values_conversation ON tk_step_values (conversation_id);
CREATE INDEX tk_step_values_turn ON tk_step_values (turn_id);
CREATE INDEX tk_tool_calls_by_conversation ON tk_tool_calls (conversation_id, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE INDEX tk_tool_calls_by_id ON tk_tool_calls (conversation_id, tool_call_id, created_at DESC);
CREATE INDEX tk_tool_calls_by_message ON tk_tool_calls (message_id, position);
CREATE INDEX tk_tool_calls_by_tool ON tk_tool_calls (user_id, tool_name, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE INDEX tk_tool_calls_by_user ON tk_tool_calls (user_id, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE INDEX tk_tool_calls_roles ON tk_tool_calls (conversation_id, created_at DESC, position DESC) WHERE server = 'promptx' AND tool_name = 'promptx_action' AND status = 'ok';
CREATE UNIQUE INDEX tk_turns_active ON tk_turns (conversation_id) WHERE status IN ('RUNNING', 'WAITING') AND origin = 'live';
CREATE INDEX tk_turns_by_conversation ON tk_turns (conversation_id, id);
CREATE INDEX tk_turns_by_user ON tk_turns (user_id, started_at);
CREATE INDEX tk_turns_code_begun ON tk_turns (lease_until) WHERE status = 'RUNNING' AND origin = 'live' AND code_key IS NOT NULL AND code_version IS NOT NULL;
CREATE INDEX tk_turns_code_stopping ON tk_turns (lease_until) WHERE status = 'RUNNING' AND origin = 'live' AND code_key IS NOT NULL AND abort_requested;
CREATE INDEX tk_turns_code_unbegun ON tk_turns (lease_until) WHERE status = 'RUNNING' AND origin = 'live' AND code_key IS NOT NULL AND code_version IS NULL;
CREATE INDEX tk_turns_code_unnoted ON tk_turns (lease_until) WHERE status = 'RUNNING' AND origin = 'live' AND code_key IS NOT NULL AND NOT absence_noted;
CREATE UNIQUE INDEX tk_turns_held_key ON tk_turns (conversation_id, held_key) WHERE held_key IS NOT NULL;
CREATE UNIQUE INDEX tk_turns_idempotency ON tk_turns (conversation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX tk_turns_leases ON tk_turns (code_key, lease_until) WHERE status = 'RUNNING' AND origin = 'live';
CREATE INDEX tk_turns_logged ON tk_turns (ended_at) WHERE has_log AND ended_at IS NOT NULL;
CREATE INDEX tk_turns_running_of_user ON tk_turns (user_id) WHERE status = 'RUNNING' AND origin = 'live';
CREATE INDEX tk_turns_waiting ON tk_turns (user_id) WHERE status = 'WAITING' AND origin = 'live';
CREATE INDEX tk_turns_waiting_by_age ON tk_turns (id) WHERE status = 'WAITING' AND origin = 'live';
CREATE INDEX tk_users_deleted ON tk_users (id) WHERE deleted_at IS NOT NULL;
CREATE TABLE tk_agents (
    id uuid NOT NULL PRIMARY KEY,
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
    is_cleared boolean NOT NULL DEFAULT FALSE,
    prompt_bytes bigint NOT NULL DEFAULT 0,
    text_bytes bigint NOT NULL DEFAULT 0,
    code_key text,
    code_version bigint,
    code text,
    delete_after_days bigint NOT NULL DEFAULT 0,
    delete_since bigint,
    delete_shortened_at bigint,
    applied_version bigint,
    remote text
);
CREATE TABLE tk_allowances (
    user_id text NOT NULL PRIMARY KEY REFERENCES tk_users (id) ON DELETE CASCADE,
    paced_to bigint NOT NULL,
    beginning text NOT NULL,
    uploads_paced_to bigint NOT NULL DEFAULT 0,
    writes_paced_to bigint NOT NULL DEFAULT 0,
    replies text NOT NULL DEFAULT '{}'
);
CREATE TABLE tk_approvals (
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
CREATE TABLE tk_audit (
    id uuid NOT NULL PRIMARY KEY,
    at bigint NOT NULL,
    actor_id text NOT NULL,
    action text NOT NULL,
    agent_id uuid,
    details text NOT NULL
);
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
    text_bytes bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (user_id, id)
);
CREATE TABLE tk_call_receipts (
    turn_id uuid NOT NULL REFERENCES tk_receipts (turn_id) ON DELETE CASCADE,
    call bigint NOT NULL,
    receipt text NOT NULL,
    PRIMARY KEY (turn_id, call)
);
CREATE VIRTUAL TABLE tk_chunk_terms USING fts5 (terms, content = '', detail = none, tokenize = 'ascii');
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
CREATE TABLE tk_collections (
    number bigint NOT NULL PRIMARY KEY,
    agent_id uuid UNIQUE REFERENCES tk_agents (id) ON DELETE CASCADE,
    user_id text UNIQUE REFERENCES tk_users (id) ON DELETE CASCADE,
    chunk_count bigint NOT NULL DEFAULT 0,
    term_count bigint NOT NULL DEFAULT 0,
    removals bigint NOT NULL DEFAULT 0
);
CREATE TABLE tk_compaction_progress (
    conversation_id uuid NOT NULL PRIMARY KEY REFERENCES tk_conversations (id) ON DELETE CASCADE,
    from_seq bigint NOT NULL,
    text_count bigint NOT NULL,
    texts_sha256 text NOT NULL,
    summary text NOT NULL,
    failures bigint NOT NULL,
    not_before bigint NOT NULL
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
CREATE TABLE tk_content_pieces (
    content_id uuid NOT NULL REFERENCES tk_contents (id) ON DELETE CASCADE,
    number integer NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (content_id, number)
);
CREATE TABLE tk_contents (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    UNIQUE (user_id, sha256)
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
    deleted_at bigint,
    tip_id uuid,
    session_hash text,
    is_pinned boolean NOT NULL DEFAULT FALSE,
    window_reset_seq bigint NOT NULL DEFAULT 0,
    held_by text,
    text_bytes bigint NOT NULL DEFAULT 0,
    deletes_at bigint
);
CREATE TABLE tk_counters (
    name text NOT NULL PRIMARY KEY,
    value bigint NOT NULL
);
CREATE TABLE tk_creation_keys (
    user_id text NOT NULL,
    idempotency_key text NOT NULL,
    request_hash text NOT NULL,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, idempotency_key)
);
CREATE TABLE tk_deleted_users (
    name text NOT NULL PRIMARY KEY,
    deleted_at bigint NOT NULL
);
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
CREATE TABLE tk_entries (
    id bigint NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    message_id uuid UNIQUE REFERENCES tk_messages (id) ON DELETE CASCADE,
    terms text NOT NULL
);
CREATE VIRTUAL TABLE tk_entry_terms USING fts5 (terms, content = '', detail = none, tokenize = 'ascii');
CREATE TABLE tk_executions (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    run_id text NOT NULL,
    event_id text NOT NULL,
    type text NOT NULL,
    at bigint NOT NULL,
    event text NOT NULL,
    PRIMARY KEY (conversation_id, run_id, event_id)
);
CREATE TABLE tk_feedback (
    message_id uuid NOT NULL PRIMARY KEY REFERENCES tk_messages (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    agent_id uuid NOT NULL,
    rating text NOT NULL CHECK (rating IN ('up', 'down')),
    note text NOT NULL,
    share_text boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE tk_file_forms (
    id uuid NOT NULL PRIMARY KEY,
    file_id uuid NOT NULL REFERENCES tk_files (id) ON DELETE CASCADE,
    content_id uuid NOT NULL REFERENCES tk_contents (id) ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('value', 'artifact')),
    media_type text NOT NULL
);
CREATE TABLE tk_file_uses (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    file_id uuid NOT NULL REFERENCES tk_files (id) ON DELETE CASCADE,
    PRIMARY KEY (conversation_id, file_id)
);
CREATE TABLE tk_files (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    file_name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    sha256 text NOT NULL,
    width integer,
    height integer,
    pages integer,
    renditions text NOT NULL,
    created_at bigint NOT NULL,
    unsent_since bigint
);
CREATE TABLE tk_former_spending (
    name text NOT NULL,
    period text NOT NULL,
    currency text NOT NULL,
    spent bigint NOT NULL,
    PRIMARY KEY (name, period, currency)
);
CREATE TABLE tk_gateways (
    name text NOT NULL PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('anthropic', 'openai', 'responses', 'local')),
    url text,
    api_key text,
    models text NOT NULL,
    default_model text,
    version bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);
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
    noted_at bigint NOT NULL,
    ended_at bigint
);
CREATE TABLE tk_invitations (
    id uuid NOT NULL PRIMARY KEY,
    token_hash text NOT NULL UNIQUE,
    user_id text NOT NULL,
    role text NOT NULL CHECK (role IN ('user', 'admin')),
    invited_by text,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    accepted_at bigint
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
CREATE TABLE tk_keys (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    name text NOT NULL CHECK (trim(name, :blank) <> ''),
    prefix text NOT NULL,
    hash text NOT NULL UNIQUE,
    scopes text NOT NULL,
    agents text,
    is_admin boolean NOT NULL,
    may_run_programs boolean NOT NULL,
    budget_month bigint,
    created_at bigint NOT NULL,
    expires_at bigint,
    last_used_at bigint,
    parent_id uuid REFERENCES tk_keys (id) ON DELETE CASCADE,
    payer_id uuid,
    act_as text,
    may_delete boolean NOT NULL DEFAULT FALSE
);
CREATE TABLE tk_ledger (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    agent_id uuid,
    key_id uuid,
    purpose text NOT NULL CHECK (purpose IN ('turn', 'title', 'compaction', 'rerun', 'completion')),
    model text,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cache_read_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    estimated boolean NOT NULL,
    cost bigint,
    currency text,
    turns bigint NOT NULL,
    at bigint NOT NULL,
    day text NOT NULL,
    reported boolean NOT NULL DEFAULT FALSE,
    reported_cost bigint
);
CREATE TABLE tk_let_go_texts (
    id integer NOT NULL PRIMARY KEY,
    sha256 text NOT NULL
);
CREATE TABLE tk_memories (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    agent_id uuid NOT NULL REFERENCES tk_agents (id) ON DELETE CASCADE,
    content text NOT NULL CHECK (trim(content, :blank) <> ''),
    tags text,
    created_at bigint NOT NULL,
    text_bytes bigint NOT NULL DEFAULT 0
);
CREATE TABLE tk_messages (
    id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    turn_id uuid REFERENCES tk_turns (id) ON DELETE CASCADE,
    role text NOT NULL CHECK (role IN ('user', 'assistant', 'system')),
    content_type text NOT NULL CHECK (content_type IN ('text', 'briefing_card')),
    content text NOT NULL,
    status text NOT NULL CHECK (status IN ('PENDING', 'STREAMING', 'COMPLETED', 'FAILED', 'CANCELLED')),
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
    joins boolean NOT NULL DEFAULT FALSE,
    CHECK ((role = 'assistant' AND status <> 'COMPLETED') OR trim(content, :blank) <> '' OR (role = 'user' AND file_count > 0))
);
CREATE TABLE tk_meta (
    name text NOT NULL PRIMARY KEY,
    value text NOT NULL
);
CREATE TABLE tk_migrations (
    version bigint NOT NULL PRIMARY KEY,
    name text NOT NULL,
    applied_at bigint NOT NULL
);
CREATE TABLE tk_outside_conversations (
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    outside_id text NOT NULL,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, outside_id)
);
CREATE TABLE tk_outside_messages (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    outside_id text NOT NULL,
    message_id uuid NOT NULL REFERENCES tk_messages (id) ON DELETE CASCADE,
    PRIMARY KEY (conversation_id, outside_id)
);
CREATE TABLE tk_path_moves (
    conversation_id uuid NOT NULL PRIMARY KEY REFERENCES tk_conversations (id) ON DELETE CASCADE,
    id uuid NOT NULL,
    after_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    state text NOT NULL CHECK (state IN ('prepared', 'done', 'left')),
    touched_at bigint NOT NULL
);
CREATE TABLE tk_payload_contents (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    sha256 text NOT NULL,
    content bytea NOT NULL,
    written_at bigint NOT NULL,
    PRIMARY KEY (conversation_id, sha256)
);
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
CREATE TABLE tk_programs (
    key text NOT NULL,
    version bigint NOT NULL,
    node text NOT NULL,
    worker text NOT NULL,
    seen_at bigint NOT NULL,
    is_open boolean NOT NULL DEFAULT TRUE,
    name text NOT NULL DEFAULT '',
    sdk text NOT NULL DEFAULT '',
    capacity bigint,
    running bigint NOT NULL DEFAULT 0,
    blocked_ms bigint NOT NULL DEFAULT 0,
    connected_at bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (key, version, node, worker)
);
CREATE TABLE tk_prompt_texts (
    sha256 text NOT NULL PRIMARY KEY,
    text text NOT NULL
);
CREATE TABLE tk_queued (
    message_id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    position bigint NOT NULL,
    content text NOT NULL,
    files text,
    steers_turn_id uuid,
    idempotency_key text,
    request_hash text,
    created_at bigint NOT NULL,
    taken_at bigint,
    key_id uuid,
    model text,
    begun_with text,
    CHECK (trim(content, :blank) <> '' OR files IS NOT NULL)
);
CREATE TABLE tk_receipt_texts (
    turn_id uuid NOT NULL REFERENCES tk_receipts (turn_id) ON DELETE CASCADE,
    sha256 text NOT NULL REFERENCES tk_prompt_texts (sha256),
    PRIMARY KEY (turn_id, sha256)
);
CREATE TABLE tk_receipts (
    turn_id uuid NOT NULL PRIMARY KEY REFERENCES tk_turns (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    receipt text NOT NULL
);
CREATE TABLE tk_refused_chunks (
    chunk_id bigint NOT NULL PRIMARY KEY REFERENCES tk_chunks (id) ON DELETE CASCADE,
    embedder text NOT NULL,
    tries bigint NOT NULL
);
CREATE TABLE tk_requests (
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    name text NOT NULL,
    request_hash text NOT NULL,
    response text,
    began_at bigint NOT NULL,
    PRIMARY KEY (user_id, name)
);
CREATE TABLE tk_reservations (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    agent_id uuid,
    key_id uuid,
    purpose text NOT NULL CHECK (purpose IN ('turn', 'title', 'compaction', 'rerun', 'completion')),
    model text,
    amount bigint NOT NULL,
    currency text NOT NULL,
    held_by text NOT NULL,
    at bigint NOT NULL,
    day text NOT NULL,
    fence bigint NOT NULL DEFAULT 0,
    turn_id uuid
);
CREATE TABLE tk_runs (
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    run_id text NOT NULL,
    parts bigint NOT NULL,
    bytes bigint NOT NULL,
    has_start boolean NOT NULL,
    has_end boolean NOT NULL,
    PRIMARY KEY (conversation_id, run_id)
);
CREATE TABLE tk_searchable (
    conversation_id uuid NOT NULL PRIMARY KEY REFERENCES tk_conversations (id) ON DELETE CASCADE,
    to_seq bigint NOT NULL,
    title text
);
CREATE TABLE tk_seen_tools (
    agent_id uuid NOT NULL REFERENCES tk_agents (id) ON DELETE CASCADE,
    server text NOT NULL,
    accepted text NOT NULL,
    seen text NOT NULL,
    PRIMARY KEY (agent_id, server)
);
CREATE TABLE tk_sessions (
    id uuid NOT NULL PRIMARY KEY,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    token_hash text NOT NULL UNIQUE,
    way text NOT NULL,
    device text NOT NULL,
    created_at bigint NOT NULL,
    last_used_at bigint NOT NULL,
    ends_at bigint NOT NULL
);
CREATE TABLE tk_shares (
    id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    message_id uuid NOT NULL,
    hash text NOT NULL UNIQUE,
    title text NOT NULL,
    runs text NOT NULL,
    files text NOT NULL,
    with_tools boolean NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    preview text
);
CREATE TABLE tk_sign_in_attempts (
    state_hash text NOT NULL PRIMARY KEY,
    provider text NOT NULL,
    browser_hash text NOT NULL,
    verifier text NOT NULL,
    nonce text NOT NULL,
    next text NOT NULL,
    expires_at bigint NOT NULL
);
CREATE TABLE tk_sign_in_grants (
    user_id text NOT NULL PRIMARY KEY REFERENCES tk_users (id) ON DELETE CASCADE,
    provider text NOT NULL,
    refresh_token text NOT NULL,
    checked_at bigint NOT NULL,
    due_at bigint NOT NULL
);
CREATE TABLE tk_spending (
    scope text NOT NULL CHECK (scope IN ('user', 'agent', 'key')),
    scope_id text NOT NULL,
    period text NOT NULL,
    currency text NOT NULL,
    spent bigint NOT NULL,
    reserved bigint NOT NULL,
    PRIMARY KEY (scope, scope_id, period, currency)
);
CREATE TABLE tk_states (
    message_id uuid NOT NULL PRIMARY KEY REFERENCES tk_messages (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    payload bytea NOT NULL
);
CREATE TABLE tk_step_values (
    id uuid NOT NULL PRIMARY KEY,
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    content bytea NOT NULL
);
CREATE TABLE tk_terms (
    collection bigint NOT NULL REFERENCES tk_collections (number) ON DELETE CASCADE,
    term text NOT NULL,
    chunks bigint NOT NULL,
    PRIMARY KEY (collection, term)
);
CREATE TABLE tk_tool_calls (
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    tool_call_id text NOT NULL,
    message_id uuid NOT NULL REFERENCES tk_messages (id) ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    position bigint NOT NULL,
    tool_name text NOT NULL,
    model_name text,
    server text NOT NULL,
    arguments text NOT NULL,
    status text NOT NULL CHECK (status IN ('running', 'ok', 'error', 'timeout', 'denied', 'interrupted', 'unknown')),
    result text,
    error text,
    chart_data text,
    refs text,
    artifact_ids text,
    approval text,
    duration_ms bigint,
    created_at bigint NOT NULL,
    PRIMARY KEY (turn_id, tool_call_id)
);
CREATE TABLE tk_turn_chunks (
    turn_id uuid NOT NULL REFERENCES tk_turns (id) ON DELETE CASCADE,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL CHECK (last_seq >= first_seq),
    events text NOT NULL,
    PRIMARY KEY (turn_id, first_seq)
);
CREATE TABLE tk_turns (
    id uuid NOT NULL PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES tk_conversations (id) ON DELETE CASCADE,
    user_id text REFERENCES tk_users (id) ON DELETE CASCADE,
    user_message_id uuid NOT NULL,
    assistant_message_id uuid NOT NULL,
    origin text NOT NULL CHECK (origin IN ('live', 'recorded')),
    status text NOT NULL CHECK (status IN ('RUNNING', 'WAITING', 'COMPLETED', 'FAILED', 'CANCELLED')),
    model text,
    usage text,
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
    attempts bigint NOT NULL DEFAULT 0,
    abort_requested boolean NOT NULL DEFAULT FALSE,
    last_event_seq bigint NOT NULL DEFAULT 0,
    started_at bigint NOT NULL,
    ended_at bigint,
    log_version bigint NOT NULL DEFAULT 0,
    queue_version bigint NOT NULL DEFAULT 0,
    has_log boolean NOT NULL DEFAULT TRUE,
    held_key text,
    held_request_hash text,
    key_id uuid,
    begun_with text,
    followed_at bigint,
    code_key text,
    code_version bigint,
    step text,
    step_since bigint,
    absence_noted boolean NOT NULL DEFAULT FALSE
);
CREATE TABLE tk_users (
    id text NOT NULL PRIMARY KEY,
    created_at bigint NOT NULL,
    instructions text NOT NULL DEFAULT '',
    deleted_at bigint,
    name text,
    role text CHECK (role IN ('user', 'admin')),
    groups text NOT NULL DEFAULT '[]',
    suspended_at bigint,
    suspended_by text CHECK (suspended_by IN ('admin', 'provider')),
    invited boolean NOT NULL DEFAULT FALSE
);
CREATE TABLE tk_vectors (
    chunk_id bigint NOT NULL PRIMARY KEY REFERENCES tk_chunks (id) ON DELETE CASCADE,
    seq bigint NOT NULL UNIQUE,
    embedder text NOT NULL,
    vector bytea NOT NULL
);
CREATE TRIGGER tk_agents_counted AFTER INSERT ON tk_agents BEGIN UPDATE tk_agents SET text_bytes = 200 + prompt_bytes + length(CAST(description AS blob)) + length(CAST(system_prompt AS blob)) + length(CAST(settings AS blob)) WHERE id = new.id; END;
CREATE TRIGGER tk_agents_in_code_hidden BEFORE UPDATE OF deleted_at ON tk_agents WHEN old.code_key IS NOT NULL AND old.deleted_at IS NULL AND new.deleted_at IS NOT NULL AND new.code_version IS NOT NULL BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER tk_agents_in_code_stay BEFORE DELETE ON tk_agents WHEN old.code_key IS NOT NULL BEGIN SELECT RAISE(IGNORE); END;
CREATE TRIGGER tk_agents_recounted AFTER UPDATE OF prompt_bytes, description, system_prompt, settings ON tk_agents BEGIN UPDATE tk_agents SET text_bytes = 200 + prompt_bytes + length(CAST(description AS blob)) + length(CAST(system_prompt AS blob)) + length(CAST(settings AS blob)) WHERE id = new.id; END;
CREATE TRIGGER tk_briefings_counted AFTER INSERT ON tk_briefings BEGIN UPDATE tk_briefings SET text_bytes = 200 + length(CAST(title AS blob)) + length(CAST(summary AS blob)) + COALESCE(length(CAST(data AS blob)), 0) + COALESCE(length(CAST(actions AS blob)), 0) WHERE user_id = new.user_id AND id = new.id; END;
CREATE TRIGGER tk_chunks_come AFTER INSERT ON tk_chunks BEGIN INSERT INTO tk_chunk_terms (rowid, terms) VALUES (new.id, new.terms); END;
CREATE TRIGGER tk_chunks_go AFTER DELETE ON tk_chunks BEGIN INSERT INTO tk_chunk_terms (tk_chunk_terms, rowid, terms) VALUES ('delete', old.id, old.terms); END;
CREATE TRIGGER tk_entries_come AFTER INSERT ON tk_entries BEGIN INSERT INTO tk_entry_terms (rowid, terms) VALUES (new.id, new.terms); END;
CREATE TRIGGER tk_entries_go AFTER DELETE ON tk_entries BEGIN INSERT INTO tk_entry_terms (tk_entry_terms, rowid, terms) VALUES ('delete', old.id, old.terms); END;
CREATE TRIGGER tk_memories_counted AFTER INSERT ON tk_memories BEGIN UPDATE tk_memories SET text_bytes = 200 + length(CAST(content AS blob)) + COALESCE(length(CAST(tags AS blob)), 0) WHERE id = new.id; END;
CREATE TRIGGER tk_memories_recounted AFTER UPDATE OF content, tags ON tk_memories BEGIN UPDATE tk_memories SET text_bytes = 200 + length(CAST(content AS blob)) + COALESCE(length(CAST(tags AS blob)), 0) WHERE id = new.id; END;
CREATE TRIGGER tk_receipt_texts_go AFTER DELETE ON tk_receipt_texts BEGIN INSERT INTO tk_let_go_texts (sha256) VALUES (old.sha256); END;
CREATE TRIGGER tk_turns_of_code BEFORE INSERT ON tk_turns WHEN new.log_version < 4 AND new.origin = 'live' AND new.status = 'RUNNING' AND EXISTS (SELECT 1 FROM tk_conversations AS conversation JOIN tk_agents AS agent ON agent.id = conversation.agent_id WHERE conversation.id = new.conversation_id AND agent.code_key IS NOT NULL) BEGIN SELECT RAISE(ABORT, 'This agent is a program, which only a newer version of Threadkeep can run'); END;
