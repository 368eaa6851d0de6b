//! Writes the references of runs to other entities, and marks the runs as complete.

use super::Copy;
use super::runs::Pending;
use crate::error::Result;
use crate::sink::Write;
use crate::tags::{self, state};

impl Copy<'_> {
    pub(super) async fn finish(&self, one: &Pending) -> Result<()> {
        let what = || format!("models of run {}", one.id);
        let (reads, makes, parent) = {
            let map = self.map.borrow();
            // A deleted model does not exist at the target, so skip the reference.
            let model = |id: &String| map.model(id).map(str::to_owned);
            let reads: Vec<String> = one.reads.iter().filter_map(model).collect();
            let makes: Vec<(String, i64)> = one
                .makes
                .iter()
                .filter_map(|(id, step)| Some((map.model(id)?.to_owned(), *step)))
                .collect();
            let parent = one.parent.as_ref();
            let parent = parent.map(|id| map.run(id).unwrap_or(id).to_owned());
            (reads, makes, parent)
        };
        if !reads.is_empty() || !makes.is_empty() {
            let sent = self.sink.write(Write::Models(&one.to, &reads, &makes)).await;
            self.note(what, sent)?;
        }
        let mut tags = Vec::new();
        if let Some(parent) = parent {
            tags.push((tags::PARENT.to_owned(), parent));
        }
        if let Some(print) = &one.print {
            tags.push((tags::STATE.to_owned(), state::done(print)));
        }
        if !tags.is_empty() {
            self.sink.write(Write::Tags(&one.to, &tags)).await?;
        }
        if one.deleted {
            let deleted = self.sink.write(Write::DeleteRun(&one.to)).await;
            self.note(|| format!("deletion of run {}", one.id), deleted)?;
        }
        Ok(())
    }
}
