//! Choices read from bytes. Every byte string means something, and zeros mean the plainest thing,
//! so a failing case shrinks towards a small and dull world.

/// Bytes that stand for one node, queue, job or step.
pub type Bytes = [u8; 32];

pub struct Draw<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Draw<'a> {
    pub fn new(bytes: &'a [u8]) -> Draw<'a> {
        Draw { bytes, at: 0 }
    }

    fn byte(&mut self) -> u8 {
        // Past the end the string starts anew, shifted, so that long descriptions do not run dry.
        let round = self.at / self.bytes.len();
        let byte = self.bytes[self.at % self.bytes.len()];
        self.at += 1;
        if byte == 0 { 0 } else { byte.rotate_left(3 * round as u32) }
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    /// Yes in one of `n` cases; never for a zero.
    pub fn one_in(&mut self, n: usize) -> bool {
        usize::from(self.byte()) % n == n - 1
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let at = self.below(from.len());
        from[at].clone()
    }

    /// Something of the list in one of `n` cases.
    pub fn maybe<T: Clone>(&mut self, n: usize, from: &[T]) -> Option<T> {
        let yes = self.one_in(n);
        let picked = self.pick(from);
        yes.then_some(picked)
    }
}
