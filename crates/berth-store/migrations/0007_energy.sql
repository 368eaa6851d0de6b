-- The energy of each lease, in millijoules: a row for each hour or so, and one for each day of what is
-- old. "counters" says where the counters of its GPUs stood at the end.
CREATE TABLE energy (
    job {int} NOT NULL,
    element {int} NOT NULL,
    task {int} NOT NULL,
    attempt {int} NOT NULL,
    start {int} NOT NULL,
    "end" {int} NOT NULL,
    energy_mj {int} NOT NULL,
    counters {text} NOT NULL,
    PRIMARY KEY (job, element, task, attempt, start)
){strict};
CREATE INDEX energy_by_time ON energy (start);
