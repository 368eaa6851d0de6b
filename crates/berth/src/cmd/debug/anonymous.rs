//! A world without its names. What a plan depends on stays: sizes, times, money, GPU models,
//! instance types, the keys of labels, and the order of names, by which ties are broken.

use crate::fail::{Failure, Result};
use berth_file::world::{World, write};
use berth_model::{GroupSpec, JobRef, JobSpec, JobTarget, Name, Snapshot};
use std::collections::{BTreeMap, BTreeSet};

/// What a name names: two things of one name stay two things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Node,
    Queue,
    Job,
    User,
    Project,
    Experiment,
    Group,
    Pool,
    Claim,
    Reservation,
    /// A value of a label, or a zone.
    Value,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Node => "node",
            Kind::Queue => "queue",
            Kind::Job => "job",
            Kind::User => "user",
            Kind::Project => "project",
            Kind::Experiment => "experiment",
            Kind::Group => "group",
            Kind::Pool => "pool",
            Kind::Claim => "claim",
            Kind::Reservation => "reservation",
            Kind::Value => "value",
        }
    }
}

/// Names that say nothing about anybody.
const KEPT: [&str; 3] = ["", "default", "main"];

pub fn masked(text: &str) -> Result<String> {
    let world = World::parse(text).map_err(|error| {
        Failure::internal(format!(
            "the server's world cannot be read: {}: {}",
            error.at, error.message
        ))
    })?;
    let mut snapshot = world.snapshot;
    let mut names: BTreeMap<Kind, BTreeSet<Name>> = BTreeMap::new();
    each(&mut snapshot, &mut |kind, name| {
        names.entry(kind).or_default().insert(name.clone());
    });
    let masks: BTreeMap<Kind, BTreeMap<Name, Name>> =
        names.into_iter().map(|(kind, names)| (kind, numbered(kind, names))).collect();
    each(&mut snapshot, &mut |kind, name| {
        if let Some(mask) = masks.get(&kind).and_then(|masks| masks.get(name)) {
            *name = mask.clone();
        }
    });
    for job in &mut snapshot.jobs {
        // The finding is prose, and names whatever it was about.
        if let Some(finding) = &mut job.set_aside {
            *finding = "(hidden)".to_owned();
        }
    }
    Ok(write(&snapshot))
}

/// Numbers with as many digits as the last has, so that they sort as the names did.
fn numbered(kind: Kind, names: BTreeSet<Name>) -> BTreeMap<Name, Name> {
    let names: Vec<Name> = names.into_iter().filter(|name| !KEPT.contains(&&**name)).collect();
    let width = names.len().to_string().len();
    let mask = |number: usize| Name::new(&format!("{}-{number:0width$}", kind.word()));
    names.into_iter().enumerate().map(|(index, name)| (name, mask(index + 1))).collect()
}

type Visit<'a> = dyn FnMut(Kind, &mut Name) + 'a;

fn each(snapshot: &mut Snapshot, visit: &mut Visit<'_>) {
    for node in &mut snapshot.nodes {
        visit(Kind::Node, &mut node.spec.name);
        values(&mut node.spec.labels, visit);
        node.spec.taints.iter_mut().for_each(|taint| visit(Kind::Value, &mut taint.value));
        node.spec.pool.iter_mut().for_each(|pool| visit(Kind::Pool, pool));
    }
    for pool in &mut snapshot.pools {
        visit(Kind::Pool, &mut pool.name);
        values(&mut pool.labels, visit);
        pool.offerings.iter_mut().for_each(|offering| visit(Kind::Value, &mut offering.zone));
    }
    for claim in &mut snapshot.claims {
        visit(Kind::Claim, &mut claim.name);
        visit(Kind::Pool, &mut claim.pool);
        visit(Kind::Value, &mut claim.zone);
    }
    for queue in &mut snapshot.queues {
        visit(Kind::Queue, &mut queue.spec.name);
        queue.spec.parent.iter_mut().for_each(|parent| visit(Kind::Queue, parent));
    }
    for past in &mut snapshot.history {
        visit(Kind::User, &mut past.user);
        visit(Kind::Job, &mut past.name);
    }
    snapshot.outcomes.iter_mut().for_each(|(_, name, _)| visit(Kind::Job, name));
    for reservation in &mut snapshot.reservations {
        visit(Kind::Reservation, &mut reservation.name);
        visit(Kind::Queue, &mut reservation.owner);
        reservation.nodes.iter_mut().for_each(|node| visit(Kind::Node, node));
    }
    let places = snapshot.promises.iter_mut().flat_map(|promise| &mut promise.places);
    places.for_each(|place| visit(Kind::Node, &mut place.node));
    for job in &mut snapshot.jobs {
        spec(&mut job.spec, visit);
        job.leases.iter_mut().for_each(|lease| visit(Kind::Node, &mut lease.node));
    }
}

fn spec(job: &mut JobSpec, visit: &mut Visit<'_>) {
    visit(Kind::Job, &mut job.name);
    visit(Kind::Queue, &mut job.queue);
    visit(Kind::User, &mut job.user);
    visit(Kind::Project, &mut job.project);
    visit(Kind::Experiment, &mut job.experiment);
    values(&mut job.labels, visit);
    for dependency in &mut job.after {
        match &mut dependency.job {
            JobRef::Name(name) => visit(Kind::Job, name),
            JobRef::Id(_) => {}
        }
    }
    job.groups.iter_mut().for_each(|one| group(one, visit));
}

fn group(one: &mut GroupSpec, visit: &mut Visit<'_>) {
    visit(Kind::Group, &mut one.name);
    values(&mut one.labels.need, visit);
    values(&mut one.labels.prefer, visit);
    for toleration in &mut one.tolerations {
        toleration.value.iter_mut().for_each(|value| visit(Kind::Value, value));
    }
    for near in &mut one.near {
        match &mut near.target {
            JobTarget::Name(name) => visit(Kind::Job, name),
            JobTarget::Label { value, .. } => visit(Kind::Value, value),
        }
    }
    one.groups.iter_mut().for_each(|inner| group(inner, visit));
}

fn values(labels: &mut BTreeMap<Name, Name>, visit: &mut Visit<'_>) {
    labels.values_mut().for_each(|value| visit(Kind::Value, value));
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORLD: &str = "
now: 2026-11-15T09:00:00Z
nodes:
  - {name: acme-b, gpus: 2, model: H100-80GB, labels: {rack: acme-r1}, taints: [{key: team, value: acme-x, effect: NoSchedule}]}
  - {name: acme-a, gpus: 2, model: H100-80GB, zone: acme-z}
queues: [{name: acme}, {name: acme-nlp, parent: acme, quota: {gpu: 2}}]
jobs:
  - {name: acme-old, queue: acme-nlp, user: acme-kim, project: acme-p, labels: {owner: acme-o}, groups: [{gpus: 1, tasks: [{node: acme-b}]}]}
  - {name: acme-new, queue: acme-nlp, user: acme-ada, after: {ok: [acme-old]}, groups: [{name: acme-g, gpus: 1, labels: {need: {rack: acme-r1}}}]}
reservations: [{name: acme-res, owner: acme-nlp, nodes: [acme-a], from: 2026-11-16T09:00:00Z, to: 2026-11-16T10:00:00Z}]
history: [{user: acme-kim, name: acme-old, runs: 2, ratio: 0.4}]
";

    #[test]
    fn no_name_is_left_and_the_world_reads_back() {
        let text = masked(WORLD).unwrap_or_else(|failure| panic!("{failure}"));
        assert!(!text.contains("acme"), "{text}");
        let before = World::parse(WORLD).unwrap().snapshot;
        let after = World::parse(&text).unwrap().snapshot;
        assert_eq!((before.nodes.len(), before.jobs.len()), (after.nodes.len(), after.jobs.len()));
        let names: Vec<&str> = after.nodes.iter().map(|node| &*node.spec.name).collect();
        assert_eq!(names, ["node-2", "node-1"], "names keep their order");
        assert_eq!(&*after.jobs[0].leases[0].node, "node-2");
        assert_eq!(after.jobs[1].spec.queue, after.jobs[0].spec.queue);
    }

    #[test]
    fn what_is_masked_already_stays_as_it_is() {
        let once = masked(WORLD).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(masked(&once).unwrap_or_else(|failure| panic!("{failure}")), once);
    }

    #[test]
    fn numbers_have_as_many_digits_as_the_last() {
        let names = (0..12).map(|n| Name::new(&format!("x{n:02}"))).collect();
        let masks = numbered(Kind::User, names);
        assert_eq!(&*masks[&Name::new("x00")], "user-01");
        assert_eq!(&*masks[&Name::new("x11")], "user-12");
    }
}
