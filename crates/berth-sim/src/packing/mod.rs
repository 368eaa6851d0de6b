//! Packing on its own: pods arrive one by one, each goes to some node or nowhere, none leaves.
//!
//! This is the setting in which placement policies have been published with figures, so it shows
//! first that the rivals here behave as their authors report, and then how the core compares with
//! them on the very same pods. It shares no code with the core: a mistake in one cannot hide the
//! same mistake in the other.

mod bench;
mod list;
mod node;
mod policy;
mod score;
mod typical;

pub use bench::{Bench, Placed, Progress};
pub use list::{List, demand, list, prefix};
pub use node::{Node, Pod, Size, WHOLE};
pub use policy::{Policy, Ties};
pub use typical::{Kind, Typical};
