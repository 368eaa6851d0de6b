//! The budget that the owner of a job has given it. Berth pauses a job that has spent it.

use crate::fault::Fault;
use berth_api::{Code, wire};
use berth_engine::{Core, clock};
use berth_model::{JobId, Micros, Span};

const MS_PER_HOUR: i128 = 3_600_000;

/// A paused job that has spent its own budget. `berth resume` does not help: it would be paused again at
/// once.
pub(super) struct Spent {
    id: JobId,
    cost: Micros,
    budget: Micros,
}

pub(super) fn spent(core: &Core, id: JobId) -> Option<Spent> {
    let job = core.jobs.get(&id).filter(|job| job.detail.held)?;
    let budget = job.budget()?;
    let cost = core.cost(job, clock::now());
    (cost >= budget).then_some(Spent { id, cost, budget })
}

impl Spent {
    pub(super) fn words(&self) -> String {
        format!("{}; {}", self.state(), self.next())
    }

    fn state(&self) -> String {
        let (cost, budget) = (self.cost.money(), self.budget.money());
        format!("paused by its own budget: it has cost {cost} of {budget}")
    }

    fn next(&self) -> String {
        format!("`berth clone {} --budget AMOUNT` submits it again with more", self.id)
    }

    /// The refusal to resume it.
    pub(super) fn fault(&self) -> Fault {
        let detail = format!("job {} is {}", self.id, self.state());
        Fault::new(Code::WrongState, detail).next(self.next())
    }
}

/// How long a job runs until it has cost its budget, at a price for an hour.
pub(super) fn stops_after(budget: Micros, price: Micros) -> Option<Span> {
    let hours = i128::from(budget.0) * MS_PER_HOUR;
    let ms = hours.checked_div(i128::from(price.0))?;
    i64::try_from(ms).ok().map(Span)
}

/// Whole minutes of what takes longer than a few, and else whole seconds.
fn short(span: Span) -> Span {
    let unit = if span >= Span::mins(10) { 60_000 } else { 1_000 };
    Span(span.0 / unit * unit)
}

/// What to say of a job that will be stopped before it is expected to end.
pub(super) fn warning(budget: Micros, after: Span, expected: Option<Span>) -> wire::Warning {
    let before = expected.map_or_else(
        || "it has no end of its own".to_owned(),
        |expected| format!("it is expected to run for {}", short(expected)),
    );
    let (budget, after) = (budget.money(), short(after));
    let message = format!(
        "its budget of {budget} is spent after {after}, and Berth then saves and stops it; {before}"
    );
    wire::Warning { key: "budget".to_owned(), message, line: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_stops_a_job_when_its_price_has_used_it_up() {
        let dollars = Micros::dollars;
        assert_eq!(stops_after(dollars(5), dollars(10)), Some(Span::mins(30)));
        assert_eq!(stops_after(dollars(5), Micros(0)), None, "it costs nothing");
        let after = Span(Span::mins(30).0 + 1_234);
        let said = warning(dollars(5), after, Some(Span::hours(3))).message;
        assert_eq!(
            said,
            "its budget of $5.00 is spent after 30m, and Berth then saves and stops it; it is \
             expected to run for 3h"
        );
    }
}
