//! A piece of a series as a few bytes: differences of neighbours, which are small, with runs of equal
//! ones told once.
//!
//! ```text
//! version, count, first time, step, then the times and each column with its code
//! times   differences between neighbours, less the step
//! column  for each point 0 where it is missing, else the difference to the one before, zigzag, + 1
//! ```
//!
//! Numbers are little-endian base 128. In a list each number is doubled; an odd one says that a count
//! follows, and the number is repeated so often.

use crate::figure::Column;
use crate::points::Points;
use berth_model::Time;
use std::collections::BTreeMap;

const VERSION: u64 = 1;
/// More points than any chunk has. What claims more is damaged.
const MOST_POINTS: usize = 100_000;
const MOST_COLUMNS: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk(pub Vec<u8>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("figures end in the middle of a number")]
    CutOff,
    #[error("figures of version {0} are not known; they were kept by a newer server")]
    Version(u64),
    #[error("figures are damaged")]
    Damaged,
}

impl Chunk {
    /// # Panics
    ///
    /// If there are more points than a chunk may have.
    pub fn encode(points: &Points) -> Chunk {
        assert!(points.len() <= MOST_POINTS, "a chunk of {} points", points.len());
        let mut bytes = Vec::new();
        let first = points.times.first().map_or(0, |time| time.0);
        let step = points.pace().0;
        put(&mut bytes, VERSION);
        put(&mut bytes, points.len() as u64);
        put(&mut bytes, zigzag(first));
        put(&mut bytes, zigzag(step));
        let pairs = points.times.windows(2);
        put_list(&mut bytes, pairs.map(|pair| zigzag(pair[1].0 - pair[0].0 - step)));
        put(&mut bytes, points.columns.len() as u64);
        for (column, values) in &points.columns {
            put(&mut bytes, column.code());
            let mut before = 0_i64;
            let tokens = values.iter().map(|value| match value {
                None => 0,
                Some(value) => {
                    // Wraps around with values that no device has, and back again when it is read.
                    let token = zigzag(value.wrapping_sub(before)).saturating_add(1);
                    before = *value;
                    token
                }
            });
            put_list(&mut bytes, tokens.collect::<Vec<u64>>().into_iter());
        }
        Chunk(bytes)
    }

    pub fn decode(&self) -> Result<Points, DecodeError> {
        let mut reader = Reader { bytes: &self.0 };
        match reader.number()? {
            VERSION => {}
            other => return Err(DecodeError::Version(other)),
        }
        let count = reader.count(MOST_POINTS)?;
        let (first, step) = (unzigzag(reader.number()?), unzigzag(reader.number()?));
        let mut times = Vec::with_capacity(count);
        if count > 0 {
            times.push(Time(first));
        }
        for off in reader.list(count.saturating_sub(1))? {
            let last = times.last().map_or(first, |time: &Time| time.0);
            let next = last.checked_add(step).and_then(|next| next.checked_add(unzigzag(off)));
            times.push(Time(next.filter(|next| *next > last).ok_or(DecodeError::Damaged)?));
        }
        let mut columns = BTreeMap::new();
        for _ in 0..reader.count(MOST_COLUMNS)? {
            let code = reader.number()?;
            let mut before = 0_i64;
            let values = reader.list(count)?.into_iter().map(|token| {
                let difference = unzigzag(token.checked_sub(1)?);
                before = before.wrapping_add(difference);
                Some(before)
            });
            let values: Vec<Option<i64>> = values.collect();
            // A figure that a newer server keeps is left out.
            if let Some(column) = Column::of_code(code) {
                columns.insert(column, values);
            }
        }
        Ok(Points { times, columns })
    }
}

const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn put(bytes: &mut Vec<u8>, number: u64) {
    put_wide(bytes, u128::from(number));
}

/// A doubled number may have one bit more.
fn put_wide(bytes: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_list(bytes: &mut Vec<u8>, numbers: impl Iterator<Item = u64>) {
    let mut numbers = numbers.peekable();
    while let Some(number) = numbers.next() {
        let mut times = 1_u64;
        while numbers.next_if_eq(&number).is_some() {
            times += 1;
        }
        let doubled = u128::from(number) << 1;
        if times == 1 {
            put_wide(bytes, doubled);
        } else {
            put_wide(bytes, doubled | 1);
            put(bytes, times);
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn wide(&mut self) -> Result<u128, DecodeError> {
        let mut number = 0_u128;
        for shift in (0..70).step_by(7) {
            let (byte, rest) = self.bytes.split_first().ok_or(DecodeError::CutOff)?;
            self.bytes = rest;
            number |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError::Damaged)
    }

    fn number(&mut self) -> Result<u64, DecodeError> {
        u64::try_from(self.wide()?).map_err(|_| DecodeError::Damaged)
    }

    fn count(&mut self, most: usize) -> Result<usize, DecodeError> {
        let count = usize::try_from(self.number()?).map_err(|_| DecodeError::Damaged)?;
        if count > most { Err(DecodeError::Damaged) } else { Ok(count) }
    }

    fn list(&mut self, count: usize) -> Result<Vec<u64>, DecodeError> {
        let mut list = Vec::with_capacity(count);
        while list.len() < count {
            let doubled = self.wide()?;
            let number = u64::try_from(doubled >> 1).map_err(|_| DecodeError::Damaged)?;
            let times = if doubled & 1 == 1 { self.count(count - list.len())? } else { 1 };
            if times == 0 {
                return Err(DecodeError::Damaged);
            }
            list.extend(std::iter::repeat_n(number, times));
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;
    use crate::points::Sample;

    /// A GPU that trains: everything but the energy stays about the same.
    fn training(count: i64) -> Points {
        let mut points = Points::default();
        for number in 0..count {
            let wave = number * 7_919 % 23;
            let values = [
                (Figure::Utilization, 990 + wave % 10),
                (Figure::SmActive, 870 + wave),
                (Figure::TensorActive, 640 + wave),
                (Figure::DramActive, 310 + wave),
                (Figure::GpuMemory, 71_424),
                (Figure::Power, 650_000 + wave * 800),
                (Figure::Energy, 1_000_000_000 + number * 3_250_000 + wave * 1_000),
                (Figure::SmClock, 1_530 + wave % 3 * 15),
                (Figure::ClockReasons, 4),
                (Figure::Temperature, 61 + wave % 2),
            ];
            let at = Time(1_700_000_000_000 + number * 5_000 + wave % 4);
            points.push(&Sample { at, values: values.into_iter().collect() });
        }
        points
    }

    #[test]
    fn what_was_kept_is_read_again() {
        for points in [Points::default(), training(1), training(2), training(720)] {
            assert_eq!(Chunk::encode(&points).decode(), Ok(points));
        }
        let mut odd = Points::default();
        for (number, value) in [i64::MAX, i64::MIN, 0, -1, 1].into_iter().enumerate() {
            let values = [(Figure::Energy, value)].into_iter().collect();
            odd.push(&Sample { at: Time(number as i64 * 1_000), values });
        }
        let read = Chunk::encode(&odd).decode().unwrap();
        assert_eq!(read.times, odd.times);
    }

    #[test]
    fn a_day_of_a_busy_gpu_takes_less_than_a_megabyte() {
        // Every five seconds, in chunks of a quarter of an hour, and as text in a database.
        let bytes = Chunk::encode(&training(180)).0.len() * 96 * 4 / 3;
        assert!(bytes < 600_000, "{bytes} bytes");
        // An idle GPU takes next to nothing.
        let mut idle = Points::default();
        for number in 0..720 {
            let values = [(Figure::Utilization, 0), (Figure::Power, 75_000)].into_iter().collect();
            idle.push(&Sample { at: Time(number * 5_000), values });
        }
        let bytes = Chunk::encode(&idle).0.len();
        assert!(bytes < 32, "{bytes} bytes");
    }

    #[test]
    fn damaged_figures_are_refused_and_never_panic() {
        let Chunk(bytes) = Chunk::encode(&training(50));
        for end in 0..bytes.len() {
            assert!(Chunk(bytes[..end].to_vec()).decode().is_err(), "{end}");
        }
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                // Some changes are other figures; none may be a fault.
                let _ = Chunk(damaged).decode();
            }
        }
        assert_eq!(Chunk(vec![9]).decode(), Err(DecodeError::Version(9)));
        let many = [vec![1], vec![0xff; 8], vec![1]].concat();
        assert_eq!(Chunk(many).decode(), Err(DecodeError::Damaged));
    }
}
