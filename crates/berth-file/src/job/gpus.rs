//! The grammar of `gpus`: `1`, `H100:8`, `8xH100`, `L4`, `24GB+`, `0.5`, `H100:0.5`, `10GB`, `A100/1g.10gb:2`,
//! `L4/shared`, or a list of alternatives.

use super::parts::{GpuAmount, GpuChoice, Which};
use berth_model::{Bytes, MigProfile, Milli, Name};
use std::fmt;
use std::str::FromStr;

/// More than any machine has; a larger number is a slip.
const MOST: u32 = 1_024;

/// Stands for a share where a profile would.
const SHARED: &str = "shared";

/// The same of memory.
const MOST_MEMORY: Bytes = Bytes::gib(1 << 20);

/// Less memory than that is a slip.
const LEAST: Bytes = Bytes::mib(1);

const EXPECTED: &str = "GPUs such as 1, H100:8, 8xH100, L4, 24GB+, 0.5, 10GB, A100/1g.10gb, shared, or a list of alternatives";

/// Why a choice of GPUs could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found `{text}`, expected {expected}")]
pub struct ParseGpus {
    text: String,
    expected: String,
}

impl FromStr for GpuChoice {
    type Err = ParseGpus;

    fn from_str(text: &str) -> Result<GpuChoice, ParseGpus> {
        let bad =
            |expected: &'static str| ParseGpus { text: text.to_owned(), expected: expected.into() };
        let text = text.trim();
        if let Some((count, which)) = count_first(text) {
            return format!("{which}:{count}").parse().map_err(|_| bad(EXPECTED));
        }
        if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') && !text.contains('+') {
            return Ok(GpuChoice { which: Which::Any, amount: amount(text).map_err(bad)? });
        }
        let (which, count) = match text.split_once(':') {
            Some((which, count)) => (which, Some(amount(count).map_err(bad)?)),
            None => (text, None),
        };
        let (which, piece) = match which.split_once('/') {
            Some((which, piece)) => (self::which(which).map_err(bad)?, Some(piece)),
            None if which == SHARED => (Which::Any, Some(SHARED)),
            None => (self::which(which).map_err(bad)?, None),
        };
        let Some(piece) = piece else {
            return Ok(GpuChoice { which, amount: count.unwrap_or(GpuAmount::Whole(1)) });
        };
        if piece != SHARED && !MigProfile::exists(piece) {
            return Err(bad("a MIG profile after the slash, such as A100/1g.10gb, or `shared`"));
        }
        let count = match count {
            None => 1,
            Some(GpuAmount::Whole(count)) if count > 0 => count,
            Some(_) => return Err(bad("a whole number of MIG instances or shares, from 1")),
        };
        let amount = match piece {
            SHARED => GpuAmount::Shared(count),
            profile => GpuAmount::Mig { profile: Name::new(profile), count },
        };
        Ok(GpuChoice { which, amount })
    }
}

/// `8xH100` is `H100:8` in the order in which people say it.
fn count_first(text: &str) -> Option<(&str, &str)> {
    let (count, which) = text.split_once(['x', 'X'])?;
    let is_count = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    let is_model = which.starts_with(|c: char| c.is_ascii_alphabetic());
    (is_count && (is_model || which.ends_with('+'))).then_some((count, which))
}

fn which(text: &str) -> Result<Which, &'static str> {
    if let Some(memory) = text.strip_suffix('+') {
        let memory: Bytes = memory.parse().map_err(|_| EXPECTED)?;
        // Without a unit it would be bytes, which nobody means.
        return match memory {
            memory if memory < Bytes::gb(1) => {
                Err("at least a gigabyte of GPU memory, such as 24GB+")
            }
            memory if memory > MOST_MEMORY => Err("at most 1024TiB of GPU memory, such as 24GB+"),
            memory => Ok(Which::AtLeast(memory)),
        };
    }
    let word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let letters = text.starts_with(|c: char| c.is_ascii_alphabetic());
    match letters && text.chars().all(word) {
        true => Ok(Which::Model(Name::new(text))),
        false => Err(EXPECTED),
    }
}

fn amount(text: &str) -> Result<GpuAmount, &'static str> {
    let Ok(milli) = text.parse::<Milli>() else { return memory(text) };
    match milli.0 {
        ..0 => Err("no negative number of GPUs"),
        0 if !text.trim_matches(['0', '.']).is_empty() => Err("at least 0.001 of a GPU"),
        1..1_000 => Ok(GpuAmount::Part(milli)),
        n if n % 1_000 != 0 => Err("whole GPUs, or one part of a GPU that is less than 1"),
        n if n / 1_000 > i64::from(MOST) => Err("at most 1024 GPUs of one node"),
        n => Ok(GpuAmount::Whole((n / 1_000) as u32)),
    }
}

/// An amount with a unit is one of memory.
fn memory(text: &str) -> Result<GpuAmount, &'static str> {
    let bytes: Bytes = text.parse().map_err(|_| EXPECTED)?;
    match bytes {
        bytes if bytes < LEAST => Err("at least a mebibyte of GPU memory, such as 10GB"),
        bytes if bytes > MOST_MEMORY => Err("at most 1024TiB of GPU memory, such as 10GB"),
        bytes => Ok(GpuAmount::Memory(bytes)),
    }
}

impl fmt::Display for GpuChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GpuChoice { which, amount } = self;
        match (which, amount) {
            (Which::Any, GpuAmount::Whole(count)) => return write!(f, "{count}"),
            (Which::Any, GpuAmount::Part(part)) => return write!(f, "{part}"),
            (Which::Any, GpuAmount::Memory(bytes)) => return write!(f, "{bytes}"),
            (Which::Any, GpuAmount::Shared(1)) => return write!(f, "{SHARED}"),
            (Which::Any, GpuAmount::Shared(count)) => return write!(f, "{SHARED}:{count}"),
            // The grammar has no profile without a model; `which` writes nothing then.
            (Which::Any, GpuAmount::Mig { .. }) => {}
            (Which::Model(model), _) => write!(f, "{model}")?,
            (Which::AtLeast(memory), _) => write!(f, "{memory}+")?,
        }
        match amount {
            GpuAmount::Whole(1) => Ok(()),
            GpuAmount::Whole(count) => write!(f, ":{count}"),
            GpuAmount::Part(part) => write!(f, ":{part}"),
            GpuAmount::Memory(bytes) => write!(f, ":{bytes}"),
            GpuAmount::Shared(1) => write!(f, "/{SHARED}"),
            GpuAmount::Shared(count) => write!(f, "/{SHARED}:{count}"),
            GpuAmount::Mig { profile, count: 1 } => write!(f, "/{profile}"),
            GpuAmount::Mig { profile, count } => write!(f, "/{profile}:{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> GpuChoice {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn model(name: &str) -> Which {
        Which::Model(Name::new(name))
    }

    #[test]
    fn every_form_of_the_grammar_is_read() {
        let whole = GpuAmount::Whole;
        let mig = |profile: &str, count| GpuAmount::Mig { profile: Name::new(profile), count };
        for (text, which, amount) in [
            ("0", Which::Any, whole(0)),
            ("1", Which::Any, whole(1)),
            ("8", Which::Any, whole(8)),
            ("0.5", Which::Any, GpuAmount::Part(Milli(500))),
            ("H100:8", model("H100"), whole(8)),
            ("8xH100", model("H100"), whole(8)),
            ("4x24GB+", Which::AtLeast(Bytes::gb(24)), whole(4)),
            ("3xA100/2g.20gb", model("A100"), mig("2g.20gb", 3)),
            ("H100-80GB:2", model("H100-80GB"), whole(2)),
            ("L4", model("L4"), whole(1)),
            ("L4:0.25", model("L4"), GpuAmount::Part(Milli(250))),
            ("24GB+", Which::AtLeast(Bytes::gb(24)), whole(1)),
            ("40GiB+:4", Which::AtLeast(Bytes::gib(40)), whole(4)),
            ("A100/1g.10gb", model("A100"), mig("1g.10gb", 1)),
            ("A100/2g.20gb:3", model("A100"), mig("2g.20gb", 3)),
            ("10GB", Which::Any, GpuAmount::Memory(Bytes::gb(10))),
            ("H100:10GiB", model("H100"), GpuAmount::Memory(Bytes::gib(10))),
            ("24GB+:10GB", Which::AtLeast(Bytes::gb(24)), GpuAmount::Memory(Bytes::gb(10))),
            ("shared", Which::Any, GpuAmount::Shared(1)),
            ("L4/shared:2", model("L4"), GpuAmount::Shared(2)),
        ] {
            assert_eq!(read(text), GpuChoice { which, amount }, "{text}");
        }
    }

    #[test]
    fn what_is_written_reads_back_the_same() {
        let texts = "0 8 0.5 H100:8 L4 L4:0.25 24GB+ 24GB+:2 A100/1g.10gb:3 10GB H100:10GB \
                     24GB+:10GiB L4:1500MiB shared shared:2 L4/shared L4/shared:2 24GB+/shared";
        for text in texts.split_whitespace() {
            assert_eq!(read(text).to_string(), text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_was_expected() {
        for (text, says) in [
            ("1.5", "whole GPUs, or one part"),
            ("-1", "expected GPUs such as"),
            ("H100:many", "expected GPUs such as"),
            ("H100:-2", "no negative number"),
            ("24+", "at least a gigabyte"),
            ("A100/1g.999gb", "a MIG profile after the slash"),
            ("A100/1g.10gb:0.5", "a whole number of MIG instances"),
            ("shared:0.5", "a whole number of MIG instances or shares"),
            ("8xH100:2", "expected GPUs such as"),
            ("8x4", "expected GPUs such as"),
            ("xH100:0.5.1", "expected GPUs such as"),
            ("10B", "at least a mebibyte"),
            ("0.0001", "at least 0.001 of a GPU"),
            ("9999", "at most 1024"),
            ("99999TB", "at most 1024TiB"),
            ("9000TB+", "at most 1024TiB"),
            ("", "expected GPUs such as"),
            ("H 100", "expected GPUs such as"),
        ] {
            let error = text.parse::<GpuChoice>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
