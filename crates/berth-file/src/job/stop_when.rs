//! Rules by which a metric ends a job: `val_loss not better for 5 evaluations`.

use super::StopRule;
use super::values::{any_text, several, span_text};
use crate::error::{Error, Position, Result, did_you_mean, or_list};
use crate::out::Out;
use crate::tree::{Node, Value};
use berth_model::Span;
use berth_model::run::{Better, Figure, StopWhen};

/// The maximum number of rules of a job.
pub(super) const MOST: usize = 10;
/// The maximum length of a metric's key.
const LONGEST_METRIC: usize = 250;
const MOST_EVALUATIONS: u32 = 100_000;
const EXAMPLE: &str = "a rule such as `val_loss not better for 5 evaluations`";
const WHEN: [&str; 4] = ["above", "below", "is", "not"];

pub(super) fn read(node: &Node) -> Result<Vec<StopRule>> {
    match &node.value {
        Value::List(items) if items.is_empty() => {
            Err(Error::expected(node.at, "an empty list", EXAMPLE))
        }
        _ => several(node, rule),
    }
}

pub(super) fn write(rules: &[StopRule]) -> Out {
    match rules {
        [rule] => Out::Text(rule.to_string()),
        rules => Out::list(rules, |rule| Out::Text(rule.to_string())),
    }
}

fn rule(node: &Node) -> Result<StopRule> {
    let text = match &node.value {
        Value::Scalar { .. } => any_text(node)?,
        _ => return Err(Error::expected(node.at, &node.found(), EXAMPLE)),
    };
    let mut words = Words::of(node, &text);
    let metric = metric(&mut words)?;
    let mut better = words.direction()?;
    let when = when(&mut words)?;
    let after = after(&mut words)?;
    if better.is_none() {
        better = words.direction()?;
    }
    if let Some(word) = words.next() {
        return Err(words.expected(&word, "the end of the rule"));
    }
    let when = match when {
        Half::Whole(when) => when,
        Half::NotBetterFor { evaluations, by } => {
            let better = direction_of(better, &metric, node.at)?;
            StopWhen::NotBetterFor { evaluations, by, better }
        }
        Half::NotBetterThan { value } => {
            StopWhen::NotBetterThan { value, better: direction_of(better, &metric, node.at)? }
        }
    };
    Ok(StopRule { metric, when, after })
}

/// A wrong guess would end jobs that improve.
fn direction_of(said: Option<Better>, metric: &str, at: Position) -> Result<Better> {
    said.or_else(|| Better::of_name(metric)).ok_or_else(|| {
        let message = format!(
            "is a higher or lower `{metric}` better? Add `(higher is better)` or `(lower is \
             better)` at the end"
        );
        Error::new(at, message)
    })
}

fn metric(words: &mut Words<'_>) -> Result<String> {
    let Some(word) = words.next() else { return Err(words.missing(EXAMPLE)) };
    if word.text.chars().count() > LONGEST_METRIC {
        let expected = format!("a metric with at most {LONGEST_METRIC} characters");
        return Err(words.expected(&word, &expected));
    }
    match word.text.strip_prefix("metrics.") {
        Some(name) if !name.is_empty() => {
            Err(words.expected(&word, &format!("the metric's own name: `{name}`")))
        }
        _ if word.text.contains('"') || word.text.is_empty() => {
            Err(words.expected(&word, "the name of a metric"))
        }
        _ => Ok(word.text.to_owned()),
    }
}

/// A condition, before the parser knows which values are better.
enum Half {
    Whole(StopWhen),
    NotBetterFor { evaluations: u32, by: Option<Figure> },
    NotBetterThan { value: Figure },
}

fn when(words: &mut Words<'_>) -> Result<Half> {
    let expected = "above, below, is nan, not better for or not better than";
    let Some(word) = words.next() else { return Err(words.missing(expected)) };
    match word.text {
        "above" => Ok(Half::Whole(StopWhen::Above(words.figure()?))),
        "below" => Ok(Half::Whole(StopWhen::Below(words.figure()?))),
        "is" => {
            words.take(&["nan", "NaN", "NAN"])?;
            Ok(Half::Whole(StopWhen::IsNan))
        }
        "not" => {
            words.take(&["better"])?;
            not_better(words)
        }
        other => {
            let hint = did_you_mean(other, WHEN);
            Err(words.expected(&word, &format!("{expected}{hint}")))
        }
    }
}

fn not_better(words: &mut Words<'_>) -> Result<Half> {
    match words.take(&["for", "than", "by"])? {
        "than" => Ok(Half::NotBetterThan { value: words.figure()? }),
        "by" => {
            let by = words.figure()?;
            if by.value() < 0.0 {
                return Err(Error::new(words.at, "an improvement cannot be negative"));
            }
            words.take(&["for"])?;
            Ok(Half::NotBetterFor { evaluations: evaluations(words)?, by: Some(by) })
        }
        _ => Ok(Half::NotBetterFor { evaluations: evaluations(words)?, by: None }),
    }
}

fn evaluations(words: &mut Words<'_>) -> Result<u32> {
    let expected = format!("a whole number from 1 to {MOST_EVALUATIONS}");
    let Some(word) = words.next() else { return Err(words.missing(&expected)) };
    let count = word.text.parse().ok().filter(|count| (1..=MOST_EVALUATIONS).contains(count));
    let count = count.ok_or_else(|| words.expected(&word, &expected))?;
    words.take(&["evaluations", "evaluation"])?;
    Ok(count)
}

fn after(words: &mut Words<'_>) -> Result<Option<Span>> {
    if words.peek().is_none_or(|word| word.text != "after") {
        return Ok(None);
    }
    words.next();
    let expected = "a length of time such as 45m, 2h or 1d";
    let Some(word) = words.next() else { return Err(words.missing(expected)) };
    let span = span_text(word.text).filter(|span| *span > Span::ZERO && *span <= Span::days(3_650));
    span.map(Some).ok_or_else(|| words.expected(&word, expected))
}

#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    /// The position in characters from the start of the rule.
    place: usize,
}

/// Splits a rule into words. Double quotes make one word.
struct Words<'a> {
    all: Vec<Word<'a>>,
    next: usize,
    at: Position,
    /// The offset of the rule's first character: 1 after a quote.
    shift: usize,
    length: usize,
}

impl<'a> Words<'a> {
    fn of(node: &Node, text: &'a str) -> Words<'a> {
        let plain = matches!(node.value, Value::Scalar { plain: true, .. });
        let mut all = Vec::new();
        let mut rest = text;
        loop {
            rest = rest.trim_start();
            let start = text.len() - rest.len();
            let quoted = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let (word, place, after) = match quoted {
                Some((word, after)) => (word, start + 1, after),
                None if rest.is_empty() => break,
                None => {
                    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    (&rest[..end], start, &rest[end..])
                }
            };
            all.push(Word { text: word, place: text[..place].chars().count() });
            rest = after;
        }
        let (shift, length) = (usize::from(!plain), text.chars().count());
        Words { all, next: 0, at: node.at, shift, length }
    }

    fn peek(&self) -> Option<Word<'a>> {
        self.all.get(self.next).copied()
    }

    fn next(&mut self) -> Option<Word<'a>> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }

    /// Expects one of these words.
    fn take(&mut self, wanted: &[&'static str]) -> Result<&'a str> {
        let expected = || match wanted {
            ["nan", ..] => "nan".to_owned(),
            ["evaluations", ..] => "evaluations".to_owned(),
            words => or_list(words.iter().copied()),
        };
        let Some(word) = self.next() else { return Err(self.missing(&expected())) };
        match wanted.contains(&word.text) {
            true => Ok(word.text),
            false => {
                let hint = did_you_mean(word.text, wanted.iter().copied());
                Err(self.expected(&word, &format!("{}{hint}", expected())))
            }
        }
    }

    fn figure(&mut self) -> Result<Figure> {
        let expected = "a number such as 0.3 or 1e-4";
        let Some(word) = self.next() else { return Err(self.missing(expected)) };
        Figure::parse(word.text).ok_or_else(|| self.expected(&word, expected))
    }

    /// `(higher is better)`, or `max`.
    fn direction(&mut self) -> Result<Option<Better>> {
        let Some(word) = self.peek() else { return Ok(None) };
        let better = match word.text {
            "max" | "(max)" => Better::Higher,
            "min" | "(min)" => Better::Lower,
            first if first.starts_with('(') => {
                self.next();
                let better = match first {
                    "(higher" => Better::Higher,
                    "(lower" => Better::Lower,
                    _ => {
                        return Err(self.expected(&word, "(higher is better) or (lower is better)"));
                    }
                };
                self.take(&["is"])?;
                self.take(&["better)"])?;
                return Ok(Some(better));
            }
            _ => return Ok(None),
        };
        self.next();
        Ok(Some(better))
    }

    fn position(&self, place: usize) -> Position {
        match self.at.line {
            0 => self.at,
            line => Position { line, column: self.at.column + self.shift + place },
        }
    }

    fn expected(&self, word: &Word<'_>, expected: &str) -> Error {
        Error::expected(self.position(word.place), &format!("`{}`", word.text), expected)
    }

    fn missing(&self, expected: &str) -> Error {
        Error::expected(self.position(self.length), "the end of the rule", expected)
    }
}
