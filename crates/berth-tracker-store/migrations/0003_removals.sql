-- What is gone for good, while its rows and files are still removed. `kind` is 1 for an experiment
-- and 2 for a run. The row of an experiment stays, so that its number is not given twice.
CREATE TABLE removals (
    kind {int} NOT NULL,
    no {int} NOT NULL,
    experiment {int} NOT NULL,
    team {text} NOT NULL,
    -- Where its artifacts are, below the team.
    path {text} NOT NULL,
    done {int} NOT NULL,
    PRIMARY KEY (kind, no)
){keyed};
CREATE INDEX removals_under_way ON removals (kind, no) WHERE done = 0;
CREATE INDEX deleted_runs ON runs (no) WHERE deleted = 1;
