-- Limits that hold everywhere.

-- A key that another key made, with which it goes, and the key further up whose budget it spends.
ALTER TABLE tk_keys ADD COLUMN parent_id uuid REFERENCES tk_keys (id) ON DELETE CASCADE;
ALTER TABLE tk_keys ADD COLUMN payer_id uuid;
CREATE INDEX tk_keys_by_parent ON tk_keys (parent_id);

-- What a conversation's rows and texts take, without files: kept by whoever writes them.
ALTER TABLE tk_conversations ADD COLUMN text_bytes bigint NOT NULL DEFAULT 0;

-- What the files of an agent's prompt take.
ALTER TABLE tk_agents ADD COLUMN prompt_bytes bigint NOT NULL DEFAULT 0;

-- The pace of a user's writes outside turns, and until when each reply outside turns holds its place (JSON).
ALTER TABLE tk_allowances ADD COLUMN writes_paced_to bigint NOT NULL DEFAULT 0;
ALTER TABLE tk_allowances ADD COLUMN replies text NOT NULL DEFAULT '{}';
