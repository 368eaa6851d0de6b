//! What the store promises, held on SQLite and on a real PostgreSQL server.

mod place;

mod docs;
mod runs;
mod search;
