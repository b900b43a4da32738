-- A model call can also be a reply outside any conversation.
ALTER TABLE tk_ledger DROP CONSTRAINT tk_ledger_purpose_check;
ALTER TABLE tk_ledger ADD CONSTRAINT tk_ledger_purpose_check
    CHECK (purpose IN ('turn', 'title', 'compaction', 'rerun', 'completion'));
ALTER TABLE tk_reservations DROP CONSTRAINT tk_reservations_purpose_check;
ALTER TABLE tk_reservations ADD CONSTRAINT tk_reservations_purpose_check
    CHECK (purpose IN ('turn', 'title', 'compaction', 'rerun', 'completion'));
