-- A search reads thousands of rows for their ids alone, so long values are stored apart from them.
ALTER TABLE tk_chunks SET (toast_tuple_target = 128);
-- The terms of chunks and entries for the database's text search, which need not parse them.
CREATE INDEX tk_chunk_terms ON tk_chunks
    USING gin (array_to_tsvector(string_to_array(terms, ' '))) WITH (fastupdate = off);
CREATE INDEX tk_entry_terms ON tk_entries
    USING gin (array_to_tsvector(string_to_array(terms, ' '))) WITH (fastupdate = off);

-- After a crash of the database everybody has a whole minute again; in return, no turn waits for the disk.
ALTER TABLE tk_allowances SET UNLOGGED;

-- The texts of deleted receipts: perhaps no receipt uses them now. A host
-- application that deletes a user does so with a search path of its own, so the trigger names the schema.
CREATE TABLE tk_let_go_texts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sha256 text NOT NULL
);
CREATE FUNCTION tk_let_go_of_texts() RETURNS trigger LANGUAGE plpgsql AS '
BEGIN
    EXECUTE format(''INSERT INTO %I.tk_let_go_texts (sha256) SELECT sha256 FROM gone'', TG_TABLE_SCHEMA);
    RETURN NULL;
END';
-- OR REPLACE since our splitter takes a plain CREATE TRIGGER for one of SQLite's, which ends with END.
CREATE OR REPLACE TRIGGER tk_receipt_texts_go AFTER DELETE ON tk_receipt_texts
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION tk_let_go_of_texts();
