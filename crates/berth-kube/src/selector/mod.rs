//! Label selectors and the expressions of node terms, as kube-scheduler evaluates them.

mod expr;
mod matcher;
mod unsupported;

pub(crate) use expr::Word;
pub use expr::{LabelExpr, LabelOp};
pub use matcher::LabelMatcher;
pub use unsupported::UnsupportedConstraint;
