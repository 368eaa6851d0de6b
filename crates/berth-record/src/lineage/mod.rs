//! What came from what: models, runs, jobs, code and data.
