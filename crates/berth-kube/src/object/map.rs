//! A small map in one allocation.

use super::Text;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Text keys in order. A tree map's first node alone takes more room than all labels of most pods,
/// and there are several maps in every pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Map<V>(Box<[(Text, V)]>);

impl<V> Default for Map<V> {
    fn default() -> Map<V> {
        Map(Box::default())
    }
}

impl<V> Map<V> {
    pub fn get(&self, key: &str) -> Option<&V> {
        let at = self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(&self.0[at].1)
    }

    pub fn contains(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// In the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &V)> + Clone {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// The same with one more entry, or another value of it.
    pub fn with(&self, key: &str, value: V) -> Map<V>
    where
        V: Clone,
    {
        let entries = self.0.iter().cloned();
        entries.chain([(key.into(), value)]).collect()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<Text>, V> FromIterator<(K, V)> for Map<V> {
    /// Of a key that comes twice the last value stays, as in JSON.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Map<V> {
        let mut entries: Vec<(Text, V)> =
            entries.into_iter().map(|(key, value)| (key.into(), value)).collect();
        // Stable, hence the last of equal keys is the first after the reversal.
        entries.reverse();
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|later, kept| later.0 == kept.0);
        Map(entries.into_boxed_slice())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Map<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Map<V>, D::Error> {
        struct Entries<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Entries<V> {
            type Value = Map<V>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_unit<E>(self) -> Result<Map<V>, E> {
                Ok(Map::default())
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Map<V>, A::Error> {
                let mut entries = Vec::with_capacity(map.size_hint().unwrap_or(0).min(64));
                while let Some(entry) = map.next_entry::<Text, V>()? {
                    entries.push(entry);
                }
                Ok(entries.into_iter().collect())
            }
        }
        deserializer.deserialize_any(Entries(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_finds_what_was_put_in_whatever_the_order() {
        let map: Map<u8> = serde_json::from_str(r#"{"b": 2, "a": 1, "c": 3, "a": 4}"#).unwrap();
        assert_eq!(map.iter().collect::<Vec<_>>(), [("a", &4), ("b", &2), ("c", &3)]);
        assert_eq!(map.get("c"), Some(&3));
        assert!(!map.contains("d"));
    }

    #[test]
    fn null_is_an_empty_map() {
        assert!(serde_json::from_str::<Map<u8>>("null").unwrap().is_empty());
    }
}
