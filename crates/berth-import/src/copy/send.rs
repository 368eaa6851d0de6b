//! Sends batches, and finds the entries that the target refuses.

use super::Copy;
use crate::error::Result;
use crate::model::{Pairs, Place};
use crate::source::Fut;
use std::collections::BTreeMap;

/// The maximum number of params or tags in one request, and their bytes.
const PAIRS: usize = 100;
const BYTES: usize = 200_000;

impl Copy<'_> {
    /// Sends a batch. If the target refuses it, bisects to find the refused entries.
    pub(super) async fn send<'b, T, F>(
        &self,
        items: &'b [T],
        what: impl Fn(&T) -> String,
        send: F,
    ) -> Result<()>
    where
        F: Fn(&'b [T]) -> Fut<'b, ()>,
    {
        let mut rest = vec![items];
        while let Some(some) = rest.pop().filter(|some| !some.is_empty()) {
            match send(some).await {
                Err(error) if error.is_refusal() && some.len() > 1 => {
                    let (first, second) = some.split_at(some.len() / 2);
                    rest.extend([second, first]);
                }
                sent => drop(self.note(|| what(&some[0]), sent)?),
            }
        }
        Ok(())
    }

    /// Copies the files of a run or model. Skips files that the target has with the same size.
    pub(super) async fn send_files(
        &self,
        owner: &str,
        (from, to): (&Place, &Place),
        is_new: bool,
    ) -> Result<()> {
        let listed = self.source.files(from).await;
        let Some(files) = self.note(|| format!("files of {owner}"), listed)? else {
            return Ok(());
        };
        let mut there = BTreeMap::new();
        if !is_new && !files.is_empty() {
            there =
                self.sink.files(to).await?.into_iter().map(|one| (one.path, one.bytes)).collect();
        }
        for file in &files {
            if there.get(&file.path) == Some(&file.bytes) {
                continue;
            }
            let open = || self.source.open(from, &file.path);
            let sent = self.sink.put(to, &file.path, &open).await;
            self.note(|| format!("file {} of {owner}", file.path), sent)?;
        }
        Ok(())
    }
}

/// Splits pairs into requests.
pub fn batches(pairs: &[(String, String)]) -> Vec<&[(String, String)]> {
    let mut found = Vec::new();
    let mut rest = pairs;
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = rest.iter().take(PAIRS).take_while(|(key, value)| {
            bytes += key.len() + value.len();
            bytes <= BYTES
        });
        let (some, after) = rest.split_at(fits.count().max(1));
        found.push(some);
        rest = after;
    }
    found
}

/// Truncates a text like the servers do.
pub fn cut(text: &str, most: usize) -> &str {
    match text.char_indices().nth(most) {
        Some((at, _)) if text.len() > most => &text[..at],
        _ => text,
    }
}

pub fn cut_all(pairs: &[(String, String)], most: usize) -> Pairs {
    pairs.iter().map(|(key, value)| (key.clone(), cut(value, most).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_sent_in_requests_that_a_server_takes() {
        let pair = |size: usize| ("k".to_owned(), "v".repeat(size));
        let lengths = |pairs: &[(String, String)]| {
            batches(pairs).iter().map(|some| some.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(&vec![pair(1); 250]), [100, 100, 50]);
        assert_eq!(lengths(&vec![pair(90_000); 3]), [2, 1]);
        assert_eq!(lengths(&[pair(BYTES + 1)]), [1]);
        assert!(batches(&[]).is_empty());
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!(cut("äöü", 2), "äö");
        assert_eq!(cut("ab", 2), "ab");
        assert_eq!(cut("abc", usize::MAX), "abc");
    }
}
