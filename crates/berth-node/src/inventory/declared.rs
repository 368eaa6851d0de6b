//! GPUs that a user says are there: `8xH100` or `H100:8`, `4xH100,2xL4`, `0`.

use super::{Device, model};
use berth_model::{Bytes, Health, Name};
use std::str::FromStr;

/// More on one machine is a slip of the finger.
const MOST: u32 = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    groups: Vec<(u32, Name, Bytes)>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseDeclared {
    #[error("{text:?} is not a number of GPUs; write 8xH100, 4xH100,2xL4 or 0")]
    Malformed { text: String },
    #[error("{count} GPUs are more than the {MOST} that one machine may have")]
    TooMany { count: u64 },
    #[error(
        "no GPU model is called {model:?}; known are {}. Give the memory of any other, as in {model}-48GB",
        known.join(", ")
    )]
    UnknownModel { model: String, known: Vec<&'static str> },
}

impl FromStr for Declared {
    type Err = ParseDeclared;

    fn from_str(text: &str) -> Result<Declared, ParseDeclared> {
        if text.trim() == "0" {
            return Ok(Declared { groups: Vec::new() });
        }
        let groups: Vec<_> = text.split(',').map(parse_group).collect::<Result<_, _>>()?;
        let count: u64 = groups.iter().map(|(count, ..)| u64::from(*count)).sum();
        if count > u64::from(MOST) {
            return Err(ParseDeclared::TooMany { count });
        }
        Ok(Declared { groups })
    }
}

fn parse_group(text: &str) -> Result<(u32, Name, Bytes), ParseDeclared> {
    let malformed = || ParseDeclared::Malformed { text: text.trim().to_owned() };
    let (count, word) = match text.trim().split_once(['x', 'X']) {
        Some((count, word)) if count.bytes().all(|b| b.is_ascii_digit()) && !count.is_empty() => {
            (count.parse().map_err(|_| malformed())?, word)
        }
        // `H100:8` is how a job asks for the same.
        _ => match text.trim().rsplit_once(':') {
            Some((word, count)) => (count.trim().parse().map_err(|_| malformed())?, word.trim()),
            // `H100` alone is one of them; a name may have an x in it.
            None => (1, text.trim()),
        },
    };
    if word.is_empty() || word.bytes().all(|b| b.is_ascii_digit()) {
        return Err(malformed());
    }
    let (name, memory) = model::declared(word).ok_or_else(|| ParseDeclared::UnknownModel {
        model: word.to_owned(),
        known: model::families(),
    })?;
    Ok((count, name, memory))
}

impl Declared {
    pub fn devices(&self) -> Vec<Device> {
        let each = self.groups.iter().flat_map(|(count, name, memory)| {
            std::iter::repeat_n((name.clone(), *memory), *count as usize)
        });
        let device = |(index, (model, memory))| Device {
            index,
            uuid: None,
            minor: None,
            model,
            memory,
            health: Health::Ok,
            mig: None,
        };
        (0..).zip(each).map(device).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let found = match text.parse::<Declared>() {
            Ok(declared) => {
                let devices = declared.devices();
                let shown = devices.iter().map(|d| format!("{}:{}", d.index, d.model));
                shown.collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn declarations_are_read() {
        check("0", "");
        check("2xH100", "0:H100-80GB 1:H100-80GB");
        check("H100:2", "0:H100-80GB 1:H100-80GB");
        check("H100-80GB:1,l4:2", "0:H100-80GB 1:L4-24GB 2:L4-24GB");
        check("H100:many", "\"H100:many\" is not a number of GPUs; write 8xH100, 4xH100,2xL4 or 0");
        check("1xH100, 2xl4", "0:H100-80GB 1:L4-24GB 2:L4-24GB");
        check("RTX4090", "0:RTX4090-24GB");
        check("1xMI300X-192GB", "0:MI300X-192GB");
    }

    #[test]
    fn mistakes_are_told_with_the_way_out() {
        check("8", "\"8\" is not a number of GPUs; write 8xH100, 4xH100,2xL4 or 0");
        check("", "\"\" is not a number of GPUs; write 8xH100, 4xH100,2xL4 or 0");
        check("2000xH100", "2000 GPUs are more than the 1024 that one machine may have");
        check(
            "8xK80",
            "no GPU model is called \"K80\"; known are B200, H200, GH200, H100, A100, L40S, L40, \
             A40, RTX4090, A10, L4, V100, T4. Give the memory of any other, as in K80-48GB",
        );
    }
}
