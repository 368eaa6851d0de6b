//! Searching for runs: turns a filter and an order into one statement. Integers are literals in the
//! statement; every text is a bound parameter.

use crate::database::Backend;
use crate::error::failed;
use crate::packed;
use crate::read::Reader;
use crate::rows::{Bind, arguments, numbers};
use berth_tracker::grammar::{Clause, Field, Kind, Op, Order, Value};
use berth_tracker::{Error, RunQuery, View, value};
use sqlx::{AnyPool, AssertSqlSafe, Row, query_with};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A statement under construction.
#[derive(Default)]
struct Sql {
    /// The part before WHERE, with its bound parameters.
    from: String,
    from_binds: Vec<Bind>,
    wheres: Vec<String>,
    where_binds: Vec<Bind>,
    orders: Vec<String>,
    order_binds: Vec<Bind>,
}

impl Reader<'_> {
    pub async fn search(&self, query: &RunQuery) -> Result<Vec<i64>, Error> {
        self.searched(query).await.map_err(|error| failed("search runs", &error))
    }

    async fn searched(&self, query: &RunQuery) -> sqlx::Result<Vec<i64>> {
        let keys = self.keys(query).await?;
        let numbers_of = |key: &str| keys.get(key).cloned().unwrap_or_default();
        let is_absent = |clause: &Clause| {
            clause.field.kind == Kind::Metric && numbers_of(&clause.field.key).is_empty()
        };
        // No run has that metric.
        if query.clauses.iter().any(is_absent) {
            return Ok(Vec::new());
        }
        // Runs without the metric of the first key come last. So first search the runs that have it: an index
        // returns them in order.
        let by_metric = query.orders.first().filter(|order| order.field.kind == Kind::Metric);
        if let Some(order) = by_metric {
            let own = numbers_of(&order.field.key);
            if !own.is_empty() {
                let sql = statement(self.backend, query, &numbers_of, Some(&own));
                let found = run(self.pool, self.backend, sql, query).await?;
                if found.len() == query.limit {
                    return Ok(found);
                }
            }
        }
        let sql = statement(self.backend, query, &numbers_of, None);
        run(self.pool, self.backend, sql, query).await
    }

    /// The numbers of the metrics that a search names, in its experiments.
    async fn keys(&self, query: &RunQuery) -> sqlx::Result<BTreeMap<String, Vec<i64>>> {
        let of_clauses = query.clauses.iter().map(|clause| &clause.field);
        let of_orders = query.orders.iter().map(|order| &order.field);
        let fields = of_clauses.chain(of_orders).filter(|field| field.kind == Kind::Metric);
        let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        for Field { key, .. } in fields {
            if found.contains_key(key) {
                continue;
            }
            let sql = format!(
                "SELECT no FROM metric_keys WHERE name = ? AND experiment IN ({}) ORDER BY no",
                numbers(&query.experiments)
            );
            let sql = AssertSqlSafe(self.backend.sql_of(sql));
            let rows = query_with(sql, arguments(vec![Bind::from(key)]));
            let rows = rows.persistent(false).fetch_all(self.pool).await?;
            let numbers = rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<_>>()?;
            found.insert(key.clone(), numbers);
        }
        Ok(found)
    }
}

async fn run(
    pool: &AnyPool,
    backend: Backend,
    sql: Sql,
    query: &RunQuery,
) -> sqlx::Result<Vec<i64>> {
    let text = format!(
        "SELECT {} FROM (SELECT r.no FROM {} WHERE {} ORDER BY {} LIMIT {} OFFSET {}) AS found",
        packed::list(backend, "no"),
        sql.from,
        sql.wheres.join(" AND "),
        sql.orders.join(", "),
        query.limit,
        query.offset
    );
    let mut binds = sql.from_binds;
    binds.extend(sql.where_binds);
    binds.extend(sql.order_binds);
    let statement = AssertSqlSafe(backend.sql_of(text));
    let row = query_with(statement, arguments(binds)).persistent(false).fetch_one(pool).await?;
    packed::read(&row, 0)
}

/// Builds the statement of a search. With the numbers of the first key's metric, it finds only runs that
/// have the metric, and scans the index of its values.
fn statement(
    backend: Backend,
    query: &RunQuery,
    keys: &dyn Fn(&str) -> Vec<i64>,
    first: Option<&[i64]>,
) -> Sql {
    let mut sql = Sql::default();
    let experiments = numbers(&query.experiments);
    match first {
        // Without CROSS JOIN, SQLite would scan the runs first.
        Some(_) if backend == Backend::Sqlite => {
            sql.from.push_str("latest o0 CROSS JOIN runs r ON r.no = o0.run");
        }
        Some(_) => sql.from.push_str("latest o0 JOIN runs r ON r.no = o0.run"),
        None => sql.from.push_str("runs r"),
    }
    if let Some(own) = first {
        sql.wheres.push(format!("o0.{}", is_in("key", own)));
        sql.wheres.push(format!("o0.value < {}", value::NAN));
    }
    sql.wheres.push(format!("r.experiment IN ({experiments})"));
    match query.view {
        View::Active => sql.wheres.push("r.deleted = 0".to_owned()),
        View::Deleted => sql.wheres.push("r.deleted = 1".to_owned()),
        View::All => {}
    }
    let of_order = query.orders.first().filter(|_| first.is_some()).map(|order| &order.field);
    for (index, clause) in query.clauses.iter().enumerate() {
        match &clause.value {
            // Joined again, SQLite would begin with it, and sort all runs that it finds.
            Value::Number(wanted) if of_order == Some(&clause.field) => {
                sql.wheres.push(metric("o0.value", clause.op, *wanted));
            }
            _ => filter(&mut sql, backend, index, clause, keys),
        }
    }
    for (index, order) in query.orders.iter().enumerate() {
        let joined = index == 0 && first.is_some();
        by(&mut sql, index, order, keys, joined);
    }
    let has = |key: &str| query.orders.iter().any(|order| order.field.key == key);
    if !has("start_time") {
        sql.orders.push("r.start_time DESC".to_owned());
    }
    if !has("run_id") {
        sql.orders.push("r.id".to_owned());
    }
    sql
}

fn is_in(column: &str, found: &[i64]) -> String {
    match found {
        [one] => format!("{column} = {one}"),
        several => format!("{column} IN ({})", numbers(several)),
    }
}

fn filter(
    sql: &mut Sql,
    backend: Backend,
    index: usize,
    clause: &Clause,
    keys: &dyn Fn(&str) -> Vec<i64>,
) {
    let Clause { field, op, value } = clause;
    match field.kind {
        Kind::Metric => {
            let Value::Number(wanted) = value else { return };
            let own = is_in("key", &keys(&field.key));
            let _ =
                write!(sql.from, " JOIN latest f{index} ON f{index}.run = r.no AND f{index}.{own}");
            sql.wheres.push(metric(&format!("f{index}.value"), *op, *wanted));
        }
        Kind::Param | Kind::Tag => {
            let table = if field.kind == Kind::Param { "params" } else { "tags" };
            let there = format!("SELECT 1 FROM {table} WHERE run = r.no AND key = ?");
            match op {
                Op::IsNull => sql.wheres.push(format!("NOT EXISTS ({there})")),
                Op::IsNotNull => sql.wheres.push(format!("EXISTS ({there})")),
                _ => {
                    let (compared, binds) = text(backend, "value", *op, value);
                    sql.wheres.push(format!("EXISTS ({there} AND {compared})"));
                    sql.where_binds.push(Bind::from(&field.key));
                    sql.where_binds.extend(binds);
                    return;
                }
            }
            sql.where_binds.push(Bind::from(&field.key));
        }
        Kind::Dataset => {
            let column = match field.key.as_str() {
                "context" => "i.context",
                "digest" => "d.digest",
                _ => "d.name",
            };
            let (compared, binds) = text(backend, column, *op, value);
            sql.wheres.push(format!(
                "EXISTS (SELECT 1 FROM run_datasets i JOIN datasets d ON d.no = i.dataset \
                 WHERE i.run = r.no AND {compared})"
            ));
            sql.where_binds.extend(binds);
        }
        Kind::Text => {
            let (compared, binds) = text(backend, attribute(field), *op, value);
            sql.wheres.push(compared);
            sql.where_binds.extend(binds);
        }
        Kind::Number => {
            let Value::Number(wanted) = value else { return };
            sql.wheres.push(format!("{} {} ?", attribute(field), sign(*op)));
            sql.where_binds.push(Bind::Number(*wanted));
        }
    }
}

fn sign(op: Op) -> &'static str {
    match op {
        Op::Ne => "<>",
        op => op.word(),
    }
}

/// NaN fulfils `!=` and no other comparison.
fn metric(column: &str, op: Op, wanted: f64) -> String {
    let kept = value::encode(wanted);
    let compared = format!("{column} {} {kept}", sign(op));
    match op {
        Op::Gt | Op::Ge => format!("{compared} AND {column} < {}", value::NAN),
        _ => compared,
    }
}

fn text(backend: Backend, column: &str, op: Op, value: &Value) -> (String, Vec<Bind>) {
    let wanted = match value {
        Value::List(several) => {
            let places = vec!["?"; several.len()].join(",");
            let not = if op == Op::NotIn { "NOT " } else { "" };
            let binds = several.iter().map(Bind::from).collect();
            return (format!("{column} {not}IN ({places})"), binds);
        }
        Value::Text(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Nothing => String::new(),
    };
    let compared = match (op, backend) {
        (Op::Like, Backend::Sqlite) => format!("{column} LIKE ?"),
        // A backslash is not an escape character.
        (Op::Like, Backend::Postgres) => format!("{column} LIKE ? ESCAPE ''"),
        (Op::ILike, Backend::Sqlite) => format!("LOWER({column}) LIKE LOWER(?)"),
        (Op::ILike, Backend::Postgres) => format!("{column} ILIKE ? ESCAPE ''"),
        (op, _) => format!("{column} {} ?", sign(op)),
    };
    (compared, vec![Bind::Text(wanted)])
}

fn attribute(field: &Field) -> &'static str {
    match field.key.as_str() {
        "run_id" => "r.id",
        "run_name" => "r.name",
        "user_id" => "r.user_id",
        "status" => "r.status",
        "start_time" => "r.start_time",
        "end_time" => "r.end_time",
        // The location of artifacts derives from the experiment.
        _ => {
            "('mlflow-artifacts:/' || (SELECT e.scope FROM docs e WHERE e.kind = 1 \
             AND e.sub = r.experiment) || '/' || r.experiment || '/' || r.id || '/artifacts')"
        }
    }
}

/// In both directions, NaN comes after the numbers, and missing values come last.
fn by(sql: &mut Sql, index: usize, order: &Order, keys: &dyn Fn(&str) -> Vec<i64>, joined: bool) {
    let direction = if order.ascending { "" } else { " DESC" };
    match order.field.kind {
        Kind::Metric if joined => sql.orders.push(format!("o0.value{direction}")),
        Kind::Metric => {
            let own = keys(&order.field.key);
            if own.is_empty() {
                return;
            }
            let own = is_in("key", &own);
            let _ = write!(
                sql.from,
                " LEFT JOIN latest o{index} ON o{index}.run = r.no AND o{index}.{own}"
            );
            sql.orders.push(format!(
                "CASE WHEN o{index}.value IS NULL THEN 2 WHEN o{index}.value = {} THEN 1 ELSE 0 END",
                value::NAN
            ));
            sql.orders.push(format!("o{index}.value{direction}"));
        }
        Kind::Param | Kind::Tag => {
            let table = if order.field.kind == Kind::Param { "params" } else { "tags" };
            let _ = write!(
                sql.from,
                " LEFT JOIN {table} o{index} ON o{index}.run = r.no AND o{index}.key = ?"
            );
            sql.from_binds.push(Bind::from(&order.field.key));
            let missing = format!("CASE WHEN o{index}.value IS NULL THEN 1 ELSE 0 END");
            sql.orders.push(missing);
            sql.orders.push(format!("o{index}.value{direction}"));
        }
        Kind::Text | Kind::Number | Kind::Dataset => {
            let column = attribute(&order.field);
            sql.orders.push(format!("CASE WHEN {column} IS NULL THEN 1 ELSE 0 END"));
            sql.orders.push(format!("{column}{direction}"));
        }
    }
}
