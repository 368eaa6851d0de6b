-- SQLite takes the primary key for `kind = ? AND name = ?`, and then reads all documents of the kind.
-- With this index, `name = ? AND +kind = ?` reads those of the name.
CREATE INDEX docs_of_name ON docs (name, kind);
DROP INDEX docs_by_name;
