//! What the store promises, held on SQLite and on a real PostgreSQL server.

mod place;

mod audit;
mod commits;
mod costs;
mod documents;
mod jobs;
mod log;
mod outage;
mod writers;
