//! One machine with GPUs: what it has, and the processes that run there.
