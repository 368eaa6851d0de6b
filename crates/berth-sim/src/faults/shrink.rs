//! Makes a case that fails shorter while it still fails in the same way.

use super::case::{Case, Noise};
use super::seam::Seam;
use super::{Class, Verdict, judge};
use berth_model::{JobSpec, QueueSpec};

/// Cases tried at most.
const TRIES: u32 = 400;

/// The shortest case found that breaks the same promise, and how it went.
pub fn shrink<S: Seam>(case: &Case, seam: &mut dyn FnMut() -> S, class: Class) -> (Case, Verdict) {
    let verdict = judge(case, seam);
    let mut search = Search { best: case.clone(), verdict, class, left: TRIES, seam };
    loop {
        let before = search.best.clone();
        search.quieter();
        search.fewer(|case| &mut case.jobs);
        search.fewer(|case| &mut case.faults);
        search.fewer(|case| &mut case.nodes);
        search.fewer(|case| &mut case.pools);
        search.fewer_crashes();
        search.fewer(|case| &mut case.queues);
        search.simpler_jobs();
        search.simpler_queues();
        if search.best == before || search.left == 0 {
            return (search.best, search.verdict);
        }
    }
}

struct Search<'a, S> {
    best: Case,
    verdict: Verdict,
    class: Class,
    left: u32,
    seam: &'a mut dyn FnMut() -> S,
}

impl<S: Seam> Search<'_, S> {
    fn attempt(&mut self, case: Case) -> bool {
        if self.left == 0 || case == self.best {
            return false;
        }
        self.left -= 1;
        let verdict = judge(&case, self.seam);
        let fails = verdict.broken.as_ref().is_some_and(|broken| broken.class == self.class);
        if fails {
            (self.best, self.verdict) = (case, verdict);
        }
        fails
    }

    fn quieter(&mut self) {
        let calm = Noise { lost: 0, late: 0, doubled: 0, failing: 0 };
        if self.attempt(Case { noise: calm, ..self.best.clone() }) {
            return;
        }
        let now = self.best.noise;
        for noise in [
            Noise { lost: 0, ..now },
            Noise { late: 0, ..now },
            Noise { doubled: 0, ..now },
            Noise { failing: 0, ..now },
        ] {
            self.attempt(Case { noise, ..self.best.clone() });
        }
    }

    /// Leaves out halves, quarters and so on down to single parts.
    fn fewer<T: Clone>(&mut self, part: impl Fn(&mut Case) -> &mut Vec<T>) {
        let mut size = part(&mut self.best).len();
        while size > 0 {
            let mut from = 0;
            while from < part(&mut self.best).len() {
                let mut case = self.best.clone();
                let all = part(&mut case);
                all.drain(from..(from + size).min(all.len()));
                if !self.attempt(case) {
                    from += size;
                }
            }
            size /= 2;
        }
    }

    fn fewer_crashes(&mut self) {
        self.attempt(Case { crashes: Default::default(), ..self.best.clone() });
        for crash in self.best.crashes.clone() {
            let mut case = self.best.clone();
            case.crashes.remove(&crash);
            self.attempt(case);
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
                let mut case = self.best.clone();
                make(&mut case.jobs[at].spec);
                self.attempt(case);
            }
        }
    }

    fn simpler_queues(&mut self) {
        for at in 0..self.best.queues.len() {
            let plainer: [fn(&mut QueueSpec); 2] =
                [|queue| queue.budget = None, |queue| queue.limit = Default::default()];
            for make in plainer {
                let mut case = self.best.clone();
                make(&mut case.queues[at]);
                self.attempt(case);
            }
        }
    }
}
