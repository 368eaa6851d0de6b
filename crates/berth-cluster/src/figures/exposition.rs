//! The text in which exporters tell their metrics, as Prometheus reads it. It comes from programs
//! that are not ours: whatever cannot be read costs its line and nothing else.

use std::borrow::Cow;

/// Letters of a line, and labels of a metric: more than any exporter writes.
const LONGEST_LINE: usize = 16 << 10;
const MOST_LABELS: usize = 128;

/// One value of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric<'a> {
    pub name: &'a str,
    pub labels: Vec<(&'a str, Cow<'a, str>)>,
    /// It may be no number.
    pub value: f64,
}

impl Metric<'_> {
    /// The label that has one of these names and says something; the first name goes first.
    pub fn label(&self, names: &[&str]) -> Option<&str> {
        let of =
            |name: &&str| self.labels.iter().find(|(key, value)| key == name && !value.is_empty());
        names.iter().find_map(of).map(|(_, value)| &**value)
    }
}

/// A line that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// The metrics whose names are wanted, in their order. The others are not looked at.
pub fn metrics<'a>(
    text: &'a str,
    is_wanted: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Result<Metric<'a>, Unreadable>> {
    text.lines().filter_map(move |line| {
        let line = line.trim();
        let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
        let (name, rest) = line.split_at(end);
        // Comments begin with a name that nobody wants.
        is_wanted(name).then(|| metric(name, rest))
    })
}

fn metric<'a>(name: &'a str, rest: &'a str) -> Result<Metric<'a>, Unreadable> {
    if rest.len() > LONGEST_LINE {
        return Err(Unreadable);
    }
    let (labels, rest) = match rest.trim_start().strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    // What may follow the value is when it was taken.
    let value = rest.split_whitespace().next().ok_or(Unreadable)?;
    let value = value.parse::<f64>().map_err(|_| Unreadable)?;
    Ok(Metric { name, labels, value })
}

type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// Up to the closing brace, and what comes after it.
fn labels(mut rest: &str) -> Result<(Labels<'_>, &str), Unreadable> {
    let mut labels = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((labels, after));
        }
        let (key, after) = rest.split_once('=').ok_or(Unreadable)?;
        let quoted = after.trim_start().strip_prefix('"').ok_or(Unreadable)?;
        let end = closing_quote(quoted).ok_or(Unreadable)?;
        if labels.len() == MOST_LABELS {
            return Err(Unreadable);
        }
        labels.push((key.trim(), unescaped(&quoted[..end])));
        rest = quoted[end + 1..].trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at),
            _ => {}
        }
    }
    None
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let (mut plain, mut letters) = (String::with_capacity(text.len()), text.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => plain.push('\n'),
                Some(letter) => plain.push(letter),
                None => {}
            },
            letter => plain.push(letter),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each metric as `name[label=value ...] value`, or what is wrong with its line.
    fn check(text: &str, expect: &[&str]) {
        let shown = metrics(text, |name| name.starts_with('x')).map(|metric| match metric {
            Ok(Metric { name, labels, value }) => {
                let labels = labels.iter().map(|(key, value)| format!("{key}={value}"));
                format!("{name}{:?} {value}", labels.collect::<Vec<_>>())
            }
            Err(Unreadable) => "unreadable".to_owned(),
        });
        assert_eq!(shown.collect::<Vec<_>>(), expect, "{text}");
    }

    #[test]
    fn metrics_are_read_with_their_labels_and_whatever_follows_the_value() {
        check(
            "# HELP x1 a text\n# TYPE x1 gauge\nx1{gpu=\"0\",UUID=\"GPU-1\"} 42\nx2 1.5e3 1700\n\n\
             other{a=\"b\"} 3\n  x3 { a = \"b\" , } -1\r\n",
            &[r#"x1["gpu=0", "UUID=GPU-1"] 42"#, r#"x2[] 1500"#, r#"x3["a=b"] -1"#],
        );
    }

    #[test]
    fn what_is_no_number_is_a_value_all_the_same() {
        check("x NaN\nx +Inf\nx -Inf\n", &["x[] NaN", "x[] inf", "x[] -inf"]);
    }

    #[test]
    fn a_value_of_a_label_may_have_every_letter() {
        check(r#"x{m="a \"b\" {c}, d=\\ \n e"} 1"#, &[r#"x["m=a \"b\" {c}, d=\\ \n e"] 1"#]);
    }

    #[test]
    fn a_line_that_makes_no_sense_costs_only_itself() {
        let many = format!("x{{{}}} 1", "a=\"b\",".repeat(MOST_LABELS + 1));
        let long = format!("x{{a=\"{}\"}} 1", "b".repeat(LONGEST_LINE));
        for line in
            ["x", "x{", "x{a", "x{a=", "x{a=b} 1", "x{a=\"b", "x{a=\"b\"}", "x{} one", &many, &long]
        {
            let bad: &[&str] = if line == "x" { &[] } else { &["unreadable"] };
            check(line, bad);
            check(&format!("{line}\nx 7"), &[bad, &["x[] 7"]].concat());
        }
    }
}
