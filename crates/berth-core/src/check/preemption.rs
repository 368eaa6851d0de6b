//! Whether a stop that takes GPUs from a running job is owed to the job it is for.

use crate::amounts::{Amounts, Resource};
use crate::check::checker::{Checker, Claim, TransactionEffects};
use crate::check::fair_share::FairShares;
use crate::check::finding::FindingCode;
use crate::check::place::Fault;
use crate::ix::{JobIx, QueueIx};
use berth_model::{Cause, Span};

impl Checker<'_> {
    /// Notes by which right the claimant takes from the victim, where that is known already.
    pub(super) fn claim(
        &mut self,
        work: &mut TransactionEffects,
        victim: JobIx,
        claimant: JobIx,
        cause: Cause,
    ) -> Vec<Fault> {
        let (from, to) = (self.view.base(victim), self.view.base(claimant));
        let same = from.queue == to.queue;
        let lower = from.priority < to.priority;
        let across = self.reaches(to.priority);
        let wrong = |text: &str| {
            vec![(FindingCode::Right, format!("job {} {text} job {}", from.id, to.id))]
        };
        if cause == Cause::Reclaim && to.priority < from.priority && self.reaches(from.priority) {
            return wrong("reaches across queues, and is not reclaimed by");
        }
        match cause {
            Cause::Preempt if !(same && lower) => {
                return wrong("is not of a lower class of the same queue than");
            }
            Cause::Across if !(across && lower) => {
                return wrong("is not of a lower class than, or nothing reaches across for,");
            }
            Cause::TimeShare => return self.time_share(victim, claimant),
            // Surplus is lent: any waiting minimum of its queue may have it.
            Cause::Shrink if same || (across && lower) => return Vec::new(),
            _ => {}
        }
        let rivals = match cause {
            Cause::Reclaim | Cause::Shrink => {
                let Some((mine, theirs)) = self.rivals(to.queue, from.queue) else {
                    return wrong("is in the same queue as");
                };
                let mut used = Amounts::default();
                for resource in self.view.usage.tree().named.clone() {
                    set(&mut used, resource, self.view.usage.used(theirs, resource));
                }
                Some((mine, theirs, used))
            }
            _ => None,
        };
        work.claims.push(Claim { victim, claimant, cause, rivals });
        Vec::new()
    }

    /// Whether the class that a priority falls into reaches across queues.
    fn reaches(&self, priority: i32) -> bool {
        let classes = self.view.state.classes.values().filter(|class| class.value <= priority);
        let top = classes.clone().map(|class| class.value).max();
        classes.filter(|class| Some(class.value) == top).any(|class| class.across)
    }

    /// Whether a reservation may be moved for the claimant: for a higher class, and for a queue
    /// that ends within its quota or its share.
    pub(super) fn gives_way(&mut self, ix: JobIx, claimant: JobIx) -> bool {
        let (from, to) = (self.view.base(ix), self.view.base(claimant));
        let (same, lower) = (from.queue == to.queue, from.priority < to.priority);
        if lower && (same || self.reaches(to.priority)) {
            return true;
        }
        let Some((mine, _)) = self.rivals(to.queue, from.queue) else { return false };
        self.ends_in_quota(mine, claimant) || self.ends_in_share(mine, claimant)
    }

    /// The ancestors just below the lowest common parent; nothing where one lies below the other.
    fn rivals(&self, mine: QueueIx, theirs: QueueIx) -> Option<(QueueIx, QueueIx)> {
        let (mine, theirs) = (self.view.usage.path(mine), self.view.usage.path(theirs));
        let mine = mine.iter().rev();
        let theirs = theirs.iter().rev();
        mine.zip(theirs).find(|(a, b)| a != b).map(|(a, b)| (*a, *b))
    }

    fn time_share(&self, victim: JobIx, claimant: JobIx) -> Vec<Fault> {
        let state = self.view.state;
        let (from, to) = (self.view.base(victim), self.view.base(claimant));
        let queue = &state.queues.get(from.queue).spec;
        let day = state.now - Span::days(1);
        let pauses = from.pauses.iter().filter(|at| **at > day).count() as u32;
        let started = self.view.job(victim).started;
        let had = started.is_some_and(|at| at + state.policy.quantum <= state.now);
        let may = queue.time_sharing.unwrap_or(state.policy.time_sharing)
            && from.queue == to.queue
            && from.priority == to.priority
            && had
            && pauses < state.policy.pauses_per_day;
        if may {
            return Vec::new();
        }
        vec![(FindingCode::Right, format!("job {} may not be paused for job {}", from.id, to.id))]
    }

    /// Judges the claims of a transaction now that it is known where everybody ends.
    pub(super) fn judge(&mut self, work: &TransactionEffects) -> Vec<Fault> {
        let mut found = Vec::new();
        for claim in &work.claims {
            let (from, to) = (self.view.base(claim.victim), self.view.base(claim.claimant));
            let by_quota = match &claim.rivals {
                None => false,
                Some((mine, theirs, used)) => {
                    if self.over_quota(*theirs, used) && self.ends_in_quota(*mine, claim.claimant) {
                        true
                    } else if self.over_share(*theirs, used)
                        && self.ends_in_share(*mine, claim.claimant)
                        && self.is_cooled_down(claim.victim)
                    {
                        false
                    } else {
                        let text = format!(
                            "queue of job {} has no right to what job {} holds",
                            to.id, from.id
                        );
                        found.push((FindingCode::Right, text));
                        continue;
                    }
                }
            };
            let moved = matches!(claim.cause, Cause::Defragment | Cause::Shrink);
            if !by_quota && !moved && self.too_soon(claim.claimant) {
                let text = format!("job {} may not displace others yet", to.id);
                found.push((FindingCode::TooSoon, text));
            }
        }
        found
    }

    /// Whether the victim, if it has given way before, has had its quantum since.
    fn is_cooled_down(&self, ix: JobIx) -> bool {
        let state = self.view.state;
        let job = self.view.base(ix);
        let rest = state.policy.quantum;
        job.displaced == 0 || job.started.is_none_or(|started| started + rest <= state.now)
    }

    /// Whether the delay of the job, its queue or the policy has not passed yet. The planner also
    /// waits for the boot time of a pool where none is set; that only makes the delay longer.
    fn too_soon(&self, ix: JobIx) -> bool {
        let state = self.view.state;
        let job = self.view.base(ix);
        let queue = &state.queues.get(job.queue).spec;
        let delay = job.spec.preempt_after.or(queue.preempt_after);
        job.spec.submitted + delay.unwrap_or(state.policy.preempt_after) > state.now
    }

    fn over_quota(&mut self, theirs: QueueIx, used: &Amounts) -> bool {
        let tree = self.view.usage.tree();
        let quota = &tree.plain[theirs.at()].quota;
        tree.named.iter().any(|r| quota.get(*r).is_some_and(|quota| used.get(*r) > quota))
    }

    /// What the claimant gets in this transaction: only resources it asks for can exceed a share.
    fn asks(&self, ix: JobIx) -> (Amounts, Amounts) {
        let mut asks = Amounts::default();
        let mut uncharged = Amounts::default();
        for (_, hold) in self.view.holds(ix) {
            asks.add(&hold.amounts, 1);
        }
        if let Some(kept) = self.view.promised_places(ix) {
            asks.add(&kept.amounts, 1);
            if !kept.firm {
                uncharged.add(&kept.amounts, 1);
            }
        }
        (asks, uncharged)
    }

    fn ends(&self, mine: QueueIx, uncharged: &Amounts, resource: Resource) -> i64 {
        let usage = &self.view.usage;
        usage.used(mine, resource) + uncharged.get(resource) - usage.grown(mine, resource)
    }

    fn ends_in_quota(&mut self, mine: QueueIx, claimant: JobIx) -> bool {
        let (asks, uncharged) = self.asks(claimant);
        let tree = self.view.usage.tree();
        let quota = tree.plain[mine.at()].quota.clone();
        tree.named
            .clone()
            .into_iter()
            .filter(|r| asks.get(*r) > 0)
            .all(|r| quota.get(r).is_none_or(|quota| self.ends(mine, &uncharged, r) <= quota))
    }

    fn fair(&mut self) -> &FairShares {
        let state = self.view.state;
        let tree = self.view.usage.tree();
        self.fair.get_or_insert_with(|| FairShares::of(state, tree))
    }

    fn over_share(&mut self, theirs: QueueIx, used: &Amounts) -> bool {
        let named = self.view.usage.tree().named.clone();
        let fair = self.fair();
        named.into_iter().any(|r| used.get(r) > fair.get(theirs, r) - fair.slack(r))
    }

    fn ends_in_share(&mut self, mine: QueueIx, claimant: JobIx) -> bool {
        let (asks, uncharged) = self.asks(claimant);
        let named = self.view.usage.tree().named.clone();
        self.fair();
        let fair = self.fair.as_ref().expect("just made");
        named
            .into_iter()
            .filter(|r| asks.get(*r) > 0)
            .all(|r| self.ends(mine, &uncharged, r) <= fair.get(mine, r) + fair.slack(r))
    }
}

fn set(amounts: &mut Amounts, resource: Resource, value: i64) {
    match resource {
        Resource::Gpu => amounts.gpu = value,
        Resource::Cpu => amounts.cpu = value,
        Resource::Memory => amounts.memory = value,
        Resource::Model(model) => {
            amounts.models.resize(amounts.models.len().max(model.at() + 1), 0);
            amounts.models[model.at()] = value;
        }
    }
}
