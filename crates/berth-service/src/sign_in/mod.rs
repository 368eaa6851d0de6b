//! Who may sign in, how often one may try, and command lines that sign in by a code.

mod devices;
mod provided;
mod rules;

pub use crate::device_book::Devices;
pub use crate::sign_in_limits::{Door, Limited, SignInLimits};
pub use devices::{DeviceFailed, answer, ask, begin, poll};
pub use provided::{Provided, admit};
pub use rules::{GroupRule, OidcRules, RuleError};
