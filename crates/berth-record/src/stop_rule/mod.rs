//! Jobs that stop when a metric says so.
