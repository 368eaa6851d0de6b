//! The way between the machine's memory and the GPU's: PCIe, as a rule.

use crate::board::Board;
use crate::cuda::{Doing, Error, Gpu};
use crate::measured::Link;
use crate::memory::{mb_per_s, median};

const BYTES: usize = 256 << 20;
const COPIES: usize = 10;

pub fn measure(gpu: &Gpu, board: Option<&Board>, step: &dyn Fn(&str)) -> Result<Link, Error> {
    step("reserving pinned memory");
    let mut pinned = gpu.pinned(BYTES)?;
    let mut area = gpu.zeros::<u8>(BYTES)?;
    let mut times = (Vec::new(), Vec::new());
    step("copying to the GPU");
    for _ in 0..COPIES {
        let start = gpu.mark()?;
        gpu.stream.memcpy_htod(&pinned, &mut area).doing("copying to the GPU")?;
        let end = gpu.mark()?;
        times.0.push(start.elapsed_ms(&end).doing("copying to the GPU")?);
    }
    // A link that nobody uses slows down by itself, so it is asked now.
    let used = board.and_then(Board::link_in_use);
    step("copying from the GPU");
    for _ in 0..COPIES {
        let start = gpu.mark()?;
        gpu.stream.memcpy_dtoh(&area, &mut pinned).doing("copying from the GPU")?;
        let end = gpu.mark()?;
        times.1.push(start.elapsed_ms(&end).doing("copying from the GPU")?);
    }
    Ok(Link {
        to_gpu_mb_per_s: mb_per_s(BYTES, median(times.0)),
        from_gpu_mb_per_s: mb_per_s(BYTES, median(times.1)),
        best: board.and_then(Board::best_link),
        used,
    })
}
