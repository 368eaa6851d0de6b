//! Who may sign in, how often one may try, and command lines that sign in by a code.

mod devices;
mod limits;
mod provided;
mod rules;

pub use devices::{DeviceFailed, Devices, answer, ask, begin, poll};
pub use limits::{Door, Limited, SignInLimits};
pub use provided::{Provided, admit};
pub use rules::{GroupRule, OidcRules, RuleError};
