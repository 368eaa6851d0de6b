-- One text for both databases. {int} is a 64-bit integer, {text} is text that is compared by its
-- bytes, {strict} has SQLite check types as PostgreSQL does.

-- One row: who may write, and where everything that counts up stands.
CREATE TABLE log (
    one {int} PRIMARY KEY CHECK (one = 1),
    epoch {int} NOT NULL,
    holder {text} NOT NULL,
    commits {int} NOT NULL,
    last_seq {int} NOT NULL,
    cost_id {int} NOT NULL,
    audit_seq {int} NOT NULL,
    audit_hash {text} NOT NULL
){strict};
INSERT INTO log VALUES
    (1, 0, '', 0, 0, 0, 0, '0000000000000000000000000000000000000000000000000000000000000000');

CREATE TABLE events (
    seq {int} PRIMARY KEY,
    at {int} NOT NULL,
    body {text} NOT NULL
){strict};

CREATE TABLE snapshots (
    seq {int} PRIMARY KEY,
    at {int} NOT NULL,
    body {text} NOT NULL
){strict};

-- An element of -1 means that the job is no element of an array.
CREATE TABLE jobs (
    id {int} NOT NULL,
    element {int} NOT NULL,
    name {text} NOT NULL,
    kind {text} NOT NULL,
    "user" {text} NOT NULL,
    team {text} NOT NULL,
    project {text} NOT NULL,
    experiment {text} NOT NULL,
    state {text} NOT NULL,
    priority {int} NOT NULL,
    submitted {int} NOT NULL,
    started {int},
    ended {int},
    attempt {int} NOT NULL,
    gpus {int} NOT NULL,
    cost {int} NOT NULL,
    file {text} NOT NULL,
    detail {text} NOT NULL,
    reason {text} NOT NULL,
    PRIMARY KEY (id, element)
){strict};
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_by_user ON jobs ("user", id);
CREATE INDEX jobs_by_team ON jobs (team, id);
CREATE INDEX jobs_by_name ON jobs (name, id);

CREATE TABLE leases (
    job {int} NOT NULL,
    element {int} NOT NULL,
    task {int} NOT NULL,
    attempt {int} NOT NULL,
    node {text} NOT NULL,
    slices {text} NOT NULL,
    price {int} NOT NULL,
    opened {int} NOT NULL,
    started {int},
    closed {int},
    outcome {text},
    exit {text},
    cost {int} NOT NULL,
    PRIMARY KEY (job, element, task, attempt)
){strict};
CREATE INDEX leases_by_end ON leases (closed);

-- What nobody holds has no job.
CREATE TABLE costs (
    id {int} PRIMARY KEY,
    job {int},
    element {int},
    task {int},
    attempt {int},
    team {text} NOT NULL,
    project {text} NOT NULL,
    experiment {text} NOT NULL,
    "user" {text} NOT NULL,
    node {text} NOT NULL,
    kind {text} NOT NULL,
    "from" {int} NOT NULL,
    "to" {int} NOT NULL,
    gpus {int} NOT NULL,
    amount {int} NOT NULL
){strict};
CREATE INDEX costs_by_time ON costs ("from");
CREATE INDEX costs_by_job ON costs (job, element);

-- What old rows of costs added up to, by day. A job of -1 means none.
CREATE TABLE cost_totals (
    day {int} NOT NULL,
    job {int} NOT NULL,
    element {int} NOT NULL,
    team {text} NOT NULL,
    project {text} NOT NULL,
    experiment {text} NOT NULL,
    "user" {text} NOT NULL,
    kind {text} NOT NULL,
    amount {int} NOT NULL,
    gpu_us {int} NOT NULL,
    PRIMARY KEY (day, job, element, team, project, experiment, "user", kind)
){strict};

CREATE TABLE audit (
    seq {int} PRIMARY KEY,
    at {int} NOT NULL,
    who {text} NOT NULL,
    token {text} NOT NULL,
    "from" {text} NOT NULL,
    method {text} NOT NULL,
    what {text} NOT NULL,
    target {text} NOT NULL,
    outcome {text} NOT NULL,
    detail {text} NOT NULL,
    prev {text} NOT NULL,
    hash {text} NOT NULL
){strict};

CREATE TABLE idempotency (
    "user" {text} NOT NULL,
    "key" {text} NOT NULL,
    at {int} NOT NULL,
    fingerprint {text} NOT NULL,
    status {int} NOT NULL,
    body {text} NOT NULL,
    PRIMARY KEY ("user", "key")
){strict};
CREATE INDEX idempotency_by_time ON idempotency (at);

CREATE TABLE notices (
    id {text} NOT NULL PRIMARY KEY,
    at {int} NOT NULL,
    target {text} NOT NULL,
    body {text} NOT NULL,
    attempts {int} NOT NULL,
    next_at {int} NOT NULL,
    sent {int}
){strict};
CREATE INDEX notices_by_turn ON notices (sent, next_at);

CREATE TABLE users (
    name {text} NOT NULL PRIMARY KEY,
    full_name {text} NOT NULL,
    role {text},
    created {int} NOT NULL,
    disabled {int}
){strict};

CREATE TABLE teams (
    name {text} NOT NULL PRIMARY KEY,
    queue {text} NOT NULL,
    created {int} NOT NULL,
    detail {text} NOT NULL
){strict};

CREATE TABLE members (
    team {text} NOT NULL REFERENCES teams (name) ON DELETE CASCADE,
    "user" {text} NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    role {text} NOT NULL,
    created {int} NOT NULL,
    PRIMARY KEY (team, "user")
){strict};
CREATE INDEX members_by_user ON members ("user");

CREATE TABLE projects (
    team {text} NOT NULL REFERENCES teams (name) ON DELETE CASCADE,
    name {text} NOT NULL,
    created {int} NOT NULL,
    PRIMARY KEY (team, name)
){strict};

CREATE TABLE tokens (
    id {text} NOT NULL PRIMARY KEY,
    "user" {text} NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    name {text} NOT NULL,
    hash {text} NOT NULL,
    scopes {text} NOT NULL,
    created {int} NOT NULL,
    expires {int},
    revoked {int},
    last_used {int}
){strict};
CREATE INDEX tokens_by_user ON tokens ("user");

CREATE TABLE secrets (
    team {text} NOT NULL REFERENCES teams (name) ON DELETE CASCADE,
    name {text} NOT NULL,
    sealed {text} NOT NULL,
    created {int} NOT NULL,
    "by" {text} NOT NULL,
    PRIMARY KEY (team, name)
){strict};

CREATE TABLE templates (
    team {text} NOT NULL,
    name {text} NOT NULL,
    file {text} NOT NULL,
    "by" {text} NOT NULL,
    created {int} NOT NULL,
    PRIMARY KEY (team, name)
){strict};

CREATE TABLE schedules (
    id {text} NOT NULL PRIMARY KEY,
    name {text} NOT NULL,
    "user" {text} NOT NULL,
    team {text} NOT NULL,
    cron {text} NOT NULL,
    file {text} NOT NULL,
    next_at {int},
    last_job {int},
    last_element {int},
    paused {int} NOT NULL
){strict};

CREATE TABLE queue_files (
    name {text} NOT NULL PRIMARY KEY,
    body {text} NOT NULL,
    applied {int} NOT NULL,
    "by" {text} NOT NULL
){strict};

CREATE TABLE settings (
    name {text} NOT NULL PRIMARY KEY,
    value {text} NOT NULL
){strict};
