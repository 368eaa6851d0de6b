-- Pages of jobs in other orders than by number. Each index has what the filters of a list ask for, so
-- that a page is found without a look at the rows it leaves out.
CREATE INDEX jobs_by_name_order ON jobs (name, id, element, state, team, "user");
CREATE INDEX jobs_by_priority ON jobs (priority, id, element, state, team, "user");
CREATE INDEX jobs_by_gpus ON jobs (gpus, id, element, state, team, "user");
CREATE INDEX jobs_by_cost ON jobs (cost, id, element, state, team, "user");
-- When a lease was told to end, and why: JSON.
ALTER TABLE leases ADD COLUMN stop_at {int};
ALTER TABLE leases ADD COLUMN stop {text};
