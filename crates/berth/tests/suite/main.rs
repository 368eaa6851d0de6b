//! The program and the workspace around it, but for Kubernetes: one binary, because each one links
//! everything.

mod attacks;
mod boards;
mod cli;
mod commands;
mod cycles;
mod docs;
mod image;
mod layering;
mod links;
mod machine;
mod sign_in;
