//! Describes the savings of an early end.

use berth_engine::{Core, LiveJob};
use berth_ledger::cost::cumulative;
use berth_model::{JobKind, Micros, Milli, Span, Time};

/// For a job with a longer time limit, the savings would be meaningless.
const NO_END: Span = Span::days(365);

/// The usage of a running job from now to its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Saved {
    pub gpus: Milli,
    /// `None` without a time limit.
    pub left: Option<Span>,
    pub money: Option<Micros>,
}

impl Saved {
    pub fn of(core: &Core, live: &LiveJob, now: Time) -> Saved {
        let ends = core.state.progress(live.row.id).and_then(|progress| progress.ends_at_most);
        let left = ends.map(|ends| (ends - now).max(Span::ZERO));
        let left = left.filter(|left| *left < NO_END && live.row.kind != JobKind::Service);
        let price = live.price();
        let money = left.filter(|_| price > Micros::ZERO).map(|left| cumulative(price, left));
        Saved { gpus: live.row.gpus, left, money }
    }

    /// `; that freed 8 GPUs and saved up to 12.5 GPU-hours of its time limit, about $31.00`.
    pub fn words(self) -> String {
        let gpus = match self.gpus {
            Milli::ZERO => None,
            Milli::ONE => Some("freed 1 GPU".to_owned()),
            gpus => Some(format!("freed {gpus} GPUs")),
        };
        let saved = self.left.filter(|left| *left > Span::ZERO).map(|left| {
            let what = match self.gpus {
                Milli::ZERO => whole(left).to_string(),
                gpus => gpu_hours(gpus, left),
            };
            let money = self.money.filter(|money| *money > Micros::ZERO);
            let money = money.map(|money| format!(", about {}", money.money()));
            format!("saved up to {what} of its time limit{}", money.unwrap_or_default())
        });
        match (gpus, saved) {
            (Some(gpus), Some(saved)) => format!("; that {gpus} and {saved}"),
            (Some(one), None) | (None, Some(one)) => format!("; that {one}"),
            (None, None) => String::new(),
        }
    }
}

/// Drops fractions of a second.
fn whole(left: Span) -> Span {
    Span::secs(left.0 / 1_000)
}

/// Tenths of GPU-hours; for small amounts, minutes.
fn gpu_hours(gpus: Milli, left: Span) -> String {
    let gpu_ms = i128::from(gpus.0) * i128::from(left.0) / 1_000;
    let tenths = (gpu_ms + 180_000) / 360_000;
    match tenths {
        0..10 => format!("{} GPU-minutes", (gpu_ms / 60_000).max(1)),
        tenths if tenths % 10 == 0 => format!("{} GPU-hours", tenths / 10),
        tenths => format!("{}.{} GPU-hours", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(gpus: i64, left: Option<Span>, dollars: Option<i64>) -> String {
        Saved { gpus: Milli(gpus), left, money: dollars.map(Micros::dollars) }.words()
    }

    #[test]
    fn what_an_end_saves_is_told_as_far_as_it_is_known() {
        assert_eq!(
            words(8_000, Some(Span::mins(94)), Some(31)),
            "; that freed 8 GPUs and saved up to 12.5 GPU-hours of its time limit, about $31.00"
        );
        assert_eq!(
            words(1_000, Some(Span::mins(5)), None),
            "; that freed 1 GPU and saved up to 5 GPU-minutes of its time limit"
        );
        assert_eq!(words(500, None, None), "; that freed 0.5 GPUs");
        assert_eq!(words(0, Some(Span::hours(2)), None), "; that saved up to 2h of its time limit");
        assert_eq!(words(0, None, None), "");
    }
}
