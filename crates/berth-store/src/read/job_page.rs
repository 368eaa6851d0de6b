//! A page of jobs, read from an index.
//!
//! Each page reads a bounded number of rows, however many jobs there are. The keys of a page come
//! from an index that has them in the order of the page: one branch for each state, and each team
//! where few are asked for, of which the newest are taken. What no index knows is compared
//! afterwards, for so many rows at the most; a page may then hold fewer than were asked for, and
//! still have a next one.

use super::jobs::{JobFilter, any_of, condition, mark_text};
use crate::error::Result;
use crate::rows::JobRow;
use crate::store::Store;
use crate::value::{Binds, Field, Key, Reader, Value};
use berth_model::{JobId, JobState};
use std::collections::BTreeSet;

/// Rows that are looked at for one page where no index has what is asked for.
const LOOKED_AT: u32 = 2_000;
/// Branches of one statement at the most: SQLite takes 500, and each has two parts.
const MOST_BRANCHES: usize = 64;

/// Jobs, and where the next page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPage {
    pub jobs: Vec<JobRow>,
    /// What to ask for the jobs after; none where all have been looked at.
    pub next: Option<JobId>,
}

/// A statement with what its placeholders stand for.
pub(crate) struct Sql {
    pub from: String,
    pub binds: Binds,
}

/// What is read for one page.
pub(crate) struct PageRead<'a> {
    filter: &'a JobFilter,
    after: Option<JobId>,
    limit: u32,
    /// The oldest first, and the elements of an array backwards: the same indexes the other way round.
    oldest: bool,
}

impl Store {
    /// Up to `limit` jobs from the one after `after` on: the newest first, elements of an array in
    /// their order. Reads a bounded number of rows, and so may find fewer than there are.
    pub async fn job_page(
        &self,
        filter: &JobFilter,
        after: Option<JobId>,
        limit: u32,
    ) -> Result<JobPage> {
        // One more than is wanted tells whether there are more.
        self.read_page(PageRead::new(filter, after, limit.saturating_add(1)), limit).await
    }

    /// The same in the opposite order: the oldest first, elements of an array backwards.
    pub async fn oldest_job_page(
        &self,
        filter: &JobFilter,
        after: Option<JobId>,
        limit: u32,
    ) -> Result<JobPage> {
        let read = PageRead::new(filter, after, limit.saturating_add(1));
        self.read_page(PageRead { oldest: true, ..read }, limit).await
    }

    async fn read_page(&self, read: PageRead<'_>, limit: u32) -> Result<JobPage> {
        let Sql { from, binds } = read.page();
        let mut jobs: Vec<JobRow> = self.select_from(&from, binds).await?;
        let next = if jobs.len() > limit as usize {
            jobs.truncate(limit as usize);
            jobs.last().map(|job| job.id)
        } else if read.is_exact() {
            None
        } else {
            self.last_key(&read).await?
        };
        Ok(JobPage { jobs, next })
    }

    /// The last key that was looked at, if there may be more after it.
    async fn last_key(&self, read: &PageRead<'_>) -> Result<Option<JobId>> {
        let Sql { from, binds } = read.last_key();
        let rows =
            self.rows("jobs", format!("SELECT at_id, at_element FROM {from}"), binds).await?;
        let key = rows.first().map(|row| JobId::read(&mut Reader::new(row))).transpose();
        key.map_err(|why| self.unreadable("a key of jobs", why))
    }
}

impl<'a> PageRead<'a> {
    pub fn new(filter: &'a JobFilter, after: Option<JobId>, limit: u32) -> PageRead<'a> {
        PageRead { filter, after, limit, oldest: false }
    }

    fn order(&self) -> &'static str {
        if self.oldest { "at_id, at_element DESC" } else { "at_id DESC, at_element" }
    }

    /// Whether an index has all that is asked for.
    fn is_exact(&self) -> bool {
        self.remaining(&mut Binds::default()).is_empty()
    }

    /// How many keys are looked at.
    fn keys(&self) -> u32 {
        if self.is_exact() { self.limit } else { self.limit.max(LOOKED_AT) }
    }

    /// What follows `SELECT … FROM` to read the page.
    pub fn page(&self) -> Sql {
        let mut binds = Binds::default();
        let keys = self.newest_keys(&mut binds);
        let remaining = self.remaining(&mut binds);
        let (condition, limit, order) = (condition(&remaining), self.limit, self.order());
        let from = format!(
            "({keys}) AS keys JOIN jobs ON jobs.id = at_id AND jobs.element = at_element \
             {condition} ORDER BY {order} LIMIT {limit}"
        );
        Sql { from, binds }
    }

    /// The same for the last of the keys, if there are that many.
    pub fn last_key(&self) -> Sql {
        let mut binds = Binds::default();
        let keys = self.newest_keys(&mut binds);
        let before = self.keys().saturating_sub(1);
        let order = self.order();
        let from = format!("({keys}) AS keys ORDER BY {order} LIMIT 1 OFFSET {before}");
        Sql { from, binds }
    }

    /// The keys that are looked at: the newest of each branch, and of those the newest.
    fn newest_keys(&self, binds: &mut Binds) -> String {
        let order = format!("ORDER BY {} LIMIT {}", self.order(), self.keys());
        let mut parts = Vec::new();
        for branch in self.branches() {
            for position in self.positions() {
                let mut terms: Vec<String> = branch.iter().map(|term| term.marked(binds)).collect();
                terms.extend(position.term(self.oldest, binds));
                let condition = condition(&terms);
                let nth = parts.len();
                parts.push(format!(
                    "SELECT * FROM (SELECT id AS at_id, element AS at_element FROM jobs \
                     {condition} {order}) AS part_{nth}"
                ));
            }
        }
        format!("SELECT * FROM ({}) AS parts {order}", parts.join(" UNION ALL "))
    }

    /// Where a page goes on: the rest of an array, and the jobs before it. As one condition the
    /// two would be read from the beginning.
    fn positions(&self) -> Vec<Position> {
        match self.after {
            None => vec![Position::Anywhere],
            Some(after) => vec![Position::SameNumber(after), Position::Before(after)],
        }
    }

    /// What each branch of the statement has in its index.
    fn branches(&self) -> Vec<Vec<Term>> {
        let filter = self.filter;
        match self.lead() {
            Lead::Number => vec![filter.number.map(Term::number).into_iter().collect()],
            Lead::Name => {
                vec![filter.name.iter().map(|name| Term::text("name", name)).collect()]
            }
            Lead::User => {
                let user = filter.user.as_deref().unwrap_or_default();
                let of_state = |state: JobState| {
                    vec![Term::text("\"user\"", user), Term::text("state", state.as_str())]
                };
                self.states().into_iter().map(of_state).collect()
            }
            Lead::Team => {
                let teams: BTreeSet<&str> = filter.teams.iter().map(String::as_str).collect();
                let mut branches = Vec::new();
                for team in teams {
                    for state in self.states() {
                        let state = Term::text("state", state.as_str());
                        branches.push(vec![Term::text("team", team), state]);
                    }
                }
                branches
            }
            Lead::State => {
                let of_state = |state: JobState| vec![Term::text("state", state.as_str())];
                self.states().into_iter().map(of_state).collect()
            }
        }
    }

    /// The index that finds the least.
    fn lead(&self) -> Lead {
        let filter = self.filter;
        let teams = filter.teams.len();
        if filter.number.is_some() {
            Lead::Number
        } else if filter.name.is_some() {
            Lead::Name
        } else if filter.user.is_some() {
            Lead::User
        } else if teams > 0 && teams * self.states().len() <= MOST_BRANCHES {
            Lead::Team
        } else {
            Lead::State
        }
    }

    /// The states that are asked for; all where none are. One that starts is running as far as
    /// rows know.
    fn states(&self) -> BTreeSet<JobState> {
        let all =
            || JobState::ALL.into_iter().filter(|state| *state != JobState::Starting).collect();
        let wanted: BTreeSet<JobState> = self.filter.states.iter().copied().collect();
        if wanted.is_empty() { all() } else { wanted }
    }

    /// What the index does not have.
    fn remaining(&self, binds: &mut Binds) -> Vec<String> {
        let mut rest = self.filter.clone();
        let lead = self.lead();
        match lead {
            Lead::Number => rest.number = None,
            Lead::Name => rest.name = None,
            Lead::User => rest.user = None,
            Lead::Team => rest.teams.clear(),
            Lead::State => {}
        }
        let mut terms = rest.terms_but_states(binds);
        if matches!(lead, Lead::Number | Lead::Name) {
            let states: Vec<&str> = rest.states.iter().map(|state| state.as_str()).collect();
            terms.extend(any_of("state", &states, binds));
        }
        terms
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lead {
    Number,
    Name,
    User,
    Team,
    State,
}

/// A column that has a value.
struct Term {
    column: &'static str,
    value: Value,
}

impl Term {
    fn text(column: &'static str, text: &str) -> Term {
        Term { column, value: Value::Text(Some(text.to_owned())) }
    }

    fn number(number: u64) -> Term {
        let mut key = JobId::new(number).values().0;
        Term { column: "id", value: key.swap_remove(0) }
    }

    fn marked(&self, binds: &mut Binds) -> String {
        match &self.value {
            Value::Text(Some(text)) => format!("{} = {}", self.column, mark_text(binds, text)),
            value => format!("{} = {}", self.column, binds.mark(value.clone())),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Position {
    Anywhere,
    /// Further elements of the same array.
    SameNumber(JobId),
    Before(JobId),
}

impl Position {
    /// Only what a statement uses is bound: PostgreSQL cannot tell the type of anything else.
    fn term(self, oldest: bool, binds: &mut Binds) -> Option<String> {
        let (before, after_it) = if oldest { (">", "<") } else { ("<", ">") };
        let mut bind =
            |after: JobId, column: usize| binds.mark(after.values().0.swap_remove(column));
        match self {
            Position::Anywhere => None,
            Position::SameNumber(after) => {
                let (id, element) = (bind(after, 0), bind(after, 1));
                Some(format!("id = {id} AND element {after_it} {element}"))
            }
            Position::Before(after) => Some(format!("id {before} {}", bind(after, 0))),
        }
    }
}

#[cfg(test)]
mod tests;
