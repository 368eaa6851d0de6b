-- Which runs have read a version of data: lineage goes that way, too.
CREATE INDEX datasets_by_digest ON datasets (digest);
