//! The heap. A server frees on one thread what another allocated, for as long as it runs: pods and
//! jobs come and go one by one among a hundred thousand that stay, and each forecast copies the
//! whole state. A heap per thread then grows although no more is in use than at the start: the
//! holes are in one thread's pages, and the next pod is read by another. So all threads share one
//! set of pages (`narenas:1`), and a hole is filled by whoever needs one of its size. A small cache
//! of each thread spares it the lock.
//!
//! And the state of a large cluster is hundreds of megabytes that are walked in no order, so that
//! with small pages a good part of a plan is spent looking pages up. This allocator asks the system
//! for huge ones and keeps them full (`hpa`). What a moment of much work leaves free beyond a
//! twentieth of what is in use goes back (`hpa_dirty_mult`).
//!
//! The settings are in `.cargo/config.toml`.

#[global_allocator]
static HEAP: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
