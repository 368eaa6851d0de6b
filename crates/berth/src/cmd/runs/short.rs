//! Short names of Berth's own metrics and tags.

/// A short name for columns, sort keys and filters, and its key.
const SHORT: [(&str, &str); 7] = [
    ("cost", "metrics.berth.cost"),
    ("gpu-hours", "metrics.berth.gpu_hours"),
    ("energy", "metrics.berth.energy_kwh"),
    ("gpu-use", "metrics.berth.gpu_use"),
    ("job", "tags.`berth.job`"),
    ("project", "tags.`berth.project`"),
    ("gpus", "tags.`berth.gpus`"),
];

/// The key of a short name.
pub fn key(name: &str) -> &str {
    SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, key)| key)
}

/// Expands short names on the left sides of a filter's comparisons.
pub fn filter(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut begins = true;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' | '`' => {
                let end = rest[1..].find(first).map(|at| at + 2);
                end.unwrap_or(rest.len())
            }
            c if is_of_word(c) => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        if begins && is_of_word(first) {
            out.push_str(key(word));
        } else {
            out.push_str(word);
        }
        if !first.is_whitespace() {
            begins = word.eq_ignore_ascii_case("and");
        }
        rest = after;
    }
    out
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || "._-".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_may_begin_with_a_short_name_and_values_stay_as_they_are() {
        for (text, whole) in [
            ("cost < 50", "metrics.berth.cost < 50"),
            (
                "cost<50 and  gpu-hours >= 1 AND params.lr = '0.1'",
                "metrics.berth.cost<50 and  metrics.berth.gpu_hours >= 1 AND params.lr = '0.1'",
            ),
            ("job = '17' AND tags.job = 'cost'", "tags.`berth.job` = '17' AND tags.job = 'cost'"),
            ("params.cost = 'x and cost'", "params.cost = 'x and cost'"),
            ("metrics.`cost` > 1", "metrics.`cost` > 1"),
            ("tags.a = 'it", "tags.a = 'it"),
            ("", ""),
        ] {
            assert_eq!(filter(text), whole);
        }
    }
}
