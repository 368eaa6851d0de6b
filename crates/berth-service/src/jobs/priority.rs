//! How high a priority one may give a job. A class that reaches across queues stops jobs of other
//! teams, and any higher class those of colleagues, so each is a right.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::Code;
use berth_api::access::{Role, Standing};
use berth_core::State;
use berth_model::{ClassLimit, Name, PriorityClass};
use std::collections::BTreeMap;

type Classes = BTreeMap<Name, PriorityClass>;

/// The highest class of researchers, where no queue says otherwise.
const OF_RESEARCHERS: &str = "high";

/// The classes that somebody may use in a team. A number counts as the highest class that it
/// reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Any of these is enough; nothing: there is no limit.
    up_to: Option<Vec<UpTo>>,
    classes: Classes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UpTo {
    value: i32,
    /// Whether classes that reach across queues are among them.
    across: bool,
}

impl Limit {
    /// Of somebody of that standing in a queue. `limits` are those of the queue and the ones above
    /// it, the lowest first.
    fn new(classes: &Classes, limits: &[&ClassLimit], standing: Standing) -> Limit {
        let classes = classes.clone();
        if standing.cluster >= Some(Role::Operator) {
            return Limit { up_to: None, classes };
        }
        let named = |of: fn(&ClassLimit) -> Option<&Name>| limits.iter().find_map(|one| of(one));
        let researcher = named(|limit| limit.researcher.as_ref()).map_or_else(
            || within_queues(classes.get(OF_RESEARCHERS).map(|class| class.value)),
            |class| up_to(&classes, class),
        );
        let mut all = vec![researcher];
        // Whoever may only try a file out is told what a researcher would be.
        if standing.here >= Some(Role::TeamLead) {
            let lead = named(|limit| limit.team_lead.as_ref());
            all.push(lead.map_or_else(|| within_queues(None), |class| up_to(&classes, class)));
        }
        Limit { up_to: Some(all), classes }
    }

    pub fn allows(&self, priority: i32) -> bool {
        let Some(up_to) = &self.up_to else { return true };
        let Some((_, class)) = reached(&self.classes, priority) else { return true };
        up_to.iter().any(|most| class.value <= most.value && (most.across || !class.across))
    }

    /// The highest class that is allowed, if any is.
    fn highest(&self) -> Option<(&Name, &PriorityClass)> {
        let allowed = self.classes.iter().filter(|(_, class)| self.allows(class.value));
        allowed.max_by_key(|(_, class)| class.value)
    }
}

/// Classes that stay within their queue, up to a value.
fn within_queues(value: Option<i32>) -> UpTo {
    UpTo { value: value.unwrap_or(i32::MAX), across: false }
}

/// Of a class that is gone nothing is left: a limit must not become wider by that.
fn up_to(classes: &Classes, class: &Name) -> UpTo {
    let none = UpTo { value: i32::MIN, across: false };
    classes.get(class).map_or(none, |class| UpTo { value: class.value, across: class.across })
}

/// The class that a priority falls into, as the core sees it; nothing below the lowest.
fn reached(classes: &Classes, priority: i32) -> Option<(&Name, &PriorityClass)> {
    let reached = classes.iter().filter(|(_, class)| class.value <= priority);
    reached.max_by_key(|(_, class)| (class.value, class.across))
}

/// What the caller may use in a team.
pub fn limit(service: &Service, caller: &Caller, team: &str) -> Limit {
    limit_in(&service.engine.core().state, caller, team)
}

fn limit_in(state: &State, caller: &Caller, team: &str) -> Limit {
    let limits: Vec<&ClassLimit> = state.queue_path(team).map(|queue| &queue.class_limit).collect();
    Limit::new(state.classes(), &limits, caller.standing(Some(team)))
}

/// The priority of a job, or a refusal. One that was not asked for is lowered to what is allowed.
pub fn checked(
    service: &Service,
    caller: &Caller,
    team: &str,
    priority: i32,
    asked_for: bool,
) -> Result<i32, Fault> {
    let limit = limit(service, caller, team);
    if limit.allows(priority) {
        return Ok(priority);
    }
    let highest = limit.highest();
    if !asked_for {
        // Below the lowest class nothing is refused.
        let lowest = limit.classes.values().map(|class| class.value).min().unwrap_or(0);
        return Ok(highest.map_or(lowest.saturating_sub(1), |(_, class)| class.value));
    }
    Err(refusal(caller.user(), team, priority, &limit))
}

fn refusal(user: &str, team: &str, priority: i32, limit: &Limit) -> Fault {
    let class = reached(&limit.classes, priority);
    let counts = match class {
        Some((name, class)) if class.value == priority => format!("the class `{name}`"),
        Some((name, _)) => format!("a priority of {priority}, which counts as `{name}`,"),
        None => format!("a priority of {priority}"),
    };
    let detail = format!("{user} may not use {counts} in team {team}");
    let fault = Fault::new(Code::PriorityTooHigh, detail);
    match limit.highest() {
        Some((name, _)) => fault.next(format!(
            "use `{name}` or a lower class, or ask a user who may raise it; \
             docs/authorization.md lists the roles"
        )),
        None => fault.next("leave `priority` out, or ask an operator to raise the team's limit"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes() -> Classes {
        let class = |value, across| PriorityClass { value, across };
        [
            ("critical".into(), class(1_000, true)),
            ("urgent".into(), class(500, false)),
            ("high".into(), class(100, false)),
            ("normal".into(), class(50, false)),
            ("low".into(), class(10, false)),
        ]
        .into()
    }

    fn in_team(role: Role) -> Standing {
        Standing { here: Some(role), cluster: None }
    }

    fn check(standing: Standing, limits: &[&ClassLimit], allowed: &[i32], refused: &[i32]) {
        let limit = Limit::new(&classes(), limits, standing);
        for priority in allowed {
            assert!(limit.allows(*priority), "{standing:?} should use {priority}");
        }
        for priority in refused {
            assert!(!limit.allows(*priority), "{standing:?} should not use {priority}");
        }
    }

    #[test]
    fn a_number_counts_as_the_class_it_reaches() {
        let researcher = in_team(Role::Researcher);
        check(researcher, &[], &[-5, 0, 50, 100, 499], &[500, 999, 1_000, i32::MAX]);
    }

    #[test]
    fn a_lead_uses_what_stays_within_queues_and_only_the_cluster_s_operators_the_rest() {
        check(in_team(Role::TeamLead), &[], &[999], &[1_000, i32::MAX]);
        check(in_team(Role::Admin), &[], &[999], &[1_000]);
        for role in [Role::Operator, Role::Admin] {
            let cluster = Standing { here: None, cluster: Some(role) };
            check(cluster, &[], &[1_000, i32::MAX], &[]);
        }
        let viewer = Standing { here: Some(Role::Researcher), cluster: Some(Role::Viewer) };
        check(viewer, &[], &[100], &[500]);
    }

    #[test]
    fn the_nearest_queue_that_says_so_sets_another_limit() {
        let of = |researcher: Option<&str>, lead: Option<&str>| ClassLimit {
            researcher: researcher.map(Name::new),
            team_lead: lead.map(Name::new),
        };
        let (none, low, lab) = (of(None, None), of(Some("low"), None), of(Some("critical"), None));
        check(in_team(Role::Researcher), &[&none, &low, &lab], &[49], &[50]);
        check(in_team(Role::Researcher), &[&none, &lab], &[1_000], &[]);
        check(in_team(Role::TeamLead), &[&lab], &[1_000], &[]);
        check(in_team(Role::TeamLead), &[&of(None, Some("critical"))], &[1_000], &[]);
        check(in_team(Role::Researcher), &[&of(None, Some("critical"))], &[100], &[500]);
        check(in_team(Role::Researcher), &[&of(Some("gone"), None)], &[9], &[10, 50]);
    }

    #[test]
    fn a_class_that_reaches_across_is_never_part_of_a_limit_by_value() {
        let mut classes = classes();
        classes.insert("emergency".into(), PriorityClass { value: 20, across: true });
        let limit = Limit::new(&classes, &[], in_team(Role::Researcher));
        assert!(!limit.allows(20) && !limit.allows(49));
        assert!(limit.allows(19) && limit.allows(50));
        classes.remove("high");
        let limit = Limit::new(&classes, &[], in_team(Role::Researcher));
        assert!(limit.allows(500) && !limit.allows(1_000));
    }

    #[test]
    fn a_refusal_names_the_class_and_the_highest_one_may_use() {
        let limit = Limit::new(&classes(), &[], in_team(Role::Researcher));
        let fault = refusal("kim", "vision", i32::MAX, &limit);
        assert_eq!(fault.0.code, "BRT0029");
        assert!(fault.0.detail.contains("counts as `critical`"), "{}", fault.0.detail);
        assert!(fault.0.next.contains("`high`"), "{}", fault.0.next);
    }
}
