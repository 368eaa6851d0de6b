//! What the store promises, held on SQLite and on a real PostgreSQL server.

mod place;

mod audit;
mod backup;
mod blobs;
mod commits;
mod costs;
mod crash;
mod damage;
mod documents;
mod figures;
mod jobs;
mod keyed_audit;
mod log;
mod lost;
mod outage;
mod retention;
mod sessions;
mod writers;
