//! Claims: which waiting jobs may take GPUs from others, and in which order they do. Most claims
//! are in vain, and most of those are told by a few numbers before anything is tried.

mod between_queues;
mod known;
mod lower_classes;
mod pass;
mod screen;
mod turns;
