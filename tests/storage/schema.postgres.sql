CREATE TABLE tk_agents (
    applied_version bigint,
    code text,
    code_key text,
    code_version bigint,
    created_at bigint NOT NULL,
    delete_after_days bigint NOT NULL DEFAULT 0,
    delete_shortened_at bigint,
    delete_since bigint,
    deleted_at bigint,
    description text NOT NULL,
    id uuid NOT NULL,
    is_cleared boolean NOT NULL DEFAULT false,
    is_default boolean NOT NULL,
    model text,
    name text NOT NULL,
    owner_id text,
    primary_role_id text NOT NULL,
    prompt_bytes bigint NOT NULL DEFAULT 0,
    remote text,
    settings text NOT NULL,
    system_prompt text NOT NULL,
    text_bytes bigint DEFAULT ((((200 + prompt_bytes) + octet_length(description)) + octet_length(system_prompt)) + octet_length(settings)),
    updated_at bigint NOT NULL,
    version bigint NOT NULL,
    visibility text NOT NULL,
    CONSTRAINT tk_agents_name_check CHECK ((TRIM(BOTH :blank::text FROM name) <> ''::text)),
    CONSTRAINT tk_agents_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES tk_users(id) ON DELETE SET NULL,
    CONSTRAINT tk_agents_pkey PRIMARY KEY (id),
    CONSTRAINT tk_agents_visibility_check CHECK ((visibility = ANY (ARRAY['private'::text, 'public'::text])))
);
CREATE UNLOGGED TABLE tk_allowances (
    beginning text NOT NULL,
    paced_to bigint NOT NULL,
    replies text NOT NULL DEFAULT '{}'::text,
    uploads_paced_to bigint NOT NULL DEFAULT 0,
    user_id text NOT NULL,
    writes_paced_to bigint NOT NULL DEFAULT 0,
    CONSTRAINT tk_allowances_pkey PRIMARY KEY (user_id),
    CONSTRAINT tk_allowances_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_approvals (
    answer text,
    answered_at bigint,
    arguments text,
    conversation_id uuid NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    granted boolean NOT NULL DEFAULT false,
    id uuid NOT NULL,
    kind text NOT NULL,
    message text NOT NULL,
    schema text,
    server text,
    tool_call_id text,
    tool_definition text,
    tool_name text,
    turn_id uuid NOT NULL,
    url text,
    CONSTRAINT tk_approvals_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_approvals_kind_check CHECK ((kind = ANY (ARRAY['tool'::text, 'question'::text, 'elicitation'::text, 'client_tool'::text]))),
    CONSTRAINT tk_approvals_pkey PRIMARY KEY (id),
    CONSTRAINT tk_approvals_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES tk_turns(id) ON DELETE CASCADE
);
CREATE TABLE tk_audit (
    action text NOT NULL,
    actor_id text NOT NULL,
    agent_id uuid,
    at bigint NOT NULL,
    details text NOT NULL,
    id uuid NOT NULL,
    CONSTRAINT tk_audit_pkey PRIMARY KEY (id)
);
CREATE TABLE tk_briefings (
    actions text,
    agent_id uuid NOT NULL,
    created_at bigint NOT NULL,
    data text,
    id uuid NOT NULL,
    message_id uuid,
    priority text NOT NULL,
    read_at bigint,
    summary text NOT NULL,
    text_bytes bigint DEFAULT ((((200 + octet_length(title)) + octet_length(summary)) + COALESCE(octet_length(data), 0)) + COALESCE(octet_length(actions), 0)),
    title text NOT NULL,
    user_id text NOT NULL,
    CONSTRAINT tk_briefings_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES tk_agents(id) ON DELETE CASCADE,
    CONSTRAINT tk_briefings_message_id_fkey FOREIGN KEY (message_id) REFERENCES tk_messages(id) ON DELETE SET NULL,
    CONSTRAINT tk_briefings_pkey PRIMARY KEY (user_id, id),
    CONSTRAINT tk_briefings_priority_check CHECK ((priority = ANY (ARRAY['P0'::text, 'P1'::text, 'P2'::text, 'P3'::text]))),
    CONSTRAINT tk_briefings_summary_check CHECK ((TRIM(BOTH :blank::text FROM summary) <> ''::text)),
    CONSTRAINT tk_briefings_title_check CHECK ((TRIM(BOTH :blank::text FROM title) <> ''::text)),
    CONSTRAINT tk_briefings_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_call_receipts (
    call bigint NOT NULL,
    receipt text NOT NULL,
    turn_id uuid NOT NULL,
    CONSTRAINT tk_call_receipts_pkey PRIMARY KEY (turn_id, call),
    CONSTRAINT tk_call_receipts_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES tk_receipts(turn_id) ON DELETE CASCADE
);
CREATE TABLE tk_chunks (
    document_id uuid NOT NULL,
    heading text,
    id bigint NOT NULL,
    page bigint,
    position bigint NOT NULL,
    term_count bigint NOT NULL,
    terms text NOT NULL,
    text text NOT NULL,
    CONSTRAINT tk_chunks_document_id_fkey FOREIGN KEY (document_id) REFERENCES tk_documents(id) ON DELETE CASCADE,
    CONSTRAINT tk_chunks_document_id_position_key UNIQUE (document_id, "position"),
    CONSTRAINT tk_chunks_pkey PRIMARY KEY (id)
) WITH (toast_tuple_target=128);
CREATE TABLE tk_collections (
    agent_id uuid,
    chunk_count bigint NOT NULL DEFAULT 0,
    number bigint NOT NULL,
    removals bigint NOT NULL DEFAULT 0,
    term_count bigint NOT NULL DEFAULT 0,
    user_id text,
    CONSTRAINT tk_collections_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES tk_agents(id) ON DELETE CASCADE,
    CONSTRAINT tk_collections_agent_id_key UNIQUE (agent_id),
    CONSTRAINT tk_collections_pkey PRIMARY KEY (number),
    CONSTRAINT tk_collections_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE,
    CONSTRAINT tk_collections_user_id_key UNIQUE (user_id)
);
CREATE TABLE tk_compaction_progress (
    conversation_id uuid NOT NULL,
    failures bigint NOT NULL,
    from_seq bigint NOT NULL,
    not_before bigint NOT NULL,
    summary text NOT NULL,
    text_count bigint NOT NULL,
    texts_sha256 text NOT NULL,
    CONSTRAINT tk_compaction_progress_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_compaction_progress_pkey PRIMARY KEY (conversation_id)
);
CREATE TABLE tk_compactions (
    archived_count bigint NOT NULL,
    conversation_id uuid NOT NULL,
    created_at bigint NOT NULL,
    from_seq bigint NOT NULL,
    id uuid NOT NULL,
    summary text NOT NULL,
    to_seq bigint NOT NULL,
    tokens_after bigint NOT NULL,
    tokens_before bigint NOT NULL,
    CONSTRAINT tk_compactions_check CHECK ((to_seq >= from_seq)),
    CONSTRAINT tk_compactions_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_compactions_pkey PRIMARY KEY (id),
    CONSTRAINT tk_compactions_summary_check CHECK ((TRIM(BOTH :blank::text FROM summary) <> ''::text))
);
CREATE TABLE tk_content_pieces (
    content bytea NOT NULL,
    content_id uuid NOT NULL,
    number integer NOT NULL,
    CONSTRAINT tk_content_pieces_content_id_fkey FOREIGN KEY (content_id) REFERENCES tk_contents(id) ON DELETE CASCADE,
    CONSTRAINT tk_content_pieces_pkey PRIMARY KEY (content_id, number)
);
CREATE TABLE tk_contents (
    id uuid NOT NULL,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    user_id text NOT NULL,
    CONSTRAINT tk_contents_pkey PRIMARY KEY (id),
    CONSTRAINT tk_contents_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE,
    CONSTRAINT tk_contents_user_id_sha256_key UNIQUE (user_id, sha256)
);
CREATE TABLE tk_conversations (
    active_turn_id uuid,
    agent_id uuid NOT NULL,
    archived_to_seq bigint NOT NULL,
    created_at bigint NOT NULL,
    deleted_at bigint,
    deletes_at bigint,
    held_by text,
    id uuid NOT NULL,
    is_main boolean NOT NULL,
    is_pinned boolean NOT NULL DEFAULT false,
    last_message_at bigint,
    last_seq bigint NOT NULL,
    message_count bigint NOT NULL,
    metadata text NOT NULL,
    session_hash text,
    session_id text NOT NULL,
    status text NOT NULL,
    text_bytes bigint NOT NULL DEFAULT 0,
    tip_id uuid,
    title text,
    title_source text,
    updated_at bigint NOT NULL,
    user_id text NOT NULL,
    window_reset_seq bigint NOT NULL DEFAULT 0,
    CONSTRAINT tk_conversations_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES tk_agents(id) ON DELETE CASCADE,
    CONSTRAINT tk_conversations_pkey PRIMARY KEY (id),
    CONSTRAINT tk_conversations_session_id_key UNIQUE (session_id),
    CONSTRAINT tk_conversations_status_check CHECK ((status = ANY (ARRAY['active'::text, 'archived'::text]))),
    CONSTRAINT tk_conversations_title_check CHECK ((TRIM(BOTH :blank::text FROM title) <> ''::text)),
    CONSTRAINT tk_conversations_title_source_check CHECK ((title_source = ANY (ARRAY['derived'::text, 'model'::text, 'user'::text]))),
    CONSTRAINT tk_conversations_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_counters (
    name text NOT NULL,
    value bigint NOT NULL,
    CONSTRAINT tk_counters_pkey PRIMARY KEY (name)
);
CREATE TABLE tk_creation_keys (
    conversation_id uuid NOT NULL,
    idempotency_key text NOT NULL,
    request_hash text NOT NULL,
    user_id text NOT NULL,
    CONSTRAINT tk_creation_keys_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_creation_keys_pkey PRIMARY KEY (user_id, idempotency_key)
);
CREATE TABLE tk_deleted_users (
    deleted_at bigint NOT NULL,
    name text NOT NULL,
    CONSTRAINT tk_deleted_users_pkey PRIMARY KEY (name)
);
CREATE TABLE tk_documents (
    agent_id uuid NOT NULL,
    chunk_count bigint NOT NULL,
    created_at bigint NOT NULL,
    error text,
    file_name text NOT NULL,
    id uuid NOT NULL,
    media_type text NOT NULL,
    progress double precision NOT NULL,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    status text NOT NULL,
    updated_at bigint NOT NULL,
    CONSTRAINT tk_documents_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES tk_agents(id) ON DELETE CASCADE,
    CONSTRAINT tk_documents_agent_id_sha256_key UNIQUE (agent_id, sha256),
    CONSTRAINT tk_documents_pkey PRIMARY KEY (id),
    CONSTRAINT tk_documents_status_check CHECK ((status = ANY (ARRAY['processing'::text, 'ready'::text, 'failed'::text])))
);
CREATE TABLE tk_entries (
    conversation_id uuid NOT NULL,
    id bigint NOT NULL,
    message_id uuid,
    terms text NOT NULL,
    CONSTRAINT tk_entries_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_entries_message_id_fkey FOREIGN KEY (message_id) REFERENCES tk_messages(id) ON DELETE CASCADE,
    CONSTRAINT tk_entries_message_id_key UNIQUE (message_id),
    CONSTRAINT tk_entries_pkey PRIMARY KEY (id)
);
CREATE TABLE tk_executions (
    at bigint NOT NULL,
    conversation_id uuid NOT NULL,
    event text NOT NULL,
    event_id text NOT NULL,
    run_id text NOT NULL,
    type text NOT NULL,
    CONSTRAINT tk_executions_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_executions_pkey PRIMARY KEY (conversation_id, run_id, event_id)
);
CREATE TABLE tk_feedback (
    agent_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    created_at bigint NOT NULL,
    message_id uuid NOT NULL,
    note text NOT NULL,
    rating text NOT NULL,
    share_text boolean NOT NULL,
    updated_at bigint NOT NULL,
    CONSTRAINT tk_feedback_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_feedback_message_id_fkey FOREIGN KEY (message_id) REFERENCES tk_messages(id) ON DELETE CASCADE,
    CONSTRAINT tk_feedback_pkey PRIMARY KEY (message_id),
    CONSTRAINT tk_feedback_rating_check CHECK ((rating = ANY (ARRAY['up'::text, 'down'::text])))
);
CREATE TABLE tk_file_forms (
    content_id uuid NOT NULL,
    file_id uuid NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    media_type text NOT NULL,
    CONSTRAINT tk_file_forms_content_id_fkey FOREIGN KEY (content_id) REFERENCES tk_contents(id) ON DELETE CASCADE,
    CONSTRAINT tk_file_forms_file_id_fkey FOREIGN KEY (file_id) REFERENCES tk_files(id) ON DELETE CASCADE,
    CONSTRAINT tk_file_forms_kind_check CHECK ((kind = ANY (ARRAY['value'::text, 'artifact'::text]))),
    CONSTRAINT tk_file_forms_pkey PRIMARY KEY (id)
);
CREATE TABLE tk_file_uses (
    conversation_id uuid NOT NULL,
    file_id uuid NOT NULL,
    CONSTRAINT tk_file_uses_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_file_uses_file_id_fkey FOREIGN KEY (file_id) REFERENCES tk_files(id) ON DELETE CASCADE,
    CONSTRAINT tk_file_uses_pkey PRIMARY KEY (conversation_id, file_id)
);
CREATE TABLE tk_files (
    created_at bigint NOT NULL,
    file_name text NOT NULL,
    height integer,
    id uuid NOT NULL,
    media_type text NOT NULL,
    pages integer,
    renditions text NOT NULL,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    unsent_since bigint,
    user_id text NOT NULL,
    width integer,
    CONSTRAINT tk_files_pkey PRIMARY KEY (id),
    CONSTRAINT tk_files_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_former_spending (
    currency text NOT NULL,
    name text NOT NULL,
    period text NOT NULL,
    spent bigint NOT NULL,
    CONSTRAINT tk_former_spending_pkey PRIMARY KEY (name, period, currency)
);
CREATE TABLE tk_gateways (
    api_key text,
    created_at bigint NOT NULL,
    default_model text,
    kind text NOT NULL,
    models text NOT NULL,
    name text NOT NULL,
    updated_at bigint NOT NULL,
    url text,
    version bigint NOT NULL,
    CONSTRAINT tk_gateways_kind_check CHECK ((kind = ANY (ARRAY['anthropic'::text, 'openai'::text, 'responses'::text, 'local'::text]))),
    CONSTRAINT tk_gateways_pkey PRIMARY KEY (name)
);
CREATE TABLE tk_imports (
    agent_id uuid NOT NULL,
    ended_at bigint,
    failure text,
    file_name text NOT NULL,
    id uuid NOT NULL,
    noted_at bigint NOT NULL,
    progress text NOT NULL,
    size bigint NOT NULL,
    started_at bigint NOT NULL,
    status text NOT NULL,
    stops boolean NOT NULL DEFAULT false,
    user_id text NOT NULL,
    CONSTRAINT tk_imports_pkey PRIMARY KEY (id),
    CONSTRAINT tk_imports_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_invitations (
    accepted_at bigint,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    id uuid NOT NULL,
    invited_by text,
    role text NOT NULL,
    token_hash text NOT NULL,
    user_id text NOT NULL,
    CONSTRAINT tk_invitations_pkey PRIMARY KEY (id),
    CONSTRAINT tk_invitations_role_check CHECK ((role = ANY (ARRAY['user'::text, 'admin'::text]))),
    CONSTRAINT tk_invitations_token_hash_key UNIQUE (token_hash)
);
CREATE TABLE tk_jobs (
    arguments text NOT NULL,
    attempts bigint NOT NULL,
    created_at bigint NOT NULL,
    error text,
    holder text,
    id uuid NOT NULL,
    kind text NOT NULL,
    lease_until bigint,
    run_at bigint NOT NULL,
    CONSTRAINT tk_jobs_pkey PRIMARY KEY (id)
);
CREATE TABLE tk_keys (
    act_as text,
    agents text,
    budget_month bigint,
    created_at bigint NOT NULL,
    expires_at bigint,
    hash text NOT NULL,
    id uuid NOT NULL,
    is_admin boolean NOT NULL,
    last_used_at bigint,
    may_delete boolean NOT NULL DEFAULT false,
    may_run_programs boolean NOT NULL,
    name text NOT NULL,
    parent_id uuid,
    payer_id uuid,
    prefix text NOT NULL,
    scopes text NOT NULL,
    user_id text NOT NULL,
    CONSTRAINT tk_keys_hash_key UNIQUE (hash),
    CONSTRAINT tk_keys_name_check CHECK ((TRIM(BOTH :blank::text FROM name) <> ''::text)),
    CONSTRAINT tk_keys_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES tk_keys(id) ON DELETE CASCADE,
    CONSTRAINT tk_keys_pkey PRIMARY KEY (id),
    CONSTRAINT tk_keys_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_ledger (
    agent_id uuid,
    at bigint NOT NULL,
    cache_read_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    cost bigint,
    currency text,
    day text NOT NULL,
    estimated boolean NOT NULL,
    id uuid NOT NULL,
    input_tokens bigint NOT NULL,
    key_id uuid,
    model text,
    output_tokens bigint NOT NULL,
    purpose text NOT NULL,
    reported boolean NOT NULL DEFAULT false,
    reported_cost bigint,
    turns bigint NOT NULL,
    user_id text NOT NULL,
    CONSTRAINT tk_ledger_pkey PRIMARY KEY (id),
    CONSTRAINT tk_ledger_purpose_check CHECK ((purpose = ANY (ARRAY['turn'::text, 'title'::text, 'compaction'::text, 'rerun'::text, 'completion'::text]))),
    CONSTRAINT tk_ledger_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_let_go_texts (
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    sha256 text NOT NULL,
    CONSTRAINT tk_let_go_texts_pkey PRIMARY KEY (id)
);
CREATE SEQUENCE tk_let_go_texts_id_seq;
CREATE TABLE tk_memories (
    agent_id uuid NOT NULL,
    content text NOT NULL,
    created_at bigint NOT NULL,
    id uuid NOT NULL,
    tags text,
    text_bytes bigint DEFAULT ((200 + octet_length(content)) + COALESCE(octet_length(tags), 0)),
    user_id text NOT NULL,
    CONSTRAINT tk_memories_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES tk_agents(id) ON DELETE CASCADE,
    CONSTRAINT tk_memories_content_check CHECK ((TRIM(BOTH :blank::text FROM content) <> ''::text)),
    CONSTRAINT tk_memories_pkey PRIMARY KEY (id),
    CONSTRAINT tk_memories_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_messages (
    completed_at bigint,
    content text NOT NULL,
    content_type text NOT NULL,
    conversation_id uuid NOT NULL,
    created_at bigint NOT NULL,
    error text,
    file_count bigint NOT NULL DEFAULT 0,
    id uuid NOT NULL,
    joins boolean NOT NULL DEFAULT false,
    model text,
    on_path boolean NOT NULL,
    parent_id uuid,
    parts text,
    role text NOT NULL,
    seq bigint NOT NULL,
    status text NOT NULL,
    token_count bigint,
    tool_call_count bigint NOT NULL DEFAULT 0,
    turn_id uuid,
    usage text,
    CONSTRAINT tk_messages_check CHECK ((((role = 'assistant'::text) AND (status <> 'COMPLETED'::text)) OR (TRIM(BOTH :blank::text FROM content) <> ''::text) OR ((role = 'user'::text) AND (file_count > 0)))),
    CONSTRAINT tk_messages_content_type_check CHECK ((content_type = ANY (ARRAY['text'::text, 'briefing_card'::text]))),
    CONSTRAINT tk_messages_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_messages_pkey PRIMARY KEY (id),
    CONSTRAINT tk_messages_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'system'::text]))),
    CONSTRAINT tk_messages_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'STREAMING'::text, 'COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text]))),
    CONSTRAINT tk_messages_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES tk_turns(id) ON DELETE CASCADE
);
CREATE TABLE tk_meta (
    name text NOT NULL,
    value text NOT NULL,
    CONSTRAINT tk_meta_pkey PRIMARY KEY (name)
);
CREATE TABLE tk_migrations (
    applied_at bigint NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT tk_migrations_pkey PRIMARY KEY (version)
);
CREATE TABLE tk_outside_conversations (
    conversation_id uuid NOT NULL,
    outside_id text NOT NULL,
    user_id text NOT NULL,
    CONSTRAINT tk_outside_conversations_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_outside_conversations_pkey PRIMARY KEY (user_id, outside_id),
    CONSTRAINT tk_outside_conversations_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_outside_messages (
    conversation_id uuid NOT NULL,
    message_id uuid NOT NULL,
    outside_id text NOT NULL,
    CONSTRAINT tk_outside_messages_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_outside_messages_message_id_fkey FOREIGN KEY (message_id) REFERENCES tk_messages(id) ON DELETE CASCADE,
    CONSTRAINT tk_outside_messages_pkey PRIMARY KEY (conversation_id, outside_id)
);
CREATE TABLE tk_path_moves (
    after_seq bigint NOT NULL,
    conversation_id uuid NOT NULL,
    id uuid NOT NULL,
    state text NOT NULL,
    to_seq bigint NOT NULL,
    touched_at bigint NOT NULL,
    CONSTRAINT tk_path_moves_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_path_moves_pkey PRIMARY KEY (conversation_id),
    CONSTRAINT tk_path_moves_state_check CHECK ((state = ANY (ARRAY['prepared'::text, 'done'::text, 'left'::text])))
);
CREATE TABLE tk_payload_contents (
    content bytea NOT NULL,
    conversation_id uuid NOT NULL,
    sha256 text NOT NULL,
    written_at bigint NOT NULL,
    CONSTRAINT tk_payload_contents_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_payload_contents_pkey PRIMARY KEY (conversation_id, sha256)
);
CREATE TABLE tk_payloads (
    conversation_id uuid NOT NULL,
    created_at bigint NOT NULL,
    file_name text,
    id uuid NOT NULL,
    kind text NOT NULL,
    media_type text NOT NULL,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    CONSTRAINT tk_payloads_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_payloads_kind_check CHECK ((kind = ANY (ARRAY['value'::text, 'artifact'::text]))),
    CONSTRAINT tk_payloads_pkey PRIMARY KEY (id)
);
CREATE TABLE tk_programs (
    blocked_ms bigint NOT NULL DEFAULT 0,
    capacity bigint,
    connected_at bigint NOT NULL DEFAULT 0,
    is_open boolean NOT NULL DEFAULT true,
    key text NOT NULL,
    name text NOT NULL DEFAULT ''::text,
    node text NOT NULL,
    running bigint NOT NULL DEFAULT 0,
    sdk text NOT NULL DEFAULT ''::text,
    seen_at bigint NOT NULL,
    version bigint NOT NULL,
    worker text NOT NULL,
    CONSTRAINT tk_programs_pkey PRIMARY KEY (key, version, node, worker)
);
CREATE TABLE tk_prompt_texts (
    sha256 text NOT NULL,
    text text NOT NULL,
    CONSTRAINT tk_prompt_texts_pkey PRIMARY KEY (sha256)
);
CREATE TABLE tk_queued (
    begun_with text,
    content text NOT NULL,
    conversation_id uuid NOT NULL,
    created_at bigint NOT NULL,
    files text,
    idempotency_key text,
    key_id uuid,
    message_id uuid NOT NULL,
    model text,
    position bigint NOT NULL,
    request_hash text,
    steers_turn_id uuid,
    taken_at bigint,
    CONSTRAINT tk_queued_check CHECK (((TRIM(BOTH :blank::text FROM content) <> ''::text) OR (files IS NOT NULL))),
    CONSTRAINT tk_queued_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_queued_pkey PRIMARY KEY (message_id)
);
CREATE TABLE tk_receipt_texts (
    sha256 text NOT NULL,
    turn_id uuid NOT NULL,
    CONSTRAINT tk_receipt_texts_pkey PRIMARY KEY (turn_id, sha256),
    CONSTRAINT tk_receipt_texts_sha256_fkey FOREIGN KEY (sha256) REFERENCES tk_prompt_texts(sha256),
    CONSTRAINT tk_receipt_texts_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES tk_receipts(turn_id) ON DELETE CASCADE
);
CREATE TABLE tk_receipts (
    conversation_id uuid NOT NULL,
    receipt text NOT NULL,
    turn_id uuid NOT NULL,
    CONSTRAINT tk_receipts_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_receipts_pkey PRIMARY KEY (turn_id),
    CONSTRAINT tk_receipts_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES tk_turns(id) ON DELETE CASCADE
);
CREATE TABLE tk_refused_chunks (
    chunk_id bigint NOT NULL,
    embedder text NOT NULL,
    tries bigint NOT NULL,
    CONSTRAINT tk_refused_chunks_chunk_id_fkey FOREIGN KEY (chunk_id) REFERENCES tk_chunks(id) ON DELETE CASCADE,
    CONSTRAINT tk_refused_chunks_pkey PRIMARY KEY (chunk_id)
);
CREATE TABLE tk_requests (
    began_at bigint NOT NULL,
    name text NOT NULL,
    request_hash text NOT NULL,
    response text,
    user_id text NOT NULL,
    CONSTRAINT tk_requests_pkey PRIMARY KEY (user_id, name),
    CONSTRAINT tk_requests_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_reservations (
    agent_id uuid,
    amount bigint NOT NULL,
    at bigint NOT NULL,
    currency text NOT NULL,
    day text NOT NULL,
    fence bigint NOT NULL DEFAULT 0,
    held_by text NOT NULL,
    id uuid NOT NULL,
    key_id uuid,
    model text,
    purpose text NOT NULL,
    turn_id uuid,
    user_id text NOT NULL,
    CONSTRAINT tk_reservations_pkey PRIMARY KEY (id),
    CONSTRAINT tk_reservations_purpose_check CHECK ((purpose = ANY (ARRAY['turn'::text, 'title'::text, 'compaction'::text, 'rerun'::text, 'completion'::text]))),
    CONSTRAINT tk_reservations_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_runs (
    bytes bigint NOT NULL,
    conversation_id uuid NOT NULL,
    has_end boolean NOT NULL,
    has_start boolean NOT NULL,
    parts bigint NOT NULL,
    run_id text NOT NULL,
    CONSTRAINT tk_runs_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_runs_pkey PRIMARY KEY (conversation_id, run_id)
);
CREATE TABLE tk_searchable (
    conversation_id uuid NOT NULL,
    title text,
    to_seq bigint NOT NULL,
    CONSTRAINT tk_searchable_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_searchable_pkey PRIMARY KEY (conversation_id)
);
CREATE TABLE tk_seen_tools (
    accepted text NOT NULL,
    agent_id uuid NOT NULL,
    seen text NOT NULL,
    server text NOT NULL,
    CONSTRAINT tk_seen_tools_agent_id_fkey FOREIGN KEY (agent_id) REFERENCES tk_agents(id) ON DELETE CASCADE,
    CONSTRAINT tk_seen_tools_pkey PRIMARY KEY (agent_id, server)
);
CREATE TABLE tk_sessions (
    created_at bigint NOT NULL,
    device text NOT NULL,
    ends_at bigint NOT NULL,
    id uuid NOT NULL,
    last_used_at bigint NOT NULL,
    token_hash text NOT NULL,
    user_id text NOT NULL,
    way text NOT NULL,
    CONSTRAINT tk_sessions_pkey PRIMARY KEY (id),
    CONSTRAINT tk_sessions_token_hash_key UNIQUE (token_hash),
    CONSTRAINT tk_sessions_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_shares (
    conversation_id uuid NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    files text NOT NULL,
    hash text NOT NULL,
    id uuid NOT NULL,
    message_id uuid NOT NULL,
    preview text,
    runs text NOT NULL,
    title text NOT NULL,
    with_tools boolean NOT NULL,
    CONSTRAINT tk_shares_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_shares_hash_key UNIQUE (hash),
    CONSTRAINT tk_shares_pkey PRIMARY KEY (id)
);
CREATE TABLE tk_sign_in_attempts (
    browser_hash text NOT NULL,
    expires_at bigint NOT NULL,
    next text NOT NULL,
    nonce text NOT NULL,
    provider text NOT NULL,
    state_hash text NOT NULL,
    verifier text NOT NULL,
    CONSTRAINT tk_sign_in_attempts_pkey PRIMARY KEY (state_hash)
);
CREATE TABLE tk_sign_in_grants (
    checked_at bigint NOT NULL,
    due_at bigint NOT NULL,
    provider text NOT NULL,
    refresh_token text NOT NULL,
    user_id text NOT NULL,
    CONSTRAINT tk_sign_in_grants_pkey PRIMARY KEY (user_id),
    CONSTRAINT tk_sign_in_grants_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_signals (
    node text NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    payload text NOT NULL,
    written_at bigint NOT NULL,
    CONSTRAINT tk_signals_pkey PRIMARY KEY (number)
);
CREATE SEQUENCE tk_signals_number_seq;
CREATE TABLE tk_spending (
    currency text NOT NULL,
    period text NOT NULL,
    reserved bigint NOT NULL,
    scope text NOT NULL,
    scope_id text NOT NULL,
    spent bigint NOT NULL,
    CONSTRAINT tk_spending_pkey PRIMARY KEY (scope, scope_id, period, currency),
    CONSTRAINT tk_spending_scope_check CHECK ((scope = ANY (ARRAY['user'::text, 'agent'::text, 'key'::text])))
);
CREATE TABLE tk_states (
    conversation_id uuid NOT NULL,
    message_id uuid NOT NULL,
    payload bytea NOT NULL,
    CONSTRAINT tk_states_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_states_message_id_fkey FOREIGN KEY (message_id) REFERENCES tk_messages(id) ON DELETE CASCADE,
    CONSTRAINT tk_states_pkey PRIMARY KEY (message_id)
);
CREATE TABLE tk_step_values (
    content bytea NOT NULL,
    conversation_id uuid NOT NULL,
    id uuid NOT NULL,
    turn_id uuid NOT NULL,
    CONSTRAINT tk_step_values_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_step_values_pkey PRIMARY KEY (id),
    CONSTRAINT tk_step_values_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES tk_turns(id) ON DELETE CASCADE
);
CREATE TABLE tk_terms (
    chunks bigint NOT NULL,
    collection bigint NOT NULL,
    term text NOT NULL,
    CONSTRAINT tk_terms_collection_fkey FOREIGN KEY (collection) REFERENCES tk_collections(number) ON DELETE CASCADE,
    CONSTRAINT tk_terms_pkey PRIMARY KEY (collection, term)
);
CREATE TABLE tk_tool_calls (
    approval text,
    arguments text NOT NULL,
    artifact_ids text,
    chart_data text,
    conversation_id uuid NOT NULL,
    created_at bigint NOT NULL,
    duration_ms bigint,
    error text,
    message_id uuid NOT NULL,
    model_name text,
    position bigint NOT NULL,
    refs text,
    result text,
    server text NOT NULL,
    status text NOT NULL,
    tool_call_id text NOT NULL,
    tool_name text NOT NULL,
    turn_id uuid NOT NULL,
    user_id text NOT NULL,
    CONSTRAINT tk_tool_calls_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_tool_calls_message_id_fkey FOREIGN KEY (message_id) REFERENCES tk_messages(id) ON DELETE CASCADE,
    CONSTRAINT tk_tool_calls_pkey PRIMARY KEY (turn_id, tool_call_id),
    CONSTRAINT tk_tool_calls_status_check CHECK ((status = ANY (ARRAY['running'::text, 'ok'::text, 'error'::text, 'timeout'::text, 'denied'::text, 'interrupted'::text, 'unknown'::text]))),
    CONSTRAINT tk_tool_calls_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES tk_turns(id) ON DELETE CASCADE,
    CONSTRAINT tk_tool_calls_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_turn_chunks (
    events text NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    turn_id uuid NOT NULL,
    CONSTRAINT tk_turn_chunks_check CHECK ((last_seq >= first_seq)),
    CONSTRAINT tk_turn_chunks_pkey PRIMARY KEY (turn_id, first_seq),
    CONSTRAINT tk_turn_chunks_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES tk_turns(id) ON DELETE CASCADE
);
CREATE TABLE tk_turns (
    abort_requested boolean NOT NULL DEFAULT false,
    absence_noted boolean NOT NULL DEFAULT false,
    assistant_message_id uuid NOT NULL,
    attempts bigint NOT NULL DEFAULT 0,
    begun_with text,
    cache_read_tokens bigint,
    cache_write_tokens bigint,
    code_key text,
    code_version bigint,
    conversation_id uuid NOT NULL,
    ended_at bigint,
    error text,
    fence bigint NOT NULL DEFAULT 0,
    followed_at bigint,
    has_log boolean NOT NULL DEFAULT true,
    held_key text,
    held_request_hash text,
    id uuid NOT NULL,
    idempotency_key text,
    input_tokens bigint,
    key_id uuid,
    last_event_seq bigint NOT NULL DEFAULT 0,
    lease_until bigint,
    log_version bigint NOT NULL DEFAULT 0,
    model text,
    node_id text,
    origin text NOT NULL,
    output_tokens bigint,
    queue_version bigint NOT NULL DEFAULT 0,
    request_hash text,
    started_at bigint NOT NULL,
    status text NOT NULL,
    step text,
    step_since bigint,
    usage text,
    usage_estimated boolean,
    user_id text,
    user_message_id uuid NOT NULL,
    CONSTRAINT tk_turns_conversation_id_fkey FOREIGN KEY (conversation_id) REFERENCES tk_conversations(id) ON DELETE CASCADE,
    CONSTRAINT tk_turns_origin_check CHECK ((origin = ANY (ARRAY['live'::text, 'recorded'::text]))),
    CONSTRAINT tk_turns_pkey PRIMARY KEY (id),
    CONSTRAINT tk_turns_status_check CHECK ((status = ANY (ARRAY['RUNNING'::text, 'WAITING'::text, 'COMPLETED'::text, 'FAILED'::text, 'CANCELLED'::text]))),
    CONSTRAINT tk_turns_user_id_fkey FOREIGN KEY (user_id) REFERENCES tk_users(id) ON DELETE CASCADE
);
CREATE TABLE tk_users (
    created_at bigint NOT NULL,
    deleted_at bigint,
    groups text NOT NULL DEFAULT '[]'::text,
    id text NOT NULL,
    instructions text NOT NULL DEFAULT ''::text,
    invited boolean NOT NULL DEFAULT false,
    name text,
    role text,
    suspended_at bigint,
    suspended_by text,
    CONSTRAINT tk_users_pkey PRIMARY KEY (id),
    CONSTRAINT tk_users_role_check CHECK ((role = ANY (ARRAY['user'::text, 'admin'::text]))),
    CONSTRAINT tk_users_suspended_by_check CHECK ((suspended_by = ANY (ARRAY['admin'::text, 'provider'::text])))
);
CREATE TABLE tk_vectors (
    chunk_id bigint NOT NULL,
    embedder text NOT NULL,
    seq bigint NOT NULL,
    vector bytea NOT NULL,
    CONSTRAINT tk_vectors_chunk_id_fkey FOREIGN KEY (chunk_id) REFERENCES tk_chunks(id) ON DELETE CASCADE,
    CONSTRAINT tk_vectors_pkey PRIMARY KEY (chunk_id),
    CONSTRAINT tk_vectors_seq_key UNIQUE (seq)
);
CREATE INDEX tk_agents_by_owner ON public.tk_agents USING btree (owner_id, id) WHERE (deleted_at IS NULL);
CREATE INDEX tk_agents_bytes ON public.tk_agents USING btree (owner_id, text_bytes) WHERE (NOT is_cleared);
CREATE UNIQUE INDEX tk_agents_code_key ON public.tk_agents USING btree (code_key) WHERE (code_key IS NOT NULL);
CREATE UNIQUE INDEX tk_agents_default ON public.tk_agents USING btree (is_default) WHERE is_default;
CREATE INDEX tk_agents_deleting ON public.tk_agents USING btree (id) WHERE (delete_after_days > 0);
CREATE INDEX tk_agents_ownerless ON public.tk_agents USING btree (id) WHERE (owner_id IS NULL);
CREATE UNIQUE INDEX tk_agents_pkey ON public.tk_agents USING btree (id);
CREATE INDEX tk_agents_public ON public.tk_agents USING btree (id) WHERE ((deleted_at IS NULL) AND (visibility = 'public'::text));
CREATE INDEX tk_agents_uncleared ON public.tk_agents USING btree (deleted_at) WHERE ((deleted_at IS NOT NULL) AND (NOT is_cleared));
CREATE UNIQUE INDEX tk_allowances_pkey ON public.tk_allowances USING btree (user_id);
CREATE INDEX tk_approvals_by_conversation ON public.tk_approvals USING btree (conversation_id);
CREATE INDEX tk_approvals_by_turn ON public.tk_approvals USING btree (turn_id);
CREATE INDEX tk_approvals_open ON public.tk_approvals USING btree (expires_at) WHERE (answered_at IS NULL);
CREATE UNIQUE INDEX tk_approvals_pkey ON public.tk_approvals USING btree (id);
CREATE UNIQUE INDEX tk_audit_pkey ON public.tk_audit USING btree (id);
CREATE INDEX tk_briefings_by_agent ON public.tk_briefings USING btree (agent_id, text_bytes);
CREATE INDEX tk_briefings_by_message ON public.tk_briefings USING btree (message_id);
CREATE UNIQUE INDEX tk_briefings_pkey ON public.tk_briefings USING btree (user_id, id);
CREATE INDEX tk_briefings_unread ON public.tk_briefings USING btree (user_id, id DESC) WHERE (read_at IS NULL);
CREATE UNIQUE INDEX tk_call_receipts_pkey ON public.tk_call_receipts USING btree (turn_id, call);
CREATE INDEX tk_chunk_terms ON public.tk_chunks USING gin (array_to_tsvector(string_to_array(terms, ' '::text))) WITH (fastupdate=off);
CREATE UNIQUE INDEX tk_chunks_document_id_position_key ON public.tk_chunks USING btree (document_id, "position");
CREATE UNIQUE INDEX tk_chunks_pkey ON public.tk_chunks USING btree (id);
CREATE UNIQUE INDEX tk_collections_agent_id_key ON public.tk_collections USING btree (agent_id);
CREATE UNIQUE INDEX tk_collections_pkey ON public.tk_collections USING btree (number);
CREATE UNIQUE INDEX tk_collections_user_id_key ON public.tk_collections USING btree (user_id);
CREATE UNIQUE INDEX tk_compaction_progress_pkey ON public.tk_compaction_progress USING btree (conversation_id);
CREATE INDEX tk_compactions_by_conversation ON public.tk_compactions USING btree (conversation_id, to_seq DESC);
CREATE UNIQUE INDEX tk_compactions_pkey ON public.tk_compactions USING btree (id);
CREATE UNIQUE INDEX tk_content_pieces_pkey ON public.tk_content_pieces USING btree (content_id, number);
CREATE INDEX tk_contents_by_user ON public.tk_contents USING btree (user_id, size);
CREATE UNIQUE INDEX tk_contents_pkey ON public.tk_contents USING btree (id);
CREATE UNIQUE INDEX tk_contents_user_id_sha256_key ON public.tk_contents USING btree (user_id, sha256);
CREATE INDEX tk_conversations_by_agent ON public.tk_conversations USING btree (user_id, agent_id, updated_at DESC, id DESC, status) WHERE (deleted_at IS NULL);
CREATE UNIQUE INDEX tk_conversations_by_session ON public.tk_conversations USING btree (session_hash);
CREATE INDEX tk_conversations_by_user ON public.tk_conversations USING btree (user_id, updated_at DESC, id DESC, status) WHERE (deleted_at IS NULL);
CREATE INDEX tk_conversations_bytes ON public.tk_conversations USING btree (user_id, text_bytes);
CREATE INDEX tk_conversations_deleted ON public.tk_conversations USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE INDEX tk_conversations_deleted_by_user ON public.tk_conversations USING btree (user_id, deleted_at DESC, id DESC, agent_id) WHERE (deleted_at IS NOT NULL);
CREATE INDEX tk_conversations_deleting ON public.tk_conversations USING btree (deletes_at) WHERE (deletes_at IS NOT NULL);
CREATE INDEX tk_conversations_held ON public.tk_conversations USING btree (deleted_at) WHERE (held_by IS NOT NULL);
CREATE INDEX tk_conversations_idle ON public.tk_conversations USING btree (agent_id, updated_at) WHERE ((deletes_at IS NULL) AND (deleted_at IS NULL) AND (NOT is_pinned));
CREATE UNIQUE INDEX tk_conversations_main ON public.tk_conversations USING btree (user_id, agent_id) WHERE (is_main AND (deleted_at IS NULL));
CREATE INDEX tk_conversations_of_agent ON public.tk_conversations USING btree (agent_id);
CREATE INDEX tk_conversations_pinned ON public.tk_conversations USING btree (user_id, updated_at DESC, id DESC, agent_id, status) WHERE (is_pinned AND (deleted_at IS NULL));
CREATE UNIQUE INDEX tk_conversations_pkey ON public.tk_conversations USING btree (id);
CREATE UNIQUE INDEX tk_conversations_session_id_key ON public.tk_conversations USING btree (session_id);
CREATE UNIQUE INDEX tk_counters_pkey ON public.tk_counters USING btree (name);
CREATE INDEX tk_creation_keys_by_conversation ON public.tk_creation_keys USING btree (conversation_id);
CREATE UNIQUE INDEX tk_creation_keys_pkey ON public.tk_creation_keys USING btree (user_id, idempotency_key);
CREATE UNIQUE INDEX tk_deleted_users_pkey ON public.tk_deleted_users USING btree (name);
CREATE UNIQUE INDEX tk_documents_agent_id_sha256_key ON public.tk_documents USING btree (agent_id, sha256);
CREATE UNIQUE INDEX tk_documents_pkey ON public.tk_documents USING btree (id);
CREATE INDEX tk_documents_processing ON public.tk_documents USING btree (updated_at) WHERE (status = 'processing'::text);
CREATE INDEX tk_entries_by_conversation ON public.tk_entries USING btree (conversation_id, message_id);
CREATE UNIQUE INDEX tk_entries_message_id_key ON public.tk_entries USING btree (message_id);
CREATE UNIQUE INDEX tk_entries_pkey ON public.tk_entries USING btree (id);
CREATE INDEX tk_entry_terms ON public.tk_entries USING gin (array_to_tsvector(string_to_array(terms, ' '::text))) WITH (fastupdate=off);
CREATE UNIQUE INDEX tk_executions_pkey ON public.tk_executions USING btree (conversation_id, run_id, event_id);
CREATE INDEX tk_feedback_agent ON public.tk_feedback USING btree (agent_id, updated_at, message_id);
CREATE INDEX tk_feedback_conversation ON public.tk_feedback USING btree (conversation_id);
CREATE UNIQUE INDEX tk_feedback_pkey ON public.tk_feedback USING btree (message_id);
CREATE INDEX tk_file_forms_by_content ON public.tk_file_forms USING btree (content_id);
CREATE INDEX tk_file_forms_by_file ON public.tk_file_forms USING btree (file_id);
CREATE UNIQUE INDEX tk_file_forms_pkey ON public.tk_file_forms USING btree (id);
CREATE INDEX tk_file_uses_by_file ON public.tk_file_uses USING btree (file_id);
CREATE UNIQUE INDEX tk_file_uses_pkey ON public.tk_file_uses USING btree (conversation_id, file_id);
CREATE INDEX tk_files_by_user ON public.tk_files USING btree (user_id);
CREATE UNIQUE INDEX tk_files_pkey ON public.tk_files USING btree (id);
CREATE INDEX tk_files_unsent ON public.tk_files USING btree (unsent_since) WHERE (unsent_since IS NOT NULL);
CREATE INDEX tk_files_unsent_of_user ON public.tk_files USING btree (user_id) WHERE (unsent_since IS NOT NULL);
CREATE UNIQUE INDEX tk_former_spending_pkey ON public.tk_former_spending USING btree (name, period, currency);
CREATE UNIQUE INDEX tk_gateways_pkey ON public.tk_gateways USING btree (name);
CREATE INDEX tk_import_user ON public.tk_imports USING btree (user_id, started_at);
CREATE UNIQUE INDEX tk_imports_pkey ON public.tk_imports USING btree (id);
CREATE INDEX tk_invitations_of_user ON public.tk_invitations USING btree (user_id);
CREATE UNIQUE INDEX tk_invitations_pkey ON public.tk_invitations USING btree (id);
CREATE UNIQUE INDEX tk_invitations_token_hash_key ON public.tk_invitations USING btree (token_hash);
CREATE INDEX tk_jobs_alike ON public.tk_jobs USING btree (kind, arguments);
CREATE INDEX tk_jobs_due ON public.tk_jobs USING btree (kind, run_at);
CREATE UNIQUE INDEX tk_jobs_pkey ON public.tk_jobs USING btree (id);
CREATE INDEX tk_key_user ON public.tk_keys USING btree (user_id, created_at);
CREATE INDEX tk_keys_by_parent ON public.tk_keys USING btree (parent_id);
CREATE UNIQUE INDEX tk_keys_hash_key ON public.tk_keys USING btree (hash);
CREATE UNIQUE INDEX tk_keys_pkey ON public.tk_keys USING btree (id);
CREATE INDEX tk_ledger_agent ON public.tk_ledger USING btree (agent_id, day);
CREATE INDEX tk_ledger_day ON public.tk_ledger USING btree (day);
CREATE UNIQUE INDEX tk_ledger_pkey ON public.tk_ledger USING btree (id);
CREATE INDEX tk_ledger_user ON public.tk_ledger USING btree (user_id, day);
CREATE UNIQUE INDEX tk_let_go_texts_pkey ON public.tk_let_go_texts USING btree (id);
CREATE INDEX tk_memories_by_agent ON public.tk_memories USING btree (agent_id);
CREATE INDEX tk_memories_by_user ON public.tk_memories USING btree (user_id, agent_id, id);
CREATE INDEX tk_memories_bytes ON public.tk_memories USING btree (user_id, text_bytes);
CREATE UNIQUE INDEX tk_memories_pkey ON public.tk_memories USING btree (id);
CREATE INDEX tk_messages_by_parent ON public.tk_messages USING btree (parent_id, conversation_id, seq);
CREATE UNIQUE INDEX tk_messages_by_seq ON public.tk_messages USING btree (conversation_id, seq);
CREATE INDEX tk_messages_by_turn ON public.tk_messages USING btree (turn_id);
CREATE UNIQUE INDEX tk_messages_on_path ON public.tk_messages USING btree (conversation_id, seq) WHERE on_path;
CREATE UNIQUE INDEX tk_messages_pkey ON public.tk_messages USING btree (id);
CREATE UNIQUE INDEX tk_meta_pkey ON public.tk_meta USING btree (name);
CREATE UNIQUE INDEX tk_migrations_pkey ON public.tk_migrations USING btree (version);
CREATE INDEX tk_outside_conversation ON public.tk_outside_conversations USING btree (conversation_id);
CREATE UNIQUE INDEX tk_outside_conversations_pkey ON public.tk_outside_conversations USING btree (user_id, outside_id);
CREATE INDEX tk_outside_message ON public.tk_outside_messages USING btree (message_id);
CREATE UNIQUE INDEX tk_outside_messages_pkey ON public.tk_outside_messages USING btree (conversation_id, outside_id);
CREATE UNIQUE INDEX tk_path_moves_pkey ON public.tk_path_moves USING btree (conversation_id);
CREATE UNIQUE INDEX tk_payload_contents_pkey ON public.tk_payload_contents USING btree (conversation_id, sha256);
CREATE INDEX tk_payloads_by_content ON public.tk_payloads USING btree (conversation_id, sha256);
CREATE UNIQUE INDEX tk_payloads_pkey ON public.tk_payloads USING btree (id);
CREATE INDEX tk_programs_node ON public.tk_programs USING btree (node);
CREATE UNIQUE INDEX tk_programs_pkey ON public.tk_programs USING btree (key, version, node, worker);
CREATE UNIQUE INDEX tk_prompt_texts_pkey ON public.tk_prompt_texts USING btree (sha256);
CREATE UNIQUE INDEX tk_queued_by_conversation ON public.tk_queued USING btree (conversation_id, "position");
CREATE INDEX tk_queued_by_key ON public.tk_queued USING btree (conversation_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE UNIQUE INDEX tk_queued_pkey ON public.tk_queued USING btree (message_id);
CREATE INDEX tk_queued_waiting ON public.tk_queued USING btree (conversation_id, "position") WHERE (taken_at IS NULL);
CREATE INDEX tk_receipt_texts_by_text ON public.tk_receipt_texts USING btree (sha256);
CREATE UNIQUE INDEX tk_receipt_texts_pkey ON public.tk_receipt_texts USING btree (turn_id, sha256);
CREATE INDEX tk_receipts_by_conversation ON public.tk_receipts USING btree (conversation_id);
CREATE UNIQUE INDEX tk_receipts_pkey ON public.tk_receipts USING btree (turn_id);
CREATE UNIQUE INDEX tk_refused_chunks_pkey ON public.tk_refused_chunks USING btree (chunk_id);
CREATE INDEX tk_request_began ON public.tk_requests USING btree (began_at);
CREATE UNIQUE INDEX tk_requests_pkey ON public.tk_requests USING btree (user_id, name);
CREATE INDEX tk_reservation_time ON public.tk_reservations USING btree (at);
CREATE INDEX tk_reservation_user ON public.tk_reservations USING btree (user_id);
CREATE UNIQUE INDEX tk_reservations_pkey ON public.tk_reservations USING btree (id);
CREATE INDEX tk_reservations_turn ON public.tk_reservations USING btree (turn_id) WHERE (turn_id IS NOT NULL);
CREATE UNIQUE INDEX tk_running_import ON public.tk_imports USING btree (user_id) WHERE (status = 'RUNNING'::text);
CREATE INDEX tk_runs_complete ON public.tk_runs USING btree (conversation_id, run_id) WHERE (has_start AND has_end);
CREATE UNIQUE INDEX tk_runs_pkey ON public.tk_runs USING btree (conversation_id, run_id);
CREATE UNIQUE INDEX tk_searchable_pkey ON public.tk_searchable USING btree (conversation_id);
CREATE UNIQUE INDEX tk_seen_tools_pkey ON public.tk_seen_tools USING btree (agent_id, server);
CREATE INDEX tk_sessions_of_user ON public.tk_sessions USING btree (user_id);
CREATE UNIQUE INDEX tk_sessions_pkey ON public.tk_sessions USING btree (id);
CREATE UNIQUE INDEX tk_sessions_token_hash_key ON public.tk_sessions USING btree (token_hash);
CREATE INDEX tk_share_conversation ON public.tk_shares USING btree (conversation_id, created_at);
CREATE UNIQUE INDEX tk_shares_hash_key ON public.tk_shares USING btree (hash);
CREATE UNIQUE INDEX tk_shares_pkey ON public.tk_shares USING btree (id);
CREATE UNIQUE INDEX tk_sign_in_attempts_pkey ON public.tk_sign_in_attempts USING btree (state_hash);
CREATE INDEX tk_sign_in_grants_due ON public.tk_sign_in_grants USING btree (provider, due_at);
CREATE UNIQUE INDEX tk_sign_in_grants_pkey ON public.tk_sign_in_grants USING btree (user_id);
CREATE UNIQUE INDEX tk_signals_pkey ON public.tk_signals USING btree (number);
CREATE INDEX tk_spending_period ON public.tk_spending USING btree (period);
CREATE UNIQUE INDEX tk_spending_pkey ON public.tk_spending USING btree (scope, scope_id, period, currency);
CREATE INDEX tk_states_conversation ON public.tk_states USING btree (conversation_id);
CREATE UNIQUE INDEX tk_states_pkey ON public.tk_states USING btree (message_id);
CREATE INDEX tk_step_values_conversation ON public.tk_step_values USING btree (conversation_id);
CREATE UNIQUE INDEX tk_step_values_pkey ON public.tk_step_values USING btree (id);
CREATE INDEX tk_step_values_turn ON public.tk_step_values USING btree (turn_id);
CREATE UNIQUE INDEX tk_terms_pkey ON public.tk_terms USING btree (collection, term);
CREATE INDEX tk_tool_calls_by_conversation ON public.tk_tool_calls USING btree (conversation_id, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE INDEX tk_tool_calls_by_id ON public.tk_tool_calls USING btree (conversation_id, tool_call_id, created_at DESC);
CREATE INDEX tk_tool_calls_by_message ON public.tk_tool_calls USING btree (message_id, "position");
CREATE INDEX tk_tool_calls_by_tool ON public.tk_tool_calls USING btree (user_id, tool_name, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE INDEX tk_tool_calls_by_user ON public.tk_tool_calls USING btree (user_id, created_at DESC, turn_id DESC, tool_call_id DESC);
CREATE UNIQUE INDEX tk_tool_calls_pkey ON public.tk_tool_calls USING btree (turn_id, tool_call_id);
CREATE INDEX tk_tool_calls_roles ON public.tk_tool_calls USING btree (conversation_id, created_at DESC, "position" DESC) WHERE ((server = 'promptx'::text) AND (tool_name = 'promptx_action'::text) AND (status = 'ok'::text));
CREATE UNIQUE INDEX tk_turn_chunks_pkey ON public.tk_turn_chunks USING btree (turn_id, first_seq);
CREATE UNIQUE INDEX tk_turns_active ON public.tk_turns USING btree (conversation_id) WHERE ((status = ANY (ARRAY['RUNNING'::text, 'WAITING'::text])) AND (origin = 'live'::text));
CREATE INDEX tk_turns_by_conversation ON public.tk_turns USING btree (conversation_id, id);
CREATE INDEX tk_turns_by_user ON public.tk_turns USING btree (user_id, started_at);
CREATE INDEX tk_turns_code_begun ON public.tk_turns USING btree (lease_until) WHERE ((status = 'RUNNING'::text) AND (origin = 'live'::text) AND (code_key IS NOT NULL) AND (code_version IS NOT NULL));
CREATE INDEX tk_turns_code_stopping ON public.tk_turns USING btree (lease_until) WHERE ((status = 'RUNNING'::text) AND (origin = 'live'::text) AND (code_key IS NOT NULL) AND abort_requested);
CREATE INDEX tk_turns_code_unbegun ON public.tk_turns USING btree (lease_until) WHERE ((status = 'RUNNING'::text) AND (origin = 'live'::text) AND (code_key IS NOT NULL) AND (code_version IS NULL));
CREATE INDEX tk_turns_code_unnoted ON public.tk_turns USING btree (lease_until) WHERE ((status = 'RUNNING'::text) AND (origin = 'live'::text) AND (code_key IS NOT NULL) AND (NOT absence_noted));
CREATE UNIQUE INDEX tk_turns_held_key ON public.tk_turns USING btree (conversation_id, held_key) WHERE (held_key IS NOT NULL);
CREATE UNIQUE INDEX tk_turns_idempotency ON public.tk_turns USING btree (conversation_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE INDEX tk_turns_leases ON public.tk_turns USING btree (code_key, lease_until) WHERE ((status = 'RUNNING'::text) AND (origin = 'live'::text));
CREATE INDEX tk_turns_logged ON public.tk_turns USING btree (ended_at) WHERE (has_log AND (ended_at IS NOT NULL));
CREATE UNIQUE INDEX tk_turns_pkey ON public.tk_turns USING btree (id);
CREATE INDEX tk_turns_running_of_user ON public.tk_turns USING btree (user_id) WHERE ((status = 'RUNNING'::text) AND (origin = 'live'::text));
CREATE INDEX tk_turns_waiting ON public.tk_turns USING btree (user_id) WHERE ((status = 'WAITING'::text) AND (origin = 'live'::text));
CREATE INDEX tk_turns_waiting_by_age ON public.tk_turns USING btree (id) WHERE ((status = 'WAITING'::text) AND (origin = 'live'::text));
CREATE INDEX tk_users_deleted ON public.tk_users USING btree (id) WHERE (deleted_at IS NOT NULL);
CREATE UNIQUE INDEX tk_users_pkey ON public.tk_users USING btree (id);
CREATE UNIQUE INDEX tk_vectors_pkey ON public.tk_vectors USING btree (chunk_id);
CREATE UNIQUE INDEX tk_vectors_seq_key ON public.tk_vectors USING btree (seq);
CREATE OR REPLACE FUNCTION public.tk_leave_agent_in_code()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$BEGIN RETURN NULL; END$function$;
CREATE OR REPLACE FUNCTION public.tk_let_go_of_texts()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    EXECUTE format('INSERT INTO %I.tk_let_go_texts (sha256) SELECT sha256 FROM gone', TG_TABLE_SCHEMA);
    RETURN NULL;
END$function$;
CREATE OR REPLACE FUNCTION public.tk_refuse_turn_of_code()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
    IF EXISTS (SELECT 1 FROM tk_conversations AS conversation JOIN tk_agents AS agent ON agent.id = conversation.agent_id
            WHERE conversation.id = new.conversation_id AND agent.code_key IS NOT NULL) THEN
        RAISE EXCEPTION 'This agent is a program, which only a newer version of Threadkeep can run';
    END IF;
    RETURN new;
END$function$;
CREATE TRIGGER tk_agents_in_code_hidden BEFORE UPDATE OF deleted_at ON public.tk_agents FOR EACH ROW WHEN (((old.code_key IS NOT NULL) AND (old.deleted_at IS NULL) AND (new.deleted_at IS NOT NULL) AND (new.code_version IS NOT NULL))) EXECUTE FUNCTION tk_leave_agent_in_code();
CREATE TRIGGER tk_agents_in_code_stay BEFORE DELETE ON public.tk_agents FOR EACH ROW WHEN ((old.code_key IS NOT NULL)) EXECUTE FUNCTION tk_leave_agent_in_code();
CREATE TRIGGER tk_receipt_texts_go AFTER DELETE ON public.tk_receipt_texts REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tk_let_go_of_texts();
CREATE TRIGGER tk_turns_of_code BEFORE INSERT ON public.tk_turns FOR EACH ROW WHEN (((new.log_version < 4) AND (new.origin = 'live'::text) AND (new.status = 'RUNNING'::text))) EXECUTE FUNCTION tk_refuse_turn_of_code();
CREATE EXTENSION plpgsql;
