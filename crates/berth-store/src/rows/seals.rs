//! Seals: digests of the rows that give people rights. A change of such a row has its seal in the
//! audit row that tells of the change, so that a change behind the server's back can be found.

use super::identity::{IdentityRow, MemberRow, SessionRow, TeamRow, TokenRow, UserRow};
use crate::table::{Row, Table};
use crate::value::Value;
use ring::digest::{Context, SHA256};
use std::collections::BTreeMap;

/// A row by its table and key. The second part of the key of a token, a session or an identity is
/// its owner, because they go with their owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SealKey {
    pub table: String,
    pub one: String,
    pub two: String,
}

impl SealKey {
    /// As people read it.
    pub fn shown(&self) -> String {
        let SealKey { table, one, two } = self;
        match table.as_str() {
            "users" => format!("user {one}"),
            "members" => format!("{two} in team {one}"),
            "tokens" => format!("token {one} of {two}"),
            "sessions" => format!("session {one} of {two}"),
            "identities" => format!("identity {one} of {two}"),
            _ => format!("{table} {one} {two}"),
        }
    }
}

/// In an audit row: table, two parts of the key, and the digest; none where the row was deleted.
pub(crate) type Seal = (String, String, String, Option<String>);

/// The columns of a table that decide about rights, and those of its [`SealKey`]. What is not
/// named here may change without an audit row: when a token was used last, for example. A column
/// that is added later must be empty by default, because an empty one does not count.
struct Sealed {
    table: Table,
    key: &'static [&'static str],
    columns: &'static [&'static str],
}

const SEALED: &[Sealed] = &[
    Sealed { table: UserRow::TABLE, key: &["name"], columns: &["name", "role", "disabled"] },
    Sealed { table: MemberRow::TABLE, key: &["team", "user"], columns: &["team", "user", "role"] },
    Sealed {
        table: TokenRow::TABLE,
        key: &["id", "user"],
        columns: &["id", "user", "hash", "scopes", "expires", "revoked", "parent", "session"],
    },
    Sealed {
        table: SessionRow::TABLE,
        key: &["id", "user"],
        columns: &["id", "user", "hash", "scopes", "token", "expires", "key_hash"],
    },
    Sealed { table: IdentityRow::TABLE, key: &["id", "user"], columns: &["id", "user"] },
];

fn sealed(table: &str) -> Option<&'static Sealed> {
    SEALED.iter().find(|sealed| sealed.table.name == table)
}

impl Sealed {
    fn value<'v>(&self, row: &'v [Value], column: &str) -> Option<&'v Value> {
        row.get(self.table.columns.iter().position(|known| *known == column)?)
    }

    fn key_part(&self, row: &[Value], part: usize) -> String {
        let value = self.key.get(part).and_then(|column| self.value(row, column));
        value.and_then(Value::shown).unwrap_or_default()
    }

    fn key(&self, row: &[Value]) -> SealKey {
        SealKey {
            table: self.table.name.to_owned(),
            one: self.key_part(row, 0),
            two: self.key_part(row, 1),
        }
    }

    /// Every text is preceded by its length, so that no two rows have the same encoding.
    fn digest(&self, row: &[Value]) -> String {
        let mut context = Context::new(&SHA256);
        let mut add = |text: &str| {
            context.update(&(text.len() as u64).to_be_bytes());
            context.update(text.as_bytes());
        };
        add(self.table.name);
        for column in self.columns {
            if let Some(value) = self.value(row, column).and_then(Value::shown) {
                add(column);
                add(&value);
            }
        }
        hex::encode(context.finish().as_ref())
    }
}

/// The seal of a row; none for rows that give no rights.
pub(crate) fn of_row(table: &str, row: &[Value]) -> Option<Seal> {
    let sealed = sealed(table)?;
    let SealKey { table, one, two } = sealed.key(row);
    Some((table, one, two, Some(sealed.digest(row))))
}

/// The seals of all rows of a table.
pub(crate) fn of_rows<R: Row>(rows: &[R]) -> Vec<(SealKey, String)> {
    let seals = rows.iter().filter_map(|row| of_row(R::TABLE.name, &row.values()));
    seals
        .filter_map(|(table, one, two, digest)| Some((SealKey { table, one, two }, digest?)))
        .collect()
}

/// What an audit row says about a row that is deleted, by its key; none for rows that give no rights
/// and take none along.
pub(crate) fn of_deleted(table: &str, key: &[Value]) -> Option<Seal> {
    // A team gives no rights by itself, but its members go with it.
    let counts = sealed(table).is_some() || table == TeamRow::TABLE.name;
    let part = |at: usize| key.get(at).and_then(Value::shown).unwrap_or_default();
    counts.then(|| (table.to_owned(), part(0), part(1), None))
}

/// What the rights should be, as far as the audit log was followed.
#[derive(Debug, Default)]
pub(crate) struct Rights(BTreeMap<SealKey, String>);

impl Rights {
    pub fn follow(&mut self, seals: Vec<Seal>) {
        for (table, one, two, digest) in seals {
            match digest {
                Some(digest) => {
                    self.0.insert(SealKey { table, one, two }, digest);
                }
                None => self.remove(&table, &one, &two),
            }
        }
    }

    /// What depends on a row goes with it.
    fn remove(&mut self, table: &str, one: &str, two: &str) {
        self.0.retain(|key, _| match (table, key.table.as_str()) {
            ("users", "users") => key.one != one,
            ("users", "members" | "tokens" | "sessions" | "identities") => key.two != one,
            ("teams", "members") => key.one != one,
            ("members", "members") => key.one != one || key.two != two,
            ("tokens", "tokens") | ("sessions", "sessions") | ("identities", "identities") => {
                key.one != one
            }
            _ => true,
        });
    }

    /// Rows that are not what the audit log says, each with what is wrong.
    pub fn compare(&self, found: &BTreeMap<SealKey, String>) -> Vec<Unsealed> {
        let mut wrong = Vec::new();
        for (key, digest) in found {
            let why = match self.0.get(key) {
                Some(known) if known == digest => continue,
                Some(_) => "it was changed",
                None => "it was added",
            };
            wrong.push(Unsealed { key: key.clone(), digest: Some(digest.clone()), why });
        }
        let gone = self.0.keys().filter(|key| !found.contains_key(key));
        wrong.extend(gone.map(|key| Unsealed {
            key: key.clone(),
            digest: None,
            why: "it is gone",
        }));
        wrong
    }
}

/// A row that gives rights and that no audit row accounts for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unsealed {
    pub key: SealKey,
    pub digest: Option<String>,
    pub why: &'static str,
}
