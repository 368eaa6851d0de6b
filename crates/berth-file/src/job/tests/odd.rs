//! Whatever is written, it is read or refused.

use super::super::{JobFile, KEYS, lower, read, write};
use super::{EXAMPLES, defaults, now};

/// Reads a text and does all that can be done with what was read.
fn check(text: &str) {
    if let Ok(parsed) = read(text) {
        let _ = lower(&parsed.file, &defaults(), now());
        assert_eq!(read(&write(&parsed.file)).expect("what was written").file, parsed.file);
    }
}

#[rustfmt::skip]
const ODD: &[&str] = &[
    "''", "0", "-1", "-0.0001", "1e400", "1e-400", "1.5e-2147483648", "1e2147483647", "NaN", "inf",
    "99999999999999999999", "[]", "{}", "[[]]", "[null]", "{a: null}", "{a: {b: {c: 1}}}", "true",
    "~", "é", "🦀", "\"\\0\"", "9999-12-31T23:59:59Z", "0000-01-01", "2026-11-15T09:00:00+99:99",
    "9999999-9999999:59:59", "1000000w", "0-4294967295", "4294967295", "0-9:4294967295", "$", "%",
    "18446744073709551616_1", "1_99999999999", "H100:H100:1", "/", "a/b/c:1", "+", "+:1", "slack:",
    "'@'", "'* * * * * *'", "'* * 31 2 *'", "{zip: {}}", "{at_most: 3}", "{min: -1, max: 1}",
];

#[test]
fn odd_values_are_read_or_refused_under_every_key() {
    for key in KEYS {
        for odd in ODD {
            check(&format!("run: x\n{}: {odd}\n", key.name));
            let _ = JobFile::default().set(key.name, &[(*odd).to_owned(), format!("a={odd}")]);
            let _ = JobFile::default().set(key.name, &[format!("a={odd}")]);
        }
        let _ = JobFile::default().set(key.name, &[]);
    }
}

#[test]
fn a_file_that_was_cut_off_or_lost_a_letter_is_read_or_refused() {
    for text in EXAMPLES {
        for (at, letter) in text.char_indices() {
            check(&text[..at]);
            check(&format!("{}{}", &text[..at], &text[at + letter.len_utf8()..]));
        }
    }
}
