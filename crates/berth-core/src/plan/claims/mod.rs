//! Claims: which waiting jobs may take GPUs from others, and in which order they do. Most claims
//! fail, and a few numbers rule most of those out before anything is tried.

mod between_queues;
mod known;
mod lower_classes;
mod pass;
mod screen;
mod turns;
