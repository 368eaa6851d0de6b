//! What a job has seen of a zone: how long machines stay, and how long they stay away.

/// Lengths of stretches, beginning with a guess that a few stretches outweigh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    up_s: i64,
    ups: i64,
    down_s: i64,
    downs: i64,
    /// What it was at the last sample, and for how long.
    last: Option<bool>,
    since_s: i64,
}

/// The guess: two hours there, two hours away, as if seen twice. Nothing is known when a job
/// begins, and a rule that believed its first stretch would swing with every sample.
const GUESS_S: i64 = 7_200;
const GUESSED: i64 = 2;

impl Default for Seen {
    fn default() -> Seen {
        let all_s = GUESS_S * GUESSED;
        Seen { up_s: all_s, ups: GUESSED, down_s: all_s, downs: GUESSED, last: None, since_s: 0 }
    }
}

impl Seen {
    /// Takes in the next sample.
    pub fn look(&mut self, up: bool, step_s: i64) {
        match self.last {
            Some(true) => self.up_s += step_s,
            Some(false) => self.down_s += step_s,
            None => {}
        }
        if self.last == Some(up) {
            self.since_s += step_s;
            return;
        }
        self.since_s = 0;
        self.last = Some(up);
        if up {
            self.ups += 1;
        } else {
            self.downs += 1;
        }
    }

    /// How long it has been as it is.
    pub fn since_s(&self) -> i64 {
        self.since_s
    }

    pub fn mean_up_s(&self) -> i64 {
        self.up_s / self.ups
    }

    pub fn mean_down_s(&self) -> i64 {
        self.down_s / self.downs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_stretches_outweigh_the_guess() {
        let mut seen = Seen::default();
        assert_eq!((seen.mean_up_s(), seen.mean_down_s()), (GUESS_S, GUESS_S));
        for _ in 0..50 {
            for up in [true, false, false] {
                seen.look(up, 600);
            }
        }
        assert!((600..1_000).contains(&seen.mean_up_s()), "{}", seen.mean_up_s());
        assert!((1_200..1_500).contains(&seen.mean_down_s()), "{}", seen.mean_down_s());
        assert_eq!(seen.since_s(), 600);
    }
}
