//! Attempts to reach what one may not, by a researcher with a token and a shell. Each is made
//! against a real server, once as root and once as an ordinary user.

mod folders;
mod http;
mod inside;
mod ordinary;
mod paths;
mod stage;
