//! Berth's own marks, as labels or annotations.

use super::Kind;
use super::draft::{Draft, Gang, first};
use super::owner;
use super::said::Said;

const GANG: &str = "berth.dev/gang";
const SIZE: &str = "berth.dev/gang-size";
const MIN: &str = "berth.dev/gang-min";
const PRIORITY: &str = "berth.dev/priority";
const PREEMPTIBLE: &str = "berth.dev/preemptible";

pub(super) fn read(said: &Said, draft: &mut Draft) {
    draft.queue(said.either("berth.dev/queue"));
    if let Some(priority) = said.either(PRIORITY) {
        match priority.parse() {
            Ok(number) => first(&mut draft.priority, Some(number)),
            Err(_) => draft.class(Some(priority)),
        }
    }
    let preemptible = draft.flag(PREEMPTIBLE, said.either(PREEMPTIBLE));
    first(&mut draft.preemptible, preemptible);
    draft.required(said.either("berth.dev/topology-required"));
    draft.preferred(said.either("berth.dev/topology-preferred"));
    gang(said, draft);
}

fn gang(said: &Said, draft: &mut Draft) {
    let (name, size, least) = (said.either(GANG), said.either(SIZE), said.either(MIN));
    if name.is_none() && size.is_none() && least.is_none() {
        return;
    }
    let members = draft.count(SIZE, size);
    let min = draft.count(MIN, least).or(members);
    if size.is_none() && least.is_none() {
        let what = "say with berth.dev/gang-size how many pods make the gang whole";
        return draft.complain(GANG, name.unwrap_or_default(), what);
    }
    let key = match name {
        Some(name) => Some(said.key(Kind::Berth, name)),
        // Without a name, the pods of one owner are meant.
        None => owner::any(said, draft).map(|gang| gang.key),
    };
    match key {
        Some(key) => draft.gang(Gang { key, members, min }),
        None => {
            let what = "nothing owns this pod, so name its gang with berth.dev/gang";
            draft.complain(SIZE, size.or(least).unwrap_or_default(), what);
        }
    }
}
