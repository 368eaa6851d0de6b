//! Amounts as people read them.

use super::Tone;
use berth_api::wire::JobState;
use berth_model::{Micros, Milli};
use std::collections::BTreeMap;

/// The two largest units that say something: `45s`, `14m`, `2h5m`, `3d4h`.
pub fn span(ms: i64) -> String {
    let seconds = ms.max(0) / 1_000;
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    let pair = |large: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{large}{unit}"),
        _ => format!("{large}{unit}{small}{small_unit}"),
    };
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, 1..=9) => pair(minutes, "m", rest, "s"),
        (0, 0, _) => format!("{minutes}m"),
        (0, _, _) => pair(hours, "h", minutes, "m"),
        _ => pair(days, "d", hours, "h"),
    }
}

/// `$1,214.50`; less than a cent is said to be that.
pub fn money(micros: i64) -> String {
    Micros(micros).money()
}

pub fn maybe_money(micros: Option<i64>) -> String {
    micros.map_or_else(String::new, money)
}

/// `12,345`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `8`, `0.5`; a star for GPUs that are declared.
pub fn gpus(milli: i64, declared: bool) -> String {
    let star = if declared && milli > 0 { "*" } else { "" };
    format!("{}{star}", Milli(milli))
}

/// What the star says.
pub const DECLARED: &str = "* declared GPUs: jobs run for real, the GPUs do not exist";

/// `80 GiB`, `512 MiB`: to the next lower tenth.
pub fn bytes(bytes: i64) -> String {
    const UNITS: [(&str, i64); 4] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let Some((unit, size)) = UNITS.into_iter().find(|(_, size)| bytes >= *size) else {
        return format!("{bytes} B");
    };
    match (bytes / size, bytes % size * 10 / size) {
        (whole, 0) => format!("{whole} {unit}"),
        (whole, tenth) => format!("{whole}.{tenth} {unit}"),
    }
}

/// What a job asks for, as a sentence has it: a number alone is one of GPUs.
pub fn asks(asks: &str) -> String {
    let gpus = |number: &str| match number.parse::<Milli>() {
        Ok(Milli(0)) => "no GPU".to_owned(),
        Ok(Milli(1_000)) => "1 GPU".to_owned(),
        Ok(Milli(1..1_000)) => format!("{number} of a GPU"),
        Ok(_) => format!("{number} GPUs"),
        Err(_) => number.to_owned(),
    };
    match asks.split_once(" x ") {
        Some((nodes, each)) => format!("{nodes} x {}", gpus(each)),
        None => gpus(asks),
    }
}

/// Hours of one GPU, from milliseconds: `0.0014`, `3.25`, `1,204.5`.
pub fn gpu_hours(gpu_ms: i64) -> String {
    let tenth_millis = (gpu_ms.max(0).unsigned_abs() + 180) / 360;
    let (whole, rest) = (tenth_millis / 10_000, tenth_millis % 10_000);
    match (whole, rest) {
        (0, 0) if gpu_ms > 0 => "<0.0001".to_owned(),
        (0, 0) => "0".to_owned(),
        (0, rest) => format!("0.{rest:04}"),
        (1..100, rest) => format!("{whole}.{:02}", rest / 100),
        (whole, rest) => format!("{}.{}", thousands(whole), rest / 1_000),
    }
}

/// Of joules: `900 J`, `2.00 kWh`.
pub fn energy(joules: i64) -> String {
    match joules {
        0..3_600 => format!("{joules} J"),
        _ => format!("{}.{:02} kWh", joules / 3_600_000, joules % 3_600_000 / 36_000),
    }
}

/// Of milligrams: `0.4 g`, `760 g`, `12.3 kg`.
pub fn grams(milligrams: i64) -> String {
    match milligrams {
        0..10_000 => format!("{}.{} g", milligrams / 1_000, milligrams % 1_000 / 100),
        10_000..10_000_000 => format!("{} g", milligrams / 1_000),
        _ => format!("{}.{} kg", milligrams / 1_000_000, milligrams % 1_000_000 / 100_000),
    }
}

/// `1st`, `2nd`, `3rd`, `11th`.
pub fn ordinal(number: u32) -> String {
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

pub fn count(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", thousands(number))
}

/// `lr=1e-4 seed=3`: the values of a sweep.
pub fn parameters(all: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}

pub fn state_tone(state: JobState) -> Tone {
    match state {
        JobState::Pending | JobState::Starting | JobState::Stopping => Tone::Busy,
        JobState::Running | JobState::Done => Tone::Good,
        JobState::Paused | JobState::Cancelled => Tone::Quiet,
        JobState::Failed => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_at_most_two_units() {
        let shown = [0, 45_000, 150_000, 840_000, 7_500_000, 7_200_000, 273_600_000].map(span);
        assert_eq!(shown, ["0s", "45s", "2m30s", "14m", "2h5m", "2h", "3d4h"]);
        assert_eq!(span(-5), "0s");
    }

    #[test]
    fn money_is_rounded_to_cents_and_never_to_nothing() {
        let shown = [0, 4_200, 1_214_500_000, 2_994_999, -1_500_000, i64::MAX].map(money);
        let expect = ["$0.00", "<$0.01", "$1,214.50", "$2.99", "-$1.50", "$9,223,372,036,854.78"];
        assert_eq!(shown, expect);
    }

    #[test]
    fn a_number_alone_is_one_of_gpus() {
        let shown = ["1", "8", "0", "0.5", "H100:8", "2 x 1", "2 x H100:8", ""].map(asks);
        let expect =
            ["1 GPU", "8 GPUs", "no GPU", "0.5 of a GPU", "H100:8", "2 x 1 GPU", "2 x H100:8", ""];
        assert_eq!(shown, expect);
    }

    #[test]
    fn declared_gpus_are_marked() {
        assert_eq!([gpus(8_000, false), gpus(500, true), gpus(0, true)], ["8", "0.5*", "0"]);
    }

    #[test]
    fn sizes_and_places_read_as_people_say_them() {
        let shown = [80 << 30, (3 << 29) + 7, 512 << 20, 12].map(bytes);
        assert_eq!(shown, ["80 GiB", "1.5 GiB", "512 MiB", "12 B"]);
        let places = [1, 2, 3, 4, 11, 12, 13, 21, 112].map(ordinal);
        assert_eq!(places, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th"]);
        let hours = [0, 100, 5_000, 3_600_000, 3_600_000 * 1_204 + 1_800_000].map(gpu_hours);
        assert_eq!(hours, ["0", "<0.0001", "0.0014", "1.00", "1,204.5"]);
        assert_eq!([count(1, "job"), count(2_000, "job")], ["1 job", "2,000 jobs"]);
    }
}
