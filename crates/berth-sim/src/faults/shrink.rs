//! Makes a tale that fails shorter while it still fails in the same way.

use super::play::Seam;
use super::tale::{Noise, Tale};
use super::{Class, Verdict, judge};
use berth_model::{JobSpec, QueueSpec};

/// Tales tried at most.
const TRIES: u32 = 400;

/// The shortest tale found that breaks the same promise, and how it went.
pub fn shrink<S: Seam>(tale: &Tale, seam: &mut dyn FnMut() -> S, class: Class) -> (Tale, Verdict) {
    let verdict = judge(tale, seam);
    let mut search = Search { best: tale.clone(), verdict, class, left: TRIES, seam };
    loop {
        let before = search.best.clone();
        search.quieter();
        search.fewer(|tale| &mut tale.jobs);
        search.fewer(|tale| &mut tale.blows);
        search.fewer(|tale| &mut tale.nodes);
        search.fewer(|tale| &mut tale.pools);
        search.fewer_crashes();
        search.fewer(|tale| &mut tale.queues);
        search.simpler_jobs();
        search.simpler_queues();
        if search.best == before || search.left == 0 {
            return (search.best, search.verdict);
        }
    }
}

struct Search<'a, S> {
    best: Tale,
    verdict: Verdict,
    class: Class,
    left: u32,
    seam: &'a mut dyn FnMut() -> S,
}

impl<S: Seam> Search<'_, S> {
    fn attempt(&mut self, tale: Tale) -> bool {
        if self.left == 0 || tale == self.best {
            return false;
        }
        self.left -= 1;
        let verdict = judge(&tale, self.seam);
        let fails = verdict.broken.as_ref().is_some_and(|broken| broken.class == self.class);
        if fails {
            (self.best, self.verdict) = (tale, verdict);
        }
        fails
    }

    fn quieter(&mut self) {
        let calm = Noise { lost: 0, late: 0, doubled: 0, failing: 0 };
        if self.attempt(Tale { noise: calm, ..self.best.clone() }) {
            return;
        }
        let now = self.best.noise;
        for noise in [
            Noise { lost: 0, ..now },
            Noise { late: 0, ..now },
            Noise { doubled: 0, ..now },
            Noise { failing: 0, ..now },
        ] {
            self.attempt(Tale { noise, ..self.best.clone() });
        }
    }

    /// Leaves out halves, quarters and so on down to single parts.
    fn fewer<T: Clone>(&mut self, part: impl Fn(&mut Tale) -> &mut Vec<T>) {
        let mut size = part(&mut self.best).len();
        while size > 0 {
            let mut from = 0;
            while from < part(&mut self.best).len() {
                let mut tale = self.best.clone();
                let all = part(&mut tale);
                all.drain(from..(from + size).min(all.len()));
                if !self.attempt(tale) {
                    from += size;
                }
            }
            size /= 2;
        }
    }

    fn fewer_crashes(&mut self) {
        self.attempt(Tale { crashes: Default::default(), ..self.best.clone() });
        for crash in self.best.crashes.clone() {
            let mut tale = self.best.clone();
            tale.crashes.remove(&crash);
            self.attempt(tale);
        }
    }

    fn simpler_jobs(&mut self) {
        for at in 0..self.best.jobs.len() {
            let plainer: [fn(&mut JobSpec); 6] = [
                |spec| spec.array = None,
                |spec| spec.groups.truncate(1),
                |spec| spec.after.clear(),
                |spec| (spec.begin, spec.deadline, spec.lifecycle) = (None, None, None),
                |spec| spec.groups.iter_mut().for_each(|group| group.spread = None),
                |spec| spec.groups.iter_mut().for_each(|group| group.topology = None),
            ];
            for make in plainer {
                let mut tale = self.best.clone();
                make(&mut tale.jobs[at].spec);
                self.attempt(tale);
            }
        }
    }

    fn simpler_queues(&mut self) {
        for at in 0..self.best.queues.len() {
            let plainer: [fn(&mut QueueSpec); 2] =
                [|queue| queue.budget = None, |queue| queue.limit = Default::default()];
            for make in plainer {
                let mut tale = self.best.clone();
                make(&mut tale.queues[at]);
                self.attempt(tale);
            }
        }
    }
}
