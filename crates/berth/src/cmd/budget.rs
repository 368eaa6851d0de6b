//! `berth budget`.

use super::cost_more;
use crate::complete;
use crate::context::Context;
use crate::fail::{BadValue, Result};
use crate::show::{Cell, Look, Page, Table, Tone, words};
use berth_api::wire::{Budget as Row, BudgetAction, BudgetPeriod, BudgetSet, Items};
use berth_model::Micros;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Subcommand, Debug)]
pub enum Budget {
    /// List budgets and what is left of them
    List,
    /// Set the budget of a queue
    Set(Set),
    /// Show how the budget of a queue burns down and when it will be spent
    Forecast {
        #[arg(value_name = "QUEUE", add = complete::queues())]
        queue: String,
    },
    /// Delete the budget of a queue
    Rm {
        #[arg(value_name = "QUEUE", add = complete::queues())]
        queue: String,
    },
}

#[derive(Args, Debug)]
pub struct Set {
    #[arg(value_name = "QUEUE", add = complete::queues())]
    queue: String,
    /// Dollars, such as 5000
    #[arg(value_name = "LIMIT", value_parser = dollars, allow_negative_numbers = true)]
    limit: Micros,
    /// The period of the budget
    #[arg(long, value_enum, default_value = "month")]
    per: Period,
    /// What happens when it is spent
    #[arg(long, value_enum, default_value = "notify")]
    action: Action,
    /// Alert when this share is spent, such as 80%; give it again for several
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_values = ["80%", "100%"])]
    at: Vec<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Period {
    Day,
    Week,
    Month,
    Once,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Alert, and continue
    Notify,
    /// Start no new jobs
    Block,
    /// Let the jobs of other queues go first
    LowerPriority,
    /// Checkpoint and stop running jobs
    Pause,
}

/// A dash before the amount would otherwise be read as a flag.
fn dollars(text: &str) -> Result<Micros, BadValue> {
    match text.parse::<Micros>() {
        Ok(limit) if limit.0 >= 0 && !text.starts_with('-') => Ok(limit),
        _ => Err(BadValue::new(
            "expected dollars from 0 on, such as 5000; `berth budget rm QUEUE` removes a budget",
        )),
    }
}

/// Thousandths of the whole.
fn percent(text: &str) -> Result<i64, BadValue> {
    let digits = text.strip_suffix('%').unwrap_or(text);
    match digits.parse::<i64>() {
        Ok(percent) if (1..=1_000).contains(&percent) => Ok(percent * 10),
        _ => Err(BadValue::new("expected percent from 1 to 1000, such as 80%")),
    }
}

pub async fn run(context: &Context, args: &Budget) -> Result<()> {
    let client = context.client()?;
    match args {
        Budget::List => {
            let names = |all: &Items<Row>| all.items.iter().map(|row| row.queue.clone()).collect();
            let text =
                |all: &Items<Row>, look: &Look| table(&all.items, look).or(look, "No budgets.");
            context.show(&Page::new(client.budgets().await?, text, names))
        }
        Budget::Set(set) => {
            let body = BudgetSet {
                limit_micros: set.limit.0,
                per: set.per.into(),
                action: set.action.into(),
                thresholds_milli: set.at.clone(),
            };
            let text = |row: &Row, look: &Look| table(std::slice::from_ref(row), look).text(look);
            let row = client.set_budget(&set.queue, &body).await?;
            context.show(&Page::new(row, text, |row| vec![row.queue.clone()]))
        }
        Budget::Forecast { queue } => cost_more::forecast(context, queue).await,
        Budget::Rm { queue } => {
            client.delete_budget(queue).await?;
            context.gone(queue, &format!("Deleted the budget of {queue}"))
        }
    }
}

impl From<Period> for BudgetPeriod {
    fn from(period: Period) -> BudgetPeriod {
        match period {
            Period::Day => BudgetPeriod::Day,
            Period::Week => BudgetPeriod::Week,
            Period::Month => BudgetPeriod::Month,
            Period::Once => BudgetPeriod::Once,
        }
    }
}

impl From<Action> for BudgetAction {
    fn from(action: Action) -> BudgetAction {
        match action {
            Action::Notify => BudgetAction::Notify,
            Action::Block => BudgetAction::Block,
            Action::LowerPriority => BudgetAction::LowerPriority,
            Action::Pause => BudgetAction::Pause,
        }
    }
}

fn period_word(period: BudgetPeriod) -> &'static str {
    match period {
        BudgetPeriod::Day => "day",
        BudgetPeriod::Week => "week",
        BudgetPeriod::Month => "month",
        BudgetPeriod::Once => "once",
    }
}

fn action_word(action: BudgetAction) -> &'static str {
    match action {
        BudgetAction::Notify => "notify",
        BudgetAction::Block => "block",
        BudgetAction::LowerPriority => "lower-priority",
        BudgetAction::Pause => "pause",
    }
}

fn table(budgets: &[Row], look: &Look) -> Table {
    let titles = [
        "QUEUE",
        ">LIMIT",
        "PER",
        ">SPENT",
        ">PART",
        ">LEFT",
        ">FORECAST",
        "ACTION",
        "ALERTS AT",
        "UNTIL",
    ];
    let mut table = Table::new(&titles);
    for budget in budgets {
        let part = i128::from(budget.spent_micros) * 100 / i128::from(budget.limit_micros.max(1));
        let tone = if part >= 100 { Tone::Bad } else { Tone::Plain };
        let alerts = budget.thresholds_milli.iter().map(|milli| format!("{}%", milli / 10));
        table.row(vec![
            budget.queue.as_str().into(),
            words::money(budget.limit_micros).into(),
            period_word(budget.per).into(),
            words::money(budget.spent_micros).into(),
            Cell::toned(format!("{part}%"), tone),
            words::money(budget.limit_micros - budget.spent_micros).into(),
            words::maybe_money(budget.forecast_micros).into(),
            action_word(budget.action).into(),
            alerts.collect::<Vec<_>>().join(",").into(),
            look.maybe_at(budget.period_to).into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_says_what_is_left_and_what_comes() {
        let row = Row {
            queue: "nlp".into(),
            limit_micros: 45_000_000_000,
            spent_micros: 31_420_000_000,
            per: BudgetPeriod::Month,
            action: BudgetAction::LowerPriority,
            thresholds_milli: vec![800, 1_000],
            period_from: None,
            period_to: Some("2026-11-30T23:00:00Z".parse().unwrap()),
            forecast_micros: Some(47_900_000_000),
        };
        let text = table(&[row], &Look::fixed()).text(&Look::fixed());
        let line = text.lines().nth(1).unwrap();
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>().join(" "),
            "nlp $45,000.00 month $31,420.00 69% $13,580.00 $47,900.00 lower-priority 80%,100% \
             2026-12-01 00:00"
        );
    }

    #[test]
    fn a_budget_is_not_negative() {
        assert_eq!(dollars("12.50"), Ok(Micros(12_500_000)));
        let said = dollars("-5").unwrap_err().to_string();
        assert!(said.contains("berth budget rm QUEUE"), "{said}");
    }

    #[test]
    fn thresholds_are_percent() {
        assert_eq!([percent("80%"), percent("5")], [Ok(800), Ok(50)]);
        assert!(["0", "x", "-3%", "1001%"].into_iter().all(|text| percent(text).is_err()));
    }
}
