-- The terms of chunks and entries in FTS5, which keeps itself to its triggers, also when rows go by a cascade.
-- Contentless: the terms are in the tables, and a row that goes takes its own out of the index.
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

-- The texts that a receipt named before it went, whatever took it: perhaps nobody names them any more.
CREATE TABLE tk_let_go_texts (
    id integer NOT NULL PRIMARY KEY,
    sha256 text NOT NULL
);
CREATE TRIGGER tk_receipt_texts_go AFTER DELETE ON tk_receipt_texts BEGIN
    INSERT INTO tk_let_go_texts (sha256) VALUES (old.sha256);
END;
