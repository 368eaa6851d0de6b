//! Where everything that counts up stands: one row, which every transaction moves on.

use crate::value::{Binds, Field, Reader, Value};
use sqlx::any::AnyRow;
use sqlx::error::BoxDynError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// Transactions so far. It tells whether one that is in doubt took place.
    pub commits: i64,
    pub last_seq: u64,
    pub cost_id: u64,
    pub audit_seq: u64,
    pub audit_hash: String,
}

impl Head {
    pub const SELECT: &str = "SELECT epoch, commits, last_seq, cost_id, audit_seq, audit_hash, \
                              holder FROM log WHERE one = 1";

    /// Nothing is changed where the epoch is another's.
    pub const ADVANCE: &str = "UPDATE log SET commits = $1, last_seq = $2, cost_id = $3, \
                               audit_seq = $4, audit_hash = $5 \
                               WHERE one = 1 AND epoch = $6 AND commits = $7";

    /// The epoch beside it.
    pub fn read(row: &AnyRow) -> Result<(i64, Head), BoxDynError> {
        let from = &mut Reader::new(row);
        let epoch = i64::read(from)?;
        let head = Head {
            commits: Field::read(from)?,
            last_seq: Field::read(from)?,
            cost_id: Field::read(from)?,
            audit_seq: Field::read(from)?,
            audit_hash: Field::read(from)?,
        };
        Ok((epoch, head))
    }

    /// The same after a transaction that adds nothing to any of them.
    pub fn next(&self) -> Head {
        Head { commits: self.commits + 1, ..self.clone() }
    }

    pub fn binds(&self, epoch: i64, commits: i64) -> Binds {
        let mut values = Vec::new();
        self.commits.write(&mut values);
        self.last_seq.write(&mut values);
        self.cost_id.write(&mut values);
        self.audit_seq.write(&mut values);
        self.audit_hash.write(&mut values);
        values.extend([epoch, commits].map(|number| Value::Int(Some(number))));
        let mut binds = Binds::default();
        binds.push_all(values);
        binds
    }
}
