//! The only SQL: the event log and what is read beside it, in SQLite and PostgreSQL.
