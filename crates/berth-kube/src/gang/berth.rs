//! Berth's own marks, as labels or annotations.

use super::GangKind;
use super::draft::{Draft, Gang, first};
use super::owner;
use super::source::AnnotationSource;
use berth_model::Span;

const GANG: &str = "berth.dev/gang";
const SIZE: &str = "berth.dev/gang-size";
const MIN: &str = "berth.dev/gang-min";
const PRIORITY: &str = "berth.dev/priority";
const PREEMPTIBLE: &str = "berth.dev/preemptible";
const TIME_LIMIT: &str = "berth.dev/time-limit";

pub(super) fn read(source: &AnnotationSource, draft: &mut Draft) {
    draft.queue(source.either("berth.dev/queue"));
    if let Some(priority) = source.either(PRIORITY) {
        match priority.parse() {
            Ok(number) => first(&mut draft.priority, Some(number)),
            Err(_) => draft.class(Some(priority)),
        }
    }
    let preemptible = draft.flag(PREEMPTIBLE, source.either(PREEMPTIBLE));
    first(&mut draft.preemptible, preemptible);
    if let Some(limit) = source.either(TIME_LIMIT) {
        let span = match limit {
            "none" => Some(Span::UNLIMITED),
            limit => draft.span(TIME_LIMIT, Some(limit)),
        };
        match span {
            Some(Span::ZERO) => {
                draft.invalid(TIME_LIMIT, limit, "write a time such as 12h, or none")
            }
            span => first(&mut draft.time_limit, span),
        }
    }
    draft.required(source.either("berth.dev/topology-required"));
    draft.preferred(source.either("berth.dev/topology-preferred"));
    gang(source, draft);
}

fn gang(source: &AnnotationSource, draft: &mut Draft) {
    let (name, size, least) = (source.either(GANG), source.either(SIZE), source.either(MIN));
    if name.is_none() && size.is_none() && least.is_none() {
        return;
    }
    let members = draft.count(SIZE, size);
    let min = draft.count(MIN, least).or(members);
    if size.is_none() && least.is_none() {
        let what = "say with berth.dev/gang-size how many pods make the gang whole";
        return draft.invalid(GANG, name.unwrap_or_default(), what);
    }
    let key = match name {
        Some(name) => Some(source.key(GangKind::Berth, name)),
        // Without a name, the pods of one owner are meant.
        None => owner::any(source, draft).map(|gang| gang.key),
    };
    match key {
        Some(key) => draft.gang(Gang { key, members, min }),
        None => {
            let what = "nothing owns this pod, so name its gang with berth.dev/gang";
            draft.invalid(SIZE, size.or(least).unwrap_or_default(), what);
        }
    }
}
