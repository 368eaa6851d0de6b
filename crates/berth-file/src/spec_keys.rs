//! The keys that the spec of each kind of object takes.

use crate::documents;
use crate::job::KEYS;
use crate::object::Kind;
use crate::world::{policy, pools, queues};

impl Kind {
    /// The keys of its spec. The name of an object is in its metadata.
    pub fn keys(self) -> Vec<&'static str> {
        let keys: Vec<&str> = match self {
            Kind::Queue => queues::WISHED.to_vec(),
            Kind::Policy => policy::KINDS.iter().map(|(key, _)| *key).collect(),
            Kind::Pool => pools::POOL.to_vec(),
            Kind::Job => KEYS.iter().map(|key| key.name).collect(),
            Kind::Budget => documents::BUDGET.to_vec(),
        };
        // What is being bought and which version of a policy it is, is not for people to say.
        keys.into_iter().filter(|key| !["name", "claims", "version"].contains(key)).collect()
    }
}
