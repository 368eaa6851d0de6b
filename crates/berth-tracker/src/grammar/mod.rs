//! The grammar of searches: comparisons joined by AND, and `order_by`. Like MLflow's, it has no OR,
//! no NOT, and parentheses only around a list. An error has the position and the expected tokens.

mod entity;
mod matching;
mod scan;

pub use entity::{Entity, Field, Kind};
pub use matching::{Things, like, matches, sort_by};

use crate::error::{Error, Result};
use scan::Scan;

/// The maximum number of comparisons in a filter.
const MOST_CLAUSES: usize = 50;
/// The maximum number of elements in a list.
const MOST_ELEMENTS: usize = 1000;
/// The maximum number of keys in `order_by`.
const MOST_ORDERS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Like,
    ILike,
    In,
    NotIn,
    IsNull,
    IsNotNull,
}

impl Op {
    pub const fn word(self) -> &'static str {
        match self {
            Op::Eq => "=",
            Op::Ne => "!=",
            Op::Lt => "<",
            Op::Le => "<=",
            Op::Gt => ">",
            Op::Ge => ">=",
            Op::Like => "LIKE",
            Op::ILike => "ILIKE",
            Op::In => "IN",
            Op::NotIn => "NOT IN",
            Op::IsNull => "IS NULL",
            Op::IsNotNull => "IS NOT NULL",
        }
    }
}

/// The right side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Number(f64),
    Text(String),
    List(Vec<String>),
    /// For `IS NULL` and `IS NOT NULL`.
    Nothing,
}

/// One comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    pub field: Field,
    pub op: Op,
    pub value: Value,
}

/// One key of `order_by`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub field: Field,
    pub ascending: bool,
}

/// Parses a filter. An empty filter has no comparisons.
pub fn filter(entity: Entity, text: &str) -> Result<Vec<Clause>> {
    let mut scan = Scan::new("filter", text)?;
    let mut clauses = Vec::new();
    if scan.is_over() {
        return Ok(clauses);
    }
    loop {
        clauses.push(clause(entity, &mut scan)?);
        if clauses.len() > MOST_CLAUSES {
            return Err(Error::invalid(format!(
                "The filter has more than {MOST_CLAUSES} comparisons"
            )));
        }
        if scan.is_over() {
            return Ok(clauses);
        }
        if scan.take(';') {
            if scan.is_over() {
                return Ok(clauses);
            }
            return Err(Error::invalid(format!(
                "Search filter contained multiple expression '{text}'. Provide AND-ed expression \
                 list."
            )));
        }
        if !scan.keyword("and") {
            return Err(scan.expected("AND or the end of the filter"));
        }
    }
}

fn clause(entity: Entity, scan: &mut Scan<'_>) -> Result<Clause> {
    let field = field(entity, scan)?;
    scan.space();
    let at_op = scan.position();
    let op = operator(scan)?;
    let valid = entity.ops(&field);
    if !valid.contains(&op) {
        let words: Vec<String> = valid.iter().map(|op| format!("'{}'", op.word())).collect();
        let valid = match words.is_empty() {
            true => format!("'{}' can be ordered by, but not filtered", field.key),
            false => format!("not one of {}", words.join(", ")),
        };
        let said = format!("Invalid comparator '{}' for '{}': {valid}", op.word(), field.key);
        return Err(scan.wrong(at_op, &said));
    }
    let value = value(scan, &field, op)?;
    Ok(Clause { field, op, value })
}

/// `[type.]key`. Dots after the first belong to the key.
fn field(entity: Entity, scan: &mut Scan<'_>) -> Result<Field> {
    scan.space();
    let position = scan.position();
    let Some(first) = scan.word()? else {
        return Err(scan.expected("an identifier such as metrics.loss, params.lr or tags.team"));
    };
    if !scan.dot() {
        return entity.field(None, &first.text).map_err(|why| scan.wrong(position, &why.message));
    }
    let next = "a key after the dot; put one with other characters in `backticks`";
    let mut key = scan.word()?.ok_or_else(|| scan.expected(next))?.text;
    while scan.dot() {
        key.push('.');
        key.push_str(&scan.word()?.ok_or_else(|| scan.expected(next))?.text);
    }
    entity.field(Some(&first.text), &key).map_err(|why| scan.wrong(position, &why.message))
}

fn operator(scan: &mut Scan<'_>) -> Result<Op> {
    match scan.sign(&["!=", "<>", "<=", ">=", "==", "=", "<", ">"]) {
        Some("!=" | "<>") => return Ok(Op::Ne),
        Some("<=") => return Ok(Op::Le),
        Some(">=") => return Ok(Op::Ge),
        Some("=" | "==") => return Ok(Op::Eq),
        Some("<") => return Ok(Op::Lt),
        Some(_) => return Ok(Op::Gt),
        None => {}
    }
    if scan.keyword("like") {
        return Ok(Op::Like);
    }
    if scan.keyword("ilike") {
        return Ok(Op::ILike);
    }
    if scan.keyword("in") {
        return Ok(Op::In);
    }
    if scan.keyword("not") {
        return if scan.keyword("in") { Ok(Op::NotIn) } else { Err(scan.expected("IN after NOT")) };
    }
    if scan.keyword("is") {
        let not = scan.keyword("not");
        return match (scan.keyword("null"), not) {
            (true, false) => Ok(Op::IsNull),
            (true, true) => Ok(Op::IsNotNull),
            (false, _) => Err(scan.expected("NULL or NOT NULL after IS")),
        };
    }
    Err(scan.expected("a comparison: =, !=, <, <=, >, >=, LIKE, ILIKE, IN, NOT IN or IS NULL"))
}

fn value(scan: &mut Scan<'_>, field: &Field, op: Op) -> Result<Value> {
    scan.space();
    match op {
        Op::IsNull | Op::IsNotNull => return Ok(Value::Nothing),
        Op::In | Op::NotIn => return list(scan).map(Value::List),
        _ => {}
    }
    let is_number = matches!(field.kind, Kind::Metric | Kind::Number);
    if is_number {
        if let Some(number) = scan.number() {
            return Ok(Value::Number(number));
        }
        let what = if field.kind == Kind::Metric { "metric" } else { "numeric attribute" };
        let said = format!("Expected numeric value type for {what}: {}", field.key);
        return Err(scan.wrong(scan.position(), &format!("{said}. Found {}", scan.found())));
    }
    if let Some(text) = scan.quoted(&['\'', '"'])? {
        return Ok(Value::Text(text));
    }
    let what = match field.kind {
        Kind::Param => "param",
        Kind::Tag => "tag",
        Kind::Dataset => "dataset attributes",
        Kind::Metric | Kind::Text | Kind::Number => "attributes",
    };
    let said = format!(
        "Expected a quoted string value for {what} (e.g. 'my-value'). Got value {}",
        scan.found()
    );
    Err(scan.wrong(scan.position(), &said))
}

fn list(scan: &mut Scan<'_>) -> Result<Vec<String>> {
    if !scan.take('(') {
        return Err(scan.expected("a list such as ('a', 'b')"));
    }
    let mut elements = Vec::new();
    loop {
        scan.space();
        let Some(text) = scan.quoted(&['\'', '"'])? else {
            return Err(scan.expected("a quoted string in the list"));
        };
        elements.push(text);
        if elements.len() > MOST_ELEMENTS {
            return Err(Error::invalid(format!("The list has more than {MOST_ELEMENTS} elements")));
        }
        let has_more = scan.take(',');
        if scan.take(')') {
            return Ok(elements);
        }
        if !has_more {
            return Err(scan.expected("a comma or a closing parenthesis"));
        }
    }
}

/// Parses `order_by`. A duplicate key is an error.
pub fn orders(entity: Entity, texts: &[String]) -> Result<Vec<Order>> {
    if texts.len() > MOST_ORDERS {
        return Err(Error::invalid(format!("`order_by` has more than {MOST_ORDERS} keys")));
    }
    let mut found: Vec<Order> = Vec::new();
    for text in texts {
        let one = order(entity, text)?;
        if found.iter().any(|before| before.field == one.field) {
            let all = texts.join(", ");
            return Err(Error::invalid(format!("`order_by` contains duplicate fields: {all}")));
        }
        found.push(one);
    }
    Ok(found)
}

fn order(entity: Entity, text: &str) -> Result<Order> {
    let mut scan = Scan::new("order_by", text)?;
    let field = field(entity, &mut scan)?;
    let only_attributes =
        matches!(entity, Entity::Experiment | Entity::RegisteredModel | Entity::ModelVersion);
    let is_attribute = matches!(field.kind, Kind::Text | Kind::Number);
    let unordered =
        entity == Entity::ModelVersion && matches!(&*field.key, "run_id" | "source_path");
    if field.kind == Kind::Dataset || (only_attributes && !is_attribute) || unordered {
        return Err(Error::invalid(format!("Invalid order by key '{text}' specified")));
    }
    let ascending = !scan.keyword("desc");
    if ascending {
        scan.keyword("asc");
    }
    if !scan.is_over() {
        let said = format!("Invalid order_by clause '{text}'. Could not be parsed");
        return Err(scan.wrong(scan.position(), &format!("{said}: expected ASC, DESC or the end")));
    }
    Ok(Order { field, ascending })
}

#[cfg(test)]
mod tests;
