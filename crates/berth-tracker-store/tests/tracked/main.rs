//! Tests the store on SQLite and on a real PostgreSQL server.

mod place;

mod backup;
mod bounds;
mod clean;
mod docs;
mod packed;
mod runs;
mod search;
