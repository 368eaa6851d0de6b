//! Limits of names, values and counts. MLflow's client and its tests check the wording of these messages.

use crate::error::{Error, Result};
use serde_json::json;

pub const METRICS_PER_BATCH: usize = 1000;
pub const PARAMS_PER_BATCH: usize = 100;
pub const TAGS_PER_BATCH: usize = 100;
pub const ENTITIES_PER_BATCH: usize = 1000;
pub const BATCH_BYTES: usize = 1_000_000;
pub const DATASETS_PER_CALL: usize = 1000;
pub const MODELS_PER_CALL: usize = 1000;
pub const KEY: usize = 250;
pub const PARAM_VALUE: usize = 6000;
pub const TAG_VALUE: usize = 8000;
pub const EXPERIMENT_NAME: usize = 500;
pub const EXPERIMENT_TAG_VALUE: usize = 20_000;
pub const REGISTRY_TAG_VALUE: usize = 100_000;
pub const ALIAS: usize = 255;
pub const MODEL_NAME: usize = 256;
pub const DESCRIPTION: usize = 5000;
pub const SOURCE: usize = 500;
pub const DATASET_NAME: usize = 500;
pub const DATASET_DIGEST: usize = 36;
pub const DATASET_SCHEMA: usize = (1 << 20) - 1;
pub const DATASET_SOURCE: usize = (1 << 16) - 1;
pub const DATASET_PROFILE: usize = (1 << 24) - 1;
pub const INPUT_TAG_KEY: usize = 255;
pub const INPUT_TAG_VALUE: usize = 500;
pub const RUN_NAME: usize = 250;
pub const USER: usize = 256;

pub const RUNS_PAGE: usize = 1000;
pub const RUNS_MOST: usize = 50_000;
pub const EXPERIMENTS_PER_SEARCH: usize = 1_000;
pub const HISTORY_PAGE: usize = 25_000;
pub const CHART_RUNS: usize = 100;
pub const CHART_SAMPLES: usize = 2500;

// Berth's own limits: they bound the database of a team.
pub const EXPERIMENTS_PER_TEAM: usize = 10_000;
pub const RUNS_PER_EXPERIMENT: u64 = 1_000_000;
pub const POINTS_PER_RUN: u64 = 20_000_000;
pub const METRIC_KEYS_PER_RUN: usize = 20_000;
pub const METRIC_KEYS_PER_EXPERIMENT: u64 = 200_000;
pub const PARAMS_PER_RUN: u64 = 10_000;
pub const TAGS_PER_RUN: u64 = 10_000;
pub const DATASETS_PER_RUN: u64 = 2_000;
pub const MODELS_PER_RUN: u64 = 10_000;
pub const TAGS_PER_THING: usize = 1_000;
pub const TAG_BYTES_PER_THING: usize = 4 << 20;
pub const PARAMS_PER_MODEL: usize = 1_000;
pub const LOGGED_MODELS_PER_EXPERIMENT: usize = 100_000;
pub const METRICS_PER_MODEL: u64 = 10_000;
pub const REGISTERED_MODELS_PER_TEAM: usize = 10_000;
pub const VERSIONS_PER_MODEL: u64 = 100_000;
pub const ALIASES_PER_MODEL: usize = 100;
pub const SHARES_PER_EXPERIMENT: usize = 100;
pub const SHARES_PER_MODEL: usize = 100;
pub const MODELS_SHARED_WITH_TEAM: u64 = 1_000;
pub const WEBHOOKS_PER_TEAM: usize = 50;
pub const WEBHOOK_URL: usize = 2_000;
pub const WEBHOOK_SECRET: usize = 1_000;

/// A path as `posixpath.normpath` gives it.
fn normal(path: &str) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    let slashes = match path.bytes().take_while(|byte| *byte == b'/').count() {
        0 => "",
        2 => "//",
        _ => "/",
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if slashes.is_empty() && parts.last().is_none_or(|last| *last == "..") => {
                parts.push("..");
            }
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let joined = format!("{slashes}{}", parts.join("/"));
    if joined.is_empty() { ".".to_owned() } else { joined }
}

/// Refuses names of metrics, params and tags that are not valid paths.
pub fn name(name: &str, path: impl Fn() -> String) -> Result<()> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '.' | '-' | ' ' | ':');
    if !name.chars().all(plain) {
        let why = "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), \
                   spaces ( ), colon(:) and slashes (/).";
        return Err(Error::bad_value(&path(), json!(name), why));
    }
    let found = normal(name);
    if found != name || name == "." || name.starts_with("..") || name.starts_with('/') {
        let why = format!(
            "Names may be treated as files in certain cases, and must not resolve to other names \
             when treated as such. This name would resolve to '{found}'"
        );
        return Err(Error::bad_value(&path(), json!(name), &why));
    }
    Ok(())
}

/// Counts characters, like the client.
fn is_longer(text: &str, most: usize) -> bool {
    text.len() > most && text.chars().nth(most).is_some()
}

pub fn length(what: &str, text: &str, most: usize) -> Result<()> {
    if is_longer(text, most) {
        return Err(Error::invalid(format!(
            "'{what}' exceeds the maximum length of {most} characters"
        )));
    }
    Ok(())
}

/// Cuts a text that is too long.
pub fn cut(mut text: String, most: usize) -> String {
    if text.len() > most
        && let Some((at, _)) = text.char_indices().nth(most)
    {
        text.truncate(at);
    }
    text
}

/// PostgreSQL cannot keep a zero byte in a text.
pub fn no_zero(what: &str, text: &str) -> Result<()> {
    if text.contains('\0') {
        return Err(Error::invalid(format!("'{what}' contains a zero byte")));
    }
    Ok(())
}

pub fn batch(what: &str, most: usize, found: usize) -> Result<()> {
    if found > most {
        return Err(Error::invalid(format!(
            "A batch logging request can contain at most {most} {what}. Got {found} {what}. Please \
             split up {what} across multiple requests and try again."
        )));
    }
    Ok(())
}

pub fn run_id(id: &str) -> Result<()> {
    let mut chars = id.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphanumeric());
    let rest = chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    if first && rest && !is_longer(id, 256) {
        return Ok(());
    }
    Err(Error::bad_value("run_id", json!(id), ""))
}

pub fn experiment_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("Invalid experiment name: ''"));
    }
    no_zero("name", name)?;
    length("name", name, EXPERIMENT_NAME)
}

pub fn model_name(name: &str) -> Result<()> {
    if name.trim().is_empty() {
        return Err(Error::missing("name"));
    }
    if name.contains(['/', ':']) {
        return Err(Error::invalid(format!(
            "Invalid model name '{name}'. Names cannot contain '/' or ':'."
        )));
    }
    if normal(name) != name || name == "." || name.starts_with("..") {
        let why = "Names may be treated as files in certain cases, and must not resolve to other \
                   names when treated as such.";
        return Err(Error::bad_value("name", json!(name), why));
    }
    no_zero("name", name)?;
    length("name", name, MODEL_NAME)
}

pub fn alias(alias: &str) -> Result<()> {
    if alias.is_empty() {
        return Err(Error::invalid("Registered model alias name cannot be empty."));
    }
    if !alias.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) {
        return Err(Error::invalid(format!(
            "Invalid alias name: '{alias}'. Names may only contain alphanumerics, underscores (_), \
             and dashes (-)."
        )));
    }
    length("Registered model alias name", alias, ALIAS)
}

/// Refuses aliases that look like a version.
pub fn alias_is_free(alias: &str) -> Result<()> {
    if alias.eq_ignore_ascii_case("latest") {
        return Err(Error::invalid("'latest' alias name (case insensitive) is reserved."));
    }
    let digits = alias.strip_prefix(['v', 'V']);
    if digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    {
        return Err(Error::invalid(format!("Version alias name '{alias}' is reserved.")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        name(text, || "metrics[0].name".to_owned()).unwrap_err().message
    }

    #[test]
    fn names_are_those_of_files_that_stay_where_they_are() {
        for good in ["loss", "a/b", "val loss", "a.b-c:d", "Größe", "a..b"] {
            assert_eq!(name(good, String::new), Ok(()), "{good}");
        }
        for bad in ["a//b", "../x", "/x", ".", "a/../b", "a/", "./a", ""] {
            assert!(refusal(bad).contains("must not resolve to other names"), "{bad}");
        }
        assert!(refusal("a\nb").contains("Names may only contain"));
        let said = refusal("a//b");
        assert!(said.contains("parameter 'metrics[0].name'") && said.contains("'a/b'"), "{said}");
    }

    #[test]
    fn lengths_count_characters_and_long_texts_are_cut_between_them() {
        assert!(length("name", &"ü".repeat(500), 500).is_ok());
        let said = length("name", &"ü".repeat(501), 500).unwrap_err().message;
        assert_eq!(said, "'name' exceeds the maximum length of 500 characters");
        assert_eq!(cut("äöü".to_owned(), 2), "äö");
        assert_eq!(cut("ab".to_owned(), 2), "ab");
    }

    #[test]
    fn aliases_that_read_as_versions_are_reserved() {
        assert!(alias("champion").and(alias_is_free("champion")).is_ok());
        for taken in ["latest", "LATEST", "v1", "V20"] {
            assert!(alias_is_free(taken).unwrap_err().message.contains("is reserved"), "{taken}");
        }
        assert!(alias_is_free("v1a").is_ok() && alias_is_free("v").is_ok());
        assert!(alias("a b").is_err() && alias("").is_err());
    }

    #[test]
    fn ids_of_runs_begin_with_a_letter_or_digit() {
        assert!(run_id("0a_b-c").is_ok());
        for bad in ["", "-a", "a/b", &"a".repeat(257)] {
            assert!(run_id(bad).is_err(), "{bad}");
        }
    }
}
