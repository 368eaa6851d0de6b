-- Things that there are few of, as JSON. `kind` says what it is; `scope` is a team, or the
-- experiment of a logged model; `sub` the number of an experiment or version.
CREATE TABLE docs (
    kind {int} NOT NULL,
    scope {text} NOT NULL,
    name {text} NOT NULL,
    sub {int} NOT NULL,
    doc {text} NOT NULL,
    PRIMARY KEY (kind, scope, name, sub)
){keyed};
CREATE INDEX docs_by_name ON docs (kind, name);
CREATE UNIQUE INDEX experiment_names ON docs (scope, name) WHERE kind = 1;
CREATE UNIQUE INDEX experiment_numbers ON docs (sub) WHERE kind = 1;

CREATE TABLE runs (
    no {int} PRIMARY KEY,
    id {text} NOT NULL UNIQUE,
    experiment {int} NOT NULL,
    name {text} NOT NULL,
    user_id {text} NOT NULL,
    made_by {text} NOT NULL,
    status {text} NOT NULL,
    start_time {int},
    end_time {int},
    deleted {int} NOT NULL,
    deleted_at {int},
    -- Points that were sent for it, those that came twice among them.
    points {int} NOT NULL,
    -- Whether there are inputs or outputs.
    has_inputs {int} NOT NULL
){strict};
CREATE INDEX runs_of_experiment ON runs (experiment, deleted, start_time);

CREATE TABLE params (
    run {int} NOT NULL,
    key {text} NOT NULL,
    value {text} NOT NULL,
    PRIMARY KEY (run, key)
){keyed};

CREATE TABLE tags (
    run {int} NOT NULL,
    key {text} NOT NULL,
    value {text} NOT NULL,
    PRIMARY KEY (run, key)
){keyed};

-- Keys of metrics have a number within their experiment, so that rows are short.
CREATE TABLE metric_keys (
    no {int} PRIMARY KEY,
    experiment {int} NOT NULL,
    name {text} NOT NULL,
    UNIQUE (experiment, name)
){strict};

-- All points. A value is kept as a whole number in the order of the values.
CREATE TABLE points (
    run {int} NOT NULL,
    key {int} NOT NULL,
    step {int} NOT NULL,
    at {int} NOT NULL,
    value {int} NOT NULL,
    PRIMARY KEY (run, key, step, at, value)
){keyed};

-- The newest point of each metric of each run, which is what searches look at.
CREATE TABLE latest (
    run {int} NOT NULL,
    key {int} NOT NULL,
    step {int} NOT NULL,
    at {int} NOT NULL,
    value {int} NOT NULL,
    PRIMARY KEY (run, key)
){keyed};
CREATE INDEX latest_by_value ON latest (key, value, run);

CREATE TABLE datasets (
    no {int} PRIMARY KEY,
    experiment {int} NOT NULL,
    name {text} NOT NULL,
    digest {text} NOT NULL,
    source_type {text} NOT NULL,
    source {text} NOT NULL,
    schema_json {text},
    profile {text},
    UNIQUE (experiment, name, digest)
){strict};

CREATE TABLE run_datasets (
    run {int} NOT NULL,
    dataset {int} NOT NULL,
    context {text} NOT NULL,
    -- Pairs as JSON.
    tags {text} NOT NULL,
    PRIMARY KEY (run, dataset)
){keyed};
CREATE INDEX runs_of_dataset ON run_datasets (dataset);

CREATE TABLE run_models (
    run {int} NOT NULL,
    output {int} NOT NULL,
    model {text} NOT NULL,
    step {int} NOT NULL,
    PRIMARY KEY (run, output, model)
){keyed};

CREATE TABLE model_metrics (
    model {text} NOT NULL,
    key {text} NOT NULL,
    run_id {text} NOT NULL,
    dataset_name {text} NOT NULL,
    dataset_digest {text} NOT NULL,
    step {int} NOT NULL,
    at {int} NOT NULL,
    value {int} NOT NULL,
    PRIMARY KEY (model, key, run_id, dataset_name, dataset_digest)
){keyed};
