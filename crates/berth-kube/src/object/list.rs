//! A list that takes no more room than its items.

use serde::{Deserialize, Deserializer};
use std::ops::Deref;

/// Items in their order. Absent, `null` and empty are the same, as they are to Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T>(Box<[T]>);

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(Box::default())
    }
}

impl<T> Deref for List<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> List<T> {
        List(items.into_iter().collect())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<List<T>, D::Error> {
        let items = Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default();
        Ok(List(items.into_boxed_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_absent_lists_are_empty() {
        assert!(serde_json::from_str::<List<u8>>("null").unwrap().is_empty());
        assert_eq!(&*serde_json::from_str::<List<u8>>("[3, 1]").unwrap(), &[3, 1]);
    }
}
