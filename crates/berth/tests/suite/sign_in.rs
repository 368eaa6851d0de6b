//! Signing in: browsers with their sessions, a real provider of identities, and command lines.

mod browser;
mod callback;
mod cross_site;
mod devices;
mod house;
mod links;
mod oidc;
mod pages;
mod provider;
mod sessions;
mod tokens;
