//! What a process has used so far, as the kernel counts it.

use std::fs;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Time on a processor, of all threads, in steps of about 10 ms.
    pub cpu: Duration,
    /// Memory that it holds now.
    pub resident_bytes: u64,
}

impl Usage {
    /// Of any process; nothing when there is no such one.
    pub fn of(process: u32) -> Option<Usage> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let page = u64::try_from(rustix::param::page_size()).expect("a page is small");
        parse(&text, rustix::param::clock_ticks_per_second(), page)
    }
}

fn parse(stat: &str, ticks_per_second: u64, page_bytes: u64) -> Option<Usage> {
    // The second field is the program's name, in which anything may stand, also spaces and
    // parentheses. What follows the last one begins with the third field.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = field(14)? + field(15)?;
    let cpu = Duration::from_millis(ticks * 1000 / ticks_per_second);
    Some(Usage { cpu, resident_bytes: field(24)? * page_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_odd_name_does_not_shift_the_fields() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 0 1 2 3 4 150 50 0 0 20 0 9 0 5 1000 30 99";
        let usage = Usage { cpu: Duration::from_secs(2), resident_bytes: 30 * 4096 };
        assert_eq!(parse(stat, 100, 4096), Some(usage));
    }

    #[test]
    fn a_process_that_works_uses_a_processor() {
        let before = Usage::of(std::process::id()).expect("we run").cpu;
        let mut sum = 0u64;
        crate::until("the kernel counts our work", || {
            sum = (0..1_000_000u64).fold(sum, |sum, x| std::hint::black_box(sum ^ x));
            Usage::of(std::process::id()).expect("we run").cpu > before
        });
        assert!(Usage::of(std::process::id()).expect("we run").resident_bytes > 0);
    }
}
