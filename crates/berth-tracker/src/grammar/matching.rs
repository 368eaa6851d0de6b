//! Filters and sorts in memory, for entities of which a team has few.

use super::{Clause, Field, Kind, Op, Order, Value};
use std::cmp::Ordering;

/// An entity that Berth filters in memory.
pub trait Things {
    /// The text of an attribute, a tag or a param.
    fn text(&self, field: &Field) -> Option<&str>;
    fn number(&self, field: &Field) -> Option<f64>;
    /// Whether a metric of the entity fulfils the comparison.
    fn metric(&self, key: &str, fits: &dyn Fn(f64) -> bool) -> bool;
}

/// The tag that marks prompts.
const IS_PROMPT: &str = "mlflow.prompt.is_prompt";

/// Whether the entity fulfils all comparisons.
pub fn matches(thing: &impl Things, clauses: &[Clause]) -> bool {
    clauses.iter().all(|clause| is_met(thing, clause))
}

fn is_met(thing: &impl Things, clause: &Clause) -> bool {
    let Clause { field, op, value } = clause;
    match field.kind {
        Kind::Metric => {
            let Value::Number(wanted) = value else { return false };
            thing.metric(&field.key, &|found| compares(found, *op, *wanted))
        }
        Kind::Number => {
            let Value::Number(wanted) = value else { return false };
            thing.number(field).is_some_and(|found| compares(found, *op, *wanted))
        }
        Kind::Param | Kind::Tag | Kind::Text | Kind::Dataset => {
            let found = thing.text(field);
            if found.is_none() && field.kind == Kind::Tag && field.key == IS_PROMPT {
                let is = |word: &str| *value == Value::Text(word.to_owned());
                return (*op == Op::Eq && is("false")) || (*op == Op::Ne && is("true"));
            }
            is_text(found, *op, value)
        }
    }
}

fn is_text(found: Option<&str>, op: Op, value: &Value) -> bool {
    match (op, found, value) {
        (Op::IsNull, found, _) => found.is_none(),
        (Op::IsNotNull, found, _) => found.is_some(),
        (Op::Eq, Some(found), Value::Text(wanted)) => found == wanted,
        (Op::Ne, Some(found), Value::Text(wanted)) => found != wanted,
        (Op::Like, Some(found), Value::Text(wanted)) => like(found, wanted),
        (Op::ILike, Some(found), Value::Text(wanted)) => {
            like(&found.to_lowercase(), &wanted.to_lowercase())
        }
        (Op::In, Some(found), Value::List(wanted)) => wanted.iter().any(|one| one == found),
        (Op::NotIn, Some(found), Value::List(wanted)) => wanted.iter().all(|one| one != found),
        _ => false,
    }
}

/// NaN fulfils `!=` and no other comparison.
fn compares(found: f64, op: Op, wanted: f64) -> bool {
    match (op, found.partial_cmp(&wanted)) {
        (Op::Ne, order) => order != Some(Ordering::Equal),
        (_, None) => false,
        (Op::Eq, Some(order)) => order.is_eq(),
        (Op::Lt, Some(order)) => order.is_lt(),
        (Op::Le, Some(order)) => order.is_le(),
        (Op::Gt, Some(order)) => order.is_gt(),
        (Op::Ge, Some(order)) => order.is_ge(),
        _ => false,
    }
}

/// SQL's LIKE: `%` matches any text, `_` one character.
pub fn like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) =
        (text.chars().collect(), pattern.chars().collect());
    // The position of the last `%`, and how much text it has matched.
    let (mut at, mut of, mut star) = (0, 0, None);
    while at < text.len() {
        match pattern.get(of) {
            Some('%') => {
                star = Some((of, at));
                of += 1;
            }
            Some(c) if *c == '_' || *c == text[at] => {
                at += 1;
                of += 1;
            }
            _ => {
                let Some((back, taken)) = star else { return false };
                (of, at) = (back + 1, taken + 1);
                star = Some((back, taken + 1));
            }
        }
    }
    pattern[of..].iter().all(|c| *c == '%')
}

/// Compares by the keys of `order_by`. A missing value comes last in both directions.
pub fn sort_by<T: Things>(a: &T, b: &T, orders: &[Order]) -> Ordering {
    for Order { field, ascending } in orders {
        let order = match field.kind {
            Kind::Number => {
                missing_last(a.number(field), b.number(field), *ascending, f64::total_cmp)
            }
            Kind::Metric => Ordering::Equal,
            Kind::Param | Kind::Tag | Kind::Text | Kind::Dataset => {
                missing_last(a.text(field), b.text(field), *ascending, |a, b| a.cmp(b))
            }
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

fn missing_last<V>(
    a: Option<V>,
    b: Option<V>,
    ascending: bool,
    compare: impl Fn(&V, &V) -> Ordering,
) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) if ascending => compare(&a, &b),
        (Some(a), Some(b)) => compare(&b, &a),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}
