//! `berth logs --search` where the server looks for the lines: in all attempts, by expressions, and
//! to count them.

use crate::context::Context;
use crate::fail::{Failure, Result};
use crate::show;
use berth_api::wire::{LogMatch, LogMatches, LogSearchQuery};

#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub count: bool,
    pub timestamps: bool,
}

/// Lines of one answer.
const PAGE: u32 = 1_000;

pub async fn run(
    context: &Context,
    job: &str,
    mut query: LogSearchQuery,
    everywhere: bool,
    how: Look,
) -> Result<()> {
    let client = context.client()?;
    if !everywhere && query.attempt.is_none() {
        // The last one, as without a search.
        let attempts = client.attempts(job).await?.items;
        query.attempt = attempts.last().map(|attempt| attempt.number);
    }
    query.limit = Some(if how.count { 0 } else { PAGE });
    let mut total;
    loop {
        let found = client.search_logs(job, &query).await?;
        total = found.total;
        if !how.count {
            print(context, &found, how)?;
        }
        if found.next.is_none() {
            break;
        }
        query.cursor = found.next;
    }
    match (how.count, context.format.is_for_programs()) {
        (true, true) => show::print(&format!("{{\"total\": {total}}}\n")),
        (true, false) => show::print(&format!("{total}\n")),
        (false, _) => Ok(()),
    }
}

fn print(context: &Context, found: &LogMatches, how: Look) -> Result<()> {
    let look = context.look();
    let mut out = String::new();
    for one in &found.matches {
        if context.format.is_for_programs() {
            let json = serde_json::to_string(one);
            out.push_str(&json.map_err(|error| Failure::internal(error.to_string()))?);
        } else {
            if how.timestamps {
                let at = one.at.map_or_else(|| "-".to_owned(), |at| look.at_second(at));
                out.push_str(&format!("{at} "));
            }
            let LogMatch { attempt, task, rank, line, text, .. } = one;
            out.push_str(&format!("{attempt}.{task}.{rank}:{line}: {text}"));
        }
        out.push('\n');
    }
    show::print(&out)
}
