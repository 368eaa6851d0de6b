//! Who used the energy of GPUs: what their counters gained is split among those who held them.

use berth_model::{LeaseId, Time};
use std::collections::BTreeMap;

/// A counter that is lower by at most this (in millijoules) was read a moment before one that was
/// seen already. One that is lower by more began anew.
const LATE_READING: i64 = 60_000_000;

/// A part of a GPU that a task holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldGpu {
    pub gpu: u32,
    /// Thousandths of it.
    pub milli: i64,
}

/// Energy of one lease, in millijoules, from one moment to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    pub lease: LeaseId,
    pub from: Time,
    pub to: Time,
    pub energy_mj: i64,
    /// Nothing will be added.
    pub is_over: bool,
    /// Where the counters of its GPUs stood at the end.
    pub counters: BTreeMap<u32, i64>,
}

/// Of the GPUs of one node.
#[derive(Debug, Default)]
pub struct Meter {
    counters: BTreeMap<u32, i64>,
    holders: BTreeMap<LeaseId, Holder>,
}

#[derive(Debug)]
struct Holder {
    parts: Vec<HeldGpu>,
    /// Where the counters of its GPUs stood when it began.
    first: BTreeMap<u32, i64>,
    from: Time,
    to: Time,
    energy_mj: i64,
    over: bool,
}

impl Meter {
    /// What a counter says now. Who holds the GPU since the last reading has used the difference,
    /// each by its part. A counter begins anew at nought when the driver is loaded.
    pub fn read(&mut self, gpu: u32, counter: i64, at: Time) {
        let before = self.counters.get(&gpu).copied();
        let grown = match before {
            Some(before) if counter >= before => counter - before,
            Some(before) if before - counter <= LATE_READING => return,
            Some(_) => counter.max(0),
            None => 0,
        };
        self.counters.insert(gpu, counter);
        let holders = self.holders.values_mut().filter(|holder| !holder.over);
        let holders = holders.map(|holder| (holder.part_of(gpu), holder));
        let holders: Vec<(i64, &mut Holder)> = holders.filter(|(part, _)| *part > 0).collect();
        let mut parts_left: i64 = holders.iter().map(|(part, _)| part).sum();
        let mut left = grown;
        for (part, holder) in holders {
            // Of what is left, so that the sum is exact.
            let own = i64::try_from(i128::from(left) * i128::from(part) / i128::from(parts_left))
                .expect("a part is no more than the whole");
            left -= own;
            parts_left -= part;
            holder.energy_mj += own;
            holder.to = at;
        }
    }

    /// A lease begins to hold GPUs, or was found holding them. Their counters have just been read.
    pub fn begin(&mut self, lease: LeaseId, parts: Vec<HeldGpu>, at: Time) {
        let known =
            parts.iter().filter_map(|part| Some((part.gpu, *self.counters.get(&part.gpu)?)));
        let first = known.collect();
        let holder = Holder { parts, first, from: at, to: at, energy_mj: 0, over: false };
        self.holders.entry(lease).or_insert(holder);
    }

    /// A lease has run since an earlier meter wrote down where its counters stood. It has used what
    /// they gained until it began with this one.
    pub fn resume(&mut self, lease: LeaseId, counters: &BTreeMap<u32, i64>) {
        let Some(holder) = self.holders.get(&lease) else { return };
        let missed = holder.parts.iter().filter_map(|HeldGpu { gpu, milli }| {
            let gained = holder.first.get(gpu)?.checked_sub(*counters.get(gpu)?)?.max(0);
            let all: i64 = self.holders.values().map(|holder| holder.part_of(*gpu)).sum();
            i64::try_from(i128::from(gained) * i128::from(*milli) / i128::from(all.max(1))).ok()
        });
        let missed: i64 = missed.sum();
        if let Some(holder) = self.holders.get_mut(&lease) {
            holder.energy_mj += missed;
        }
    }

    /// A lease has ended. Its counters have just been read.
    pub fn end(&mut self, lease: LeaseId) {
        if let Some(holder) = self.holders.get_mut(&lease) {
            holder.over = true;
        }
        self.forget_ended();
    }

    /// The GPUs that a lease holds.
    pub fn gpus_of(&self, lease: LeaseId) -> Vec<u32> {
        let holder = self.holders.get(&lease);
        holder.into_iter().flat_map(|holder| &holder.parts).map(|part| part.gpu).collect()
    }

    /// The energy of each lease since it began, or since [`Meter::written`]. The same again until
    /// that is said.
    pub fn used(&self) -> Vec<Used> {
        let used = self.holders.iter().filter(|(_, holder)| holder.energy_mj > 0);
        let used = used.map(|(lease, holder)| {
            let gpus = holder.parts.iter().map(|part| part.gpu);
            let counters = gpus.filter_map(|gpu| Some((gpu, *self.counters.get(&gpu)?)));
            Used {
                lease: *lease,
                from: holder.from,
                to: holder.to,
                energy_mj: holder.energy_mj,
                is_over: holder.over,
                counters: counters.collect(),
            }
        });
        used.collect()
    }

    /// So much is written down for good. What comes later is written beside it.
    pub fn written(&mut self, used: &Used) {
        if let Some(holder) = self.holders.get_mut(&used.lease) {
            holder.energy_mj -= used.energy_mj;
            holder.from = used.to;
        }
        self.forget_ended();
    }

    fn forget_ended(&mut self) {
        self.holders.retain(|_, holder| !(holder.over && holder.energy_mj == 0));
    }
}

impl Holder {
    fn part_of(&self, gpu: u32) -> i64 {
        self.parts.iter().filter(|part| part.gpu == gpu).map(|part| part.milli).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::JobId;

    fn lease(number: u64) -> LeaseId {
        LeaseId { job: JobId::new(number), task: 0, attempt: 1 }
    }

    fn part(gpu: u32, milli: i64) -> Vec<HeldGpu> {
        vec![HeldGpu { gpu, milli }]
    }

    fn shown(meter: &Meter) -> Vec<(u64, i64)> {
        meter.used().iter().map(|used| (used.lease.job.number, used.energy_mj)).collect()
    }

    #[test]
    fn a_job_has_what_its_gpu_used_while_it_held_it_and_nothing_from_before() {
        let mut meter = Meter::default();
        meter.read(0, 1_000_000, Time(0));
        meter.begin(lease(1), part(0, 1_000), Time(0));
        meter.read(0, 1_400_000, Time(1_000));
        meter.end(lease(1));
        meter.read(0, 1_450_000, Time(2_000));
        meter.begin(lease(2), part(0, 1_000), Time(2_000));
        meter.read(0, 1_500_000, Time(3_000));
        assert_eq!(shown(&meter), [(1, 400_000), (2, 50_000)]);
    }

    #[test]
    fn jobs_that_share_a_gpu_share_its_energy_by_their_parts_to_the_last_millijoule() {
        let mut meter = Meter::default();
        meter.begin(lease(1), part(0, 500), Time(0));
        meter.begin(lease(2), part(0, 250), Time(0));
        meter.begin(lease(3), part(1, 1_000), Time(0));
        meter.read(0, 0, Time(0));
        meter.read(0, 1_000, Time(1_000));
        assert_eq!(shown(&meter), [(1, 666), (2, 334)]);
    }

    #[test]
    fn a_counter_that_begins_anew_counts_from_nought_and_a_late_reading_does_not_count() {
        let mut meter = Meter::default();
        meter.read(0, 900_000_000, Time(0));
        meter.begin(lease(1), part(0, 1_000), Time(0));
        meter.read(0, 899_990_000, Time(500));
        assert_eq!(shown(&meter), []);
        meter.read(0, 70, Time(1_000));
        assert_eq!(shown(&meter), [(1, 70)]);
    }

    #[test]
    fn what_is_written_down_is_not_written_twice_and_a_new_meter_goes_on_from_it() {
        let mut meter = Meter::default();
        meter.read(0, 0, Time(0));
        meter.begin(lease(1), part(0, 1_000), Time(0));
        meter.read(0, 100, Time(1_000));
        let first = meter.used();
        meter.read(0, 130, Time(2_000));
        meter.written(&first[0]);
        assert_eq!(shown(&meter), [(1, 30)]);

        // The server was killed here; the job went on.
        let mut next = Meter::default();
        next.read(0, 350, Time(5_000));
        next.begin(lease(1), part(0, 1_000), Time(5_000));
        next.read(0, 400, Time(6_000));
        next.resume(lease(1), &first[0].counters);
        assert_eq!(shown(&next), [(1, 300)]);
        next.end(lease(1));
        let last = next.used();
        next.written(&last[0]);
        assert_eq!(next.used(), []);
    }
}
