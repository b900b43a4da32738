-- The terms of chunks and entries in FTS5. Triggers update the index, also when a cascade deletes rows.
-- Contentless: the terms are in the tables, and a deleted row removes its own from the index.
CREATE VIRTUAL TABLE tk_chunk_terms USING fts5 (terms, content = '', detail = none, tokenize = 'ascii');
CREATE TRIGGER tk_chunks_come AFTER INSERT ON tk_chunks BEGIN
    INSERT INTO tk_chunk_terms (rowid, terms) VALUES (new.id, new.terms);
END;
CREATE TRIGGER tk_chunks_go AFTER DELETE ON tk_chunks BEGIN
    INSERT INTO tk_chunk_terms (tk_chunk_terms, rowid, terms) VALUES ('delete', old.id, old.terms);
END;

CREATE VIRTUAL TABLE tk_entry_terms USING fts5 (terms, content = '', detail = none, tokenize = 'ascii');
CREATE TRIGGER tk_entries_come AFTER INSERT ON tk_entries BEGIN
    INSERT INTO tk_entry_terms (rowid, terms) VALUES (new.id, new.terms);
END;
CREATE TRIGGER tk_entries_go AFTER DELETE ON tk_entries BEGIN
    INSERT INTO tk_entry_terms (tk_entry_terms, rowid, terms) VALUES ('delete', old.id, old.terms);
END;

-- The texts of deleted receipts: perhaps no receipt uses them now.
CREATE TABLE tk_let_go_texts (
    id integer NOT NULL PRIMARY KEY,
    sha256 text NOT NULL
);
CREATE TRIGGER tk_receipt_texts_go AFTER DELETE ON tk_receipt_texts BEGIN
    INSERT INTO tk_let_go_texts (sha256) VALUES (old.sha256);
END;
