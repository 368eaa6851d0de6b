//! How to run a finished job again, and what differs now.
