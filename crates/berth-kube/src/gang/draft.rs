//! Gang annotations while they are read. The first family that sets a field wins.

use super::{GangAnnotations, GangKind, GroupKey, Subgroup};
use crate::InvalidField;
use crate::object::Pod;
use berth_model::{Name, Segment, Span, TopologyAsk};

/// More pods than any gang has: beyond it a number is a slip of the pen.
pub(super) const MOST: u32 = 100_000;

#[derive(Debug, Default)]
pub(super) struct Draft {
    pub gang: Option<Gang>,
    pub queue: Option<Name>,
    pub priority_class: Option<Name>,
    pub priority: Option<i32>,
    pub boost: Option<i32>,
    pub preemptible: Option<bool>,
    pub min_runtime: Option<Span>,
    pub preempt_after: Option<Span>,
    pub time_limit: Option<Span>,
    pub topology: TopologyAsk,
    /// Whether the topology is that of the pod's part of the gang, where it has parts.
    pub by_part: bool,
    pub node_pool: Option<Name>,
    pub subgroup: Option<Subgroup>,
    pub needed: Vec<(Name, u32)>,
    pub ignored: Vec<InvalidField>,
    pub bad: Vec<InvalidField>,
}

/// Name and counts belong together: the counts of one family say nothing of another's gang.
#[derive(Debug, Clone)]
pub(super) struct Gang {
    pub key: GroupKey,
    pub members: Option<u32>,
    pub min: Option<u32>,
}

/// Sets the field unless it has a value already.
pub(super) fn first<T>(field: &mut Option<T>, value: Option<T>) {
    if field.is_none() {
        *field = value;
    }
}

impl Draft {
    pub fn invalid(&mut self, key: &str, value: &str, what_to_do: &str) {
        self.bad.push(InvalidField::new(key, value, what_to_do));
    }

    /// Records an annotation that has no effect here; the pod does not wait because of it.
    pub fn ignore(&mut self, key: &str, value: &str, what_to_do: &str) {
        self.ignored.push(InvalidField::new(key, value, what_to_do));
    }

    pub fn gang(&mut self, gang: Gang) {
        first(&mut self.gang, Some(gang));
    }

    pub fn queue(&mut self, name: Option<&str>) {
        first(&mut self.queue, name.map(Name::new));
    }

    pub fn class(&mut self, name: Option<&str>) {
        // A number from an earlier family would contradict a class from this one.
        if self.priority.is_none() {
            first(&mut self.priority_class, name.map(Name::new));
        }
    }

    pub fn required(&mut self, level: Option<&str>) {
        first(&mut self.topology.required, level.map(Name::new));
    }

    pub fn preferred(&mut self, level: Option<&str>) {
        first(&mut self.topology.preferred, level.map(Name::new));
    }

    pub fn segment(&mut self, segment: Option<Segment>) {
        first(&mut self.topology.segment, segment);
    }

    /// A number of pods, 1 or more.
    pub fn count(&mut self, key: &str, value: Option<&str>) -> Option<u32> {
        let value = value?;
        let count = value.trim().parse().ok().filter(|count| (1..=MOST).contains(count));
        if count.is_none() {
            let what = format!("write a number of pods between 1 and {MOST}");
            self.invalid(key, value, &what);
        }
        count
    }

    /// The same of a field that is a number already.
    pub fn number(&mut self, key: &str, value: Option<i64>) -> Option<u32> {
        self.count(key, value.map(|value| value.to_string()).as_deref())
    }

    pub fn flag(&mut self, key: &str, value: Option<&str>) -> Option<bool> {
        match value? {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                self.invalid(key, other, "write true or false");
                None
            }
        }
    }

    /// A length of time with its unit: what a bare number counts in is anybody's guess.
    pub fn span(&mut self, key: &str, value: Option<&str>) -> Option<Span> {
        let value = value?;
        let has_unit = value.ends_with(|c: char| c.is_ascii_alphabetic());
        let span = value.parse::<Span>().ok().filter(|span| has_unit && span.0 >= 0);
        if span.is_none() {
            self.invalid(key, value, "write a length of time such as 90s, 5m or 1h30m");
        }
        span
    }

    pub fn finish(mut self, pod: &Pod) -> Result<GangAnnotations, Vec<InvalidField>> {
        let meta = &pod.metadata;
        let key = GroupKey {
            namespace: Name::new(&meta.namespace),
            kind: GangKind::Pod,
            name: Name::new(&meta.name),
            uid: Some(Name::new(&meta.uid)),
        };
        let gang = self.gang.take().unwrap_or(Gang { key, members: Some(1), min: Some(1) });
        if let (Some(members), Some(min)) = (gang.members, gang.min)
            && min > members
        {
            let what = format!("the gang has {members} pods in all; ask for no more than these");
            self.invalid("minimum of the gang", &min.to_string(), &what);
        }
        if !self.bad.is_empty() {
            self.bad.sort();
            self.bad.dedup();
            return Err(self.bad);
        }
        self.class(Some(&*pod.spec.priority_class_name).filter(|class| !class.is_empty()));
        if self.priority_class.as_deref() == Some(&*pod.spec.priority_class_name) {
            // Admission has looked the class up already.
            first(&mut self.priority, pod.spec.priority);
        }
        let mut topology =
            Some(self.topology).filter(|topology| *topology != TopologyAsk::default());
        if self.by_part
            && let Some(part) = &mut self.subgroup
        {
            part.topology = topology.take();
        }
        // Parts are those of a PodGroup, and say nothing of a gang that another annotation makes.
        let is_in_parts =
            matches!(gang.key.kind, GangKind::KaiPodGroup | GangKind::VolcanoPodGroup);
        let needed = if is_in_parts { self.needed } else { Vec::new() };
        Ok(GangAnnotations {
            key: gang.key,
            members: gang.members,
            min: gang.min,
            queue: self.queue,
            priority_class: self.priority_class,
            priority: self.priority,
            boost: self.boost.unwrap_or(0),
            preemptible: self.preemptible,
            min_runtime: self.min_runtime,
            preempt_after: self.preempt_after,
            time_limit: self.time_limit,
            topology,
            node_pool: self.node_pool,
            subgroup: self.subgroup,
            needed,
            ignored: self.ignored,
        })
    }
}
