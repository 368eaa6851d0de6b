-- Figures of GPUs and tasks: one row for a series, a level (0: as measured, 1: minutes, 2: hours)
-- and a chunk of time. What was measured before "end" is in it. "bytes" is what the row takes.
CREATE TABLE figures (
    series {text} NOT NULL,
    level {int} NOT NULL,
    start {int} NOT NULL,
    "end" {int} NOT NULL,
    bytes {int} NOT NULL,
    data {text} NOT NULL,
    PRIMARY KEY (series, level, start)
){strict};
-- The oldest of a level go first, and all are summed up without a look at their data.
CREATE INDEX figures_by_age ON figures (level, start, bytes);
