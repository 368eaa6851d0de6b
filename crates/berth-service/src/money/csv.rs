//! Tables for other programs, as RFC 4180 has them.

/// A table with a line of titles.
pub fn table(head: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut out = line(head);
    for row in rows {
        out.push_str(&line(&row));
    }
    out
}

fn line(fields: &[String]) -> String {
    let fields: Vec<String> = fields.iter().map(|field| shown(field)).collect();
    format!("{}\r\n", fields.join(","))
}

/// A spreadsheet takes a field that begins so for a formula, and names of jobs are anybody's.
fn shown(field: &str) -> String {
    let is_number = field.parse::<f64>().is_ok();
    let odd = !is_number && field.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let field = if odd { format!("'{field}") } else { field.to_owned() };
    match field.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    }
}

/// Millionths of a dollar as dollars, exactly.
pub fn dollars(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let all = micros.unsigned_abs();
    format!("{sign}{}.{:06}", all / 1_000_000, all % 1_000_000)
}

pub fn thousandths(milli: i64) -> String {
    let sign = if milli < 0 { "-" } else { "" };
    let all = milli.unsigned_abs();
    format!("{sign}{}.{:03}", all / 1_000, all % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_letters_and_none_becomes_a_formula() {
        let field = |text: &str| shown(text);
        for (text, expect) in [
            ("nlp", "nlp"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=1+1", "'=1+1"),
            ("@x,y", "\"'@x,y\""),
            ("-1.5", "-1.5"),
            ("-rm", "'-rm"),
        ] {
            assert_eq!(field(text), expect);
        }
        assert_eq!(
            table(&["a".into(), "b".into()], [vec!["1".into(), String::new()]].into_iter()),
            "a,b\r\n1,\r\n"
        );
    }

    #[test]
    fn money_is_exact() {
        assert_eq!(dollars(1_500_000), "1.500000");
        assert_eq!(dollars(-7), "-0.000007");
        assert_eq!(thousandths(2_500), "2.500");
    }
}
