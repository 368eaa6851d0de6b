//! The heap. A server allocates on one thread what it frees on another, and copies the whole state
//! for each forecast; the C library's allocator keeps what such peaks leave behind, until most of
//! what is resident is in nobody's use.
//!
//! And the state of a large cluster is hundreds of megabytes that are walked in no order, so that
//! with small pages a good part of a plan is spent looking pages up. This allocator asks the system
//! for huge ones.

#[global_allocator]
static HEAP: mimalloc::MiMalloc = mimalloc::MiMalloc;
