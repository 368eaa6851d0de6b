//! Rules that end a job early, based on a metric.

use crate::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A rule on a metric of the job's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRule {
    pub metric: String,
    pub when: StopWhen,
    /// The minimum running time of the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopWhen {
    Above(Figure),
    Below(Figure),
    IsNan,
    /// This many evaluations in a row did not improve the best value.
    NotBetterFor {
        evaluations: u32,
        /// A smaller improvement does not count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Figure>,
        better: Better,
    },
    /// The best value so far is not better than this value.
    NotBetterThan {
        value: Figure,
        better: Better,
    },
}

/// Which values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    Lower,
    Higher,
}

/// A finite number, in the notation of its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figure(String);

impl Figure {
    /// `None` if the text is not a finite number.
    pub fn parse(text: &str) -> Option<Figure> {
        let finite = text.parse::<f64>().is_ok_and(f64::is_finite);
        // Rust also parses `inf` and `nan`.
        let plain = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        (finite && plain).then(|| Figure(text.to_owned()))
    }

    pub fn value(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Better {
    /// Guesses from the name of a metric: lower is better for losses and errors.
    pub fn of_name(metric: &str) -> Option<Better> {
        const LOW: [&str; 10] =
            ["loss", "error", "err", "perplexity", "ppl", "mse", "rmse", "mae", "wer", "cer"];
        let lower = metric.to_lowercase();
        let mut words = lower.split(|c: char| !c.is_alphanumeric());
        words.any(|word| LOW.contains(&word)).then_some(Better::Lower)
    }
}

impl fmt::Display for Better {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Better::Lower => "(lower is better)",
            Better::Higher => "(higher is better)",
        })
    }
}

impl StopRule {
    fn better(&self) -> Option<Better> {
        match &self.when {
            StopWhen::NotBetterFor { better, .. } | StopWhen::NotBetterThan { better, .. } => {
                Some(*better)
            }
            StopWhen::Above(_) | StopWhen::Below(_) | StopWhen::IsNan => None,
        }
    }
}

/// Formats the rule as in a job file.
impl fmt::Display for StopRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.metric.contains(char::is_whitespace) {
            true => write!(f, "\"{}\" ", self.metric)?,
            false => write!(f, "{} ", self.metric)?,
        }
        match &self.when {
            StopWhen::Above(value) => write!(f, "above {value}")?,
            StopWhen::Below(value) => write!(f, "below {value}")?,
            StopWhen::IsNan => f.write_str("is nan")?,
            StopWhen::NotBetterFor { evaluations, by, .. } => {
                f.write_str("not better ")?;
                if let Some(by) = by {
                    write!(f, "by {by} ")?;
                }
                let word = if *evaluations == 1 { "evaluation" } else { "evaluations" };
                write!(f, "for {evaluations} {word}")?;
            }
            StopWhen::NotBetterThan { value, .. } => write!(f, "not better than {value}")?,
        }
        if let Some(after) = self.after {
            write!(f, " after {after}")?;
        }
        match self.better() {
            Some(better) if Better::of_name(&self.metric) != Some(better) => write!(f, " {better}"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_losses_say_that_lower_is_better_and_others_say_nothing() {
        for name in ["loss", "val_loss", "eval/Loss", "test.rmse", "wer"] {
            assert_eq!(Better::of_name(name), Some(Better::Lower), "{name}");
        }
        for name in ["val_acc", "f1", "lossless", "terror", ""] {
            assert_eq!(Better::of_name(name), None, "{name}");
        }
    }

    #[test]
    fn only_finite_numbers_are_figures() {
        for text in ["0.3", "-1e-4", "10", "+2", ".5"] {
            assert_eq!(Figure::parse(text).map(|figure| figure.to_string()).as_deref(), Some(text));
        }
        for text in ["nan", "inf", "-inf", "1e999", "x", ""] {
            assert_eq!(Figure::parse(text), None, "{text}");
        }
    }
}
