-- A page of jobs is read from an index in the order in which it is shown, the newest first and the
-- elements of an array in theirs. Without the last two columns all jobs of a state would be sorted.
DROP INDEX jobs_by_state;
DROP INDEX jobs_by_user;
DROP INDEX jobs_by_team;
DROP INDEX jobs_by_name;
CREATE INDEX jobs_by_state ON jobs (state, id DESC, element);
CREATE INDEX jobs_by_user ON jobs ("user", state, id DESC, element);
CREATE INDEX jobs_by_team ON jobs (team, state, id DESC, element);
CREATE INDEX jobs_by_name ON jobs (name, id DESC, element);
