//! How claims are named.

use berth_kube::object::Text;

/// By namespace and name.
pub type Key = (Text, Text);
