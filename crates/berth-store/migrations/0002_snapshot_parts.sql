-- The jobs of a snapshot, some hundreds to a part: those of a large cluster are tens of megabytes,
-- which nobody should have to hold in memory at once. A snapshot without parts has its jobs in it.
CREATE TABLE snapshot_parts (
    seq {int} NOT NULL,
    part {int} NOT NULL,
    body {text} NOT NULL,
    PRIMARY KEY (seq, part)
){strict};
ALTER TABLE snapshots ADD COLUMN parts {int} NOT NULL DEFAULT 0;
