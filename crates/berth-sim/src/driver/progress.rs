//! How far jobs have got. A job makes progress while at least its minimum runs; when it falls
//! below, what it has not saved is lost.

use crate::world::JobScript;
use berth_model::{GroupSpec, JobSnapshot, JobSpec, Span, Time};
use std::ops::Range;

/// A leaf group with how many of its tasks run.
#[derive(Debug, Clone)]
struct Leaf {
    tasks: Range<u32>,
    min: u32,
    running: u32,
}

#[derive(Debug, Clone)]
enum Tree {
    Leaf(usize),
    Inner { min: u32, children: Vec<Tree> },
}

/// One job's run as its machines see it.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub script: JobScript,
    leaves: Vec<Leaf>,
    tree: Vec<Tree>,
    /// Run time it had behind it when it last went on.
    base: Span,
    /// Run time that a checkpoint holds.
    saved: Span,
    /// Since when it has made progress.
    since: Option<Time>,
    /// Counts the times it went on or fell back: what was foreseen before then no longer holds.
    pub epoch: u64,
}

/// What a change in the number of running tasks means for the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transition {
    WentOn,
    FellBack,
    Nothing,
}

impl Run {
    pub fn new(spec: &JobSpec, script: JobScript) -> Run {
        let mut leaves = Vec::new();
        let mut next = 0;
        let tree = spec.groups.iter().map(|group| grow(group, &mut next, &mut leaves)).collect();
        Run { script, leaves, tree, base: Span::ZERO, saved: Span::ZERO, since: None, epoch: 0 }
    }

    /// A run that began before the world did.
    pub fn resume(job: &JobSnapshot, script: JobScript) -> Run {
        let mut run = Run::new(&job.spec, script);
        run.base = job.saved;
        run.saved = match (job.started, job.last_checkpoint) {
            (Some(started), Some(at)) if at > started => job.saved + (at - started),
            _ => job.saved,
        };
        run
    }

    fn leaf(&mut self, task: u32) -> Option<&mut Leaf> {
        let at = self.leaves.partition_point(|leaf| leaf.tasks.end <= task);
        self.leaves.get_mut(at)
    }

    fn is_whole(&self) -> bool {
        self.tree.iter().all(|tree| self.stands(tree))
    }

    fn stands(&self, tree: &Tree) -> bool {
        match tree {
            Tree::Leaf(at) => self.leaves[*at].running >= self.leaves[*at].min,
            Tree::Inner { min, children } => {
                children.iter().filter(|child| self.stands(child)).count() >= *min as usize
            }
        }
    }

    pub fn task_started(&mut self, task: u32, at: Time) -> Transition {
        if let Some(leaf) = self.leaf(task) {
            leaf.running += 1;
        }
        if self.since.is_some() || !self.is_whole() {
            return Transition::Nothing;
        }
        self.since = Some(at);
        self.epoch += 1;
        Transition::WentOn
    }

    pub fn task_ended(&mut self, task: u32) -> Transition {
        if let Some(leaf) = self.leaf(task) {
            leaf.running = leaf.running.saturating_sub(1);
        }
        if self.since.is_none() || self.is_whole() {
            return Transition::Nothing;
        }
        self.since = None;
        self.base = self.saved;
        self.epoch += 1;
        Transition::FellBack
    }

    pub fn progress(&self, at: Time) -> Span {
        self.base + self.since.map_or(Span::ZERO, |since| at - since)
    }

    pub fn save(&mut self, at: Time) {
        self.saved = self.progress(at);
    }

    pub fn is_going(&self) -> bool {
        self.since.is_some()
    }

    /// When it will have run as long as it takes, if nothing happens to it.
    pub fn ends(&self) -> Option<Time> {
        let left = (self.script.duration? - self.base).max(Span::ZERO);
        Some(self.since? + left)
    }
}

fn grow(group: &GroupSpec, next: &mut u32, leaves: &mut Vec<Leaf>) -> Tree {
    if group.is_leaf() {
        let tasks = *next..next.saturating_add(group.count);
        *next = tasks.end;
        leaves.push(Leaf { tasks, min: group.min, running: 0 });
        return Tree::Leaf(leaves.len() - 1);
    }
    let children = group.groups.iter().map(|child| grow(child, next, leaves)).collect();
    Tree::Inner { min: group.min, children }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    fn run(text: &str) -> Run {
        let text = format!("jobs: [{{name: j, {text}}}]");
        let loaded = World::parse(&text).unwrap();
        let script = loaded.scripts.values().next().cloned().unwrap_or_default();
        Run::resume(&loaded.snapshot.jobs[0], script)
    }

    fn minutes(n: i64) -> Time {
        Time(0) + Span::mins(n)
    }

    #[test]
    fn a_gang_goes_on_when_its_minimum_runs_and_falls_back_to_what_it_saved() {
        let mut run = run("duration: 1h, groups: [{count: 3, min: 2}]");
        assert_eq!(run.task_started(0, minutes(0)), Transition::Nothing);
        assert_eq!(run.task_started(1, minutes(1)), Transition::WentOn);
        assert_eq!(run.ends(), Some(minutes(61)));
        assert_eq!(run.task_started(2, minutes(2)), Transition::Nothing);
        run.save(minutes(11));
        assert_eq!(run.task_ended(0), Transition::Nothing);
        assert_eq!(run.task_ended(1), Transition::FellBack);
        assert_eq!(run.progress(minutes(30)), Span::mins(10));
        assert_eq!(run.task_started(0, minutes(31)), Transition::WentOn);
        assert_eq!(run.ends(), Some(minutes(81)));
    }

    #[test]
    fn a_group_of_groups_needs_as_many_children_as_it_says() {
        let mut run = run("groups: [{min: 1, groups: [{count: 2}, {count: 1}]}]");
        assert_eq!(run.task_started(0, minutes(0)), Transition::Nothing);
        assert_eq!(run.task_started(2, minutes(0)), Transition::WentOn);
        assert_eq!(run.task_ended(2), Transition::FellBack);
        assert_eq!(run.task_started(1, minutes(0)), Transition::WentOn);
    }
}
