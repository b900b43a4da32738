-- What the cleanup looks for, each with an index that holds nothing else: it reads what it removes, however much
-- there is besides.

-- Whether the log of a turn may still be there. The first cleanup looks at all turns once.
ALTER TABLE tk_turns ADD COLUMN has_log boolean NOT NULL DEFAULT TRUE;
CREATE INDEX tk_turns_logged ON tk_turns (ended_at) WHERE has_log AND ended_at IS NOT NULL;

-- A turn that ends closes its open requests. These were left by turns that were aborted before.
UPDATE tk_approvals SET answered_at = expires_at
    WHERE answered_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM tk_turns WHERE tk_turns.id = tk_approvals.turn_id AND status IN ('RUNNING', 'WAITING'));

CREATE INDEX tk_documents_processing ON tk_documents (updated_at) WHERE status = 'processing';

-- Whether nothing is left of a deleted agent's documents.
ALTER TABLE tk_agents ADD COLUMN is_cleared boolean NOT NULL DEFAULT FALSE;
CREATE INDEX tk_agents_uncleared ON tk_agents (deleted_at) WHERE deleted_at IS NOT NULL AND NOT is_cleared;
CREATE INDEX tk_agents_ownerless ON tk_agents (id) WHERE owner_id IS NULL;

-- Jobs that wait for another kind of node, or for later, are passed over.
DROP INDEX tk_jobs_due;
CREATE INDEX tk_jobs_due ON tk_jobs (kind, run_at);
