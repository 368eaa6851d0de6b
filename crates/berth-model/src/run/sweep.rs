//! Parameters that a job is tried with: each combination is one element of an array.

use serde::{Deserialize, Serialize};

/// Parameters and their values. An element's number stands for one value of each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    pub how: How,
    /// In the order they were written.
    pub parameters: Vec<Parameter>,
    pub at_most: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Every value of each with every value of the others; the last parameter varies fastest.
    Product,
    /// The first values together, then the second ones.
    Zip,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Also the name of the variable that a run finds its value in.
    pub name: String,
    pub values: Vec<String>,
}

impl Sweep {
    /// How many combinations there are; `None` where nobody could count them.
    pub fn len(&self) -> Option<u64> {
        let mut lengths = self.parameters.iter().map(|parameter| parameter.values.len() as u64);
        match self.how {
            How::Product => lengths.try_fold(1u64, u64::checked_mul),
            How::Zip => Some(lengths.next().unwrap_or(0)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// The values that an element stands for, in the order of the parameters.
    pub fn values(&self, element: u32) -> Vec<(&str, &str)> {
        let mut rest = element as usize;
        let mut chosen: Vec<(&str, &str)> = self
            .parameters
            .iter()
            .rev()
            .map(|Parameter { name, values }| {
                let index = match self.how {
                    How::Zip => element as usize,
                    How::Product => {
                        let index = rest % values.len();
                        rest /= values.len();
                        index
                    }
                };
                (name.as_str(), values[index].as_str())
            })
            .collect();
        chosen.reverse();
        chosen
    }
}

/// A text with `$name` and `${name}` of these parameters replaced. Other variables stay.
pub(super) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match variable(rest) {
            Some((name, length)) if values.iter().any(|(known, _)| *known == name) => {
                let value = values.iter().find(|(known, _)| *known == name);
                out.push_str(value.map_or("", |(_, value)| value));
                rest = &rest[length..];
            }
            _ => {
                out.push('$');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The variable that a text starts with, and how long it is with its marks.
fn variable(text: &str) -> Option<(&str, usize)> {
    if let Some(braced) = text.strip_prefix("${") {
        let end = braced.find('}')?;
        return Some((&braced[..end], end + 3));
    }
    let bare = text.strip_prefix('$')?;
    let end = bare.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(bare.len());
    Some((&bare[..end], end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(how: How, parameters: &[(&str, &[&str])]) -> Sweep {
        let parameter = |(name, values): &(&str, &[&str])| Parameter {
            name: (*name).to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        Sweep { how, parameters: parameters.iter().map(parameter).collect(), at_most: None }
    }

    fn all(sweep: &Sweep) -> Vec<String> {
        let text = |element| {
            let values = sweep.values(element).into_iter();
            values.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        (0..sweep.len().unwrap() as u32).map(text).collect()
    }

    #[test]
    fn a_product_has_every_combination_and_the_last_parameter_varies_fastest() {
        let sweep = sweep(How::Product, &[("lr", &["1", "2"]), ("seed", &["a", "b", "c"])]);
        assert_eq!(
            all(&sweep),
            [
                "lr=1 seed=a",
                "lr=1 seed=b",
                "lr=1 seed=c",
                "lr=2 seed=a",
                "lr=2 seed=b",
                "lr=2 seed=c"
            ]
        );
    }

    #[test]
    fn a_zip_takes_the_values_side_by_side() {
        let sweep = sweep(How::Zip, &[("lr", &["1", "2"]), ("seed", &["a", "b"])]);
        assert_eq!(all(&sweep), ["lr=1 seed=a", "lr=2 seed=b"]);
    }

    #[test]
    fn only_the_sweeps_own_variables_are_replaced() {
        let values = [("lr", "3e-4"), ("n", "8")];
        for (text, expect) in [
            ("--lr=$lr", "--lr=3e-4"),
            ("${lr}x$n", "3e-4x8"),
            ("$lrs $HOME ${HOME}", "$lrs $HOME ${HOME}"),
            ("cost $ and ${lr", "cost $ and ${lr"),
            ("$$lr", "$3e-4"),
        ] {
            assert_eq!(fill(text, &values), expect, "{text}");
        }
    }
}
