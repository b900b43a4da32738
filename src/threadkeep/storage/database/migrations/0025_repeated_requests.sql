-- Requests with an `Idempotency-Key` that create something. `name` is the hash of the key; `response` is
-- encrypted with the key itself, which is not stored, because some responses carry a secret. It is NULL until
-- the request has been answered.
CREATE TABLE tk_requests (
    user_id text NOT NULL REFERENCES tk_users (id) ON DELETE CASCADE,
    name text NOT NULL,
    request_hash text NOT NULL,
    response text,
    began_at bigint NOT NULL,
    PRIMARY KEY (user_id, name)
);
CREATE INDEX tk_request_began ON tk_requests (began_at);
