-- A search visits the rows of thousands of chunks for their ids alone: what is long lies beside them.
ALTER TABLE tk_chunks SET (toast_tuple_target = 128);
-- The terms of chunks and entries as the database's own text search takes them, without its parser.
CREATE INDEX tk_chunk_terms ON tk_chunks
    USING gin (array_to_tsvector(string_to_array(terms, ' '))) WITH (fastupdate = off);
CREATE INDEX tk_entry_terms ON tk_entries
    USING gin (array_to_tsvector(string_to_array(terms, ' '))) WITH (fastupdate = off);
