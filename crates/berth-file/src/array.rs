//! The elements of an array job, as Slurm writes them.

use crate::error::{Error, Result};
use crate::fields::text;
use crate::out::Out;
use crate::tree::Node;
use berth_model::ArraySpec;

/// A text of a few kilobytes could otherwise name billions.
const MOST_ELEMENTS: usize = 2_000_000;

/// `0-99%10`, `1,3,5-9` or `0-99:5`.
pub(crate) fn read(node: &Node) -> Result<ArraySpec> {
    let expected = "elements such as 0-99, 1,3,5-9 or 0-99%10 for ten at once";
    let bad = || Error::expected(node.at, &node.found(), expected);
    let found = text(node, expected)?;
    let (elements, at_most) = match found.split_once('%') {
        Some((elements, most)) => (elements, Some(most.parse().map_err(|_| bad())?)),
        None => (found, None),
    };
    let mut numbers: Vec<u32> = Vec::new();
    for part in elements.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| bad());
        let (from, to, step) = (number(from)?, number(to)?, number(step)?);
        if from > to || step == 0 || to - from > 1_000_000 {
            return Err(bad());
        }
        numbers.extend((from..=to).step_by(step as usize));
        if numbers.len() > MOST_ELEMENTS {
            return Err(bad());
        }
    }
    Ok(ArraySpec { elements: numbers, at_most })
}

pub(crate) fn write(ArraySpec { elements, at_most }: &ArraySpec) -> Out {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for element in elements {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*element) => *last = *element,
            _ => ranges.push((*element, *element)),
        }
    }
    let mut text = ranges
        .iter()
        .map(|(from, to)| if from == to { from.to_string() } else { format!("{from}-{to}") })
        .collect::<Vec<_>>()
        .join(",");
    if let Some(most) = at_most {
        text.push_str(&format!("%{most}"));
    }
    // A comma would end the value inside braces.
    if text.contains(',') { Out::Text(text) } else { Out::Raw(text) }
}
