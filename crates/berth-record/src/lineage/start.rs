//! Parses the start of a lineage.

use berth_api::Code;
use berth_model::{DataVersion, JobId};
use berth_service::Fault;

/// The requested start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    Model { team: Option<String>, name: String, version: Pick },
    Logged(String),
    Run(String),
    Job(JobId),
    Data { team: Option<String>, version: DataVersion },
}

/// The requested version of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pick {
    Number(u64),
    Alias(String),
    Newest,
}

const FORMS: &str = "write model:NAME@VERSION, logged_model:ID, run:ID, job:NUMBER or data:NAME@vN";

impl Start {
    pub fn parse(text: &str) -> Result<Start, Fault> {
        let shown: String = text.chars().take(80).collect();
        let bad = |why: String| Fault::new(Code::BadRequest, why).next(FORMS);
        let (kind, rest) =
            text.split_once(':').ok_or_else(|| bad(format!("`{shown}` has no kind")))?;
        if rest.is_empty() {
            return Err(bad(format!("`{shown}` has no name")));
        }
        match kind {
            "run" => Ok(Start::Run(rest.to_owned())),
            "logged_model" => Ok(Start::Logged(rest.to_owned())),
            "job" => {
                let id = rest.parse().map_err(|_| bad(format!("`{rest}` is not a job number")))?;
                Ok(Start::Job(id))
            }
            "model" => {
                let (team, rest) = of_team(rest);
                let (name, version) = match rest.rsplit_once('@') {
                    None => (rest, Pick::Newest),
                    Some((name, picked)) => {
                        let digits = picked.strip_prefix('v').unwrap_or(picked);
                        let number = digits.parse().map(Pick::Number);
                        (name, number.unwrap_or_else(|_| Pick::Alias(picked.to_owned())))
                    }
                };
                Ok(Start::Model { team, name: name.to_owned(), version })
            }
            "data" => {
                let (team, rest) = of_team(rest);
                let version = rest.parse().map_err(|error| bad(format!("`{rest}`: {error}")))?;
                Ok(Start::Data { team, version })
            }
            "code" | "image" | "dataset" => Err(bad(format!("a lineage cannot begin at a {kind}"))),
            _ => Err(bad(format!("`{kind}` has no lineage"))),
        }
    }
}

/// `TEAM/NAME`, or a name alone.
fn of_team(text: &str) -> (Option<String>, &str) {
    match text.split_once('/') {
        Some((team, name)) => (Some(team.to_owned()), name),
        None => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_names_its_kind_and_may_name_its_team() {
        let model = |team: Option<&str>, version| Start::Model {
            team: team.map(str::to_owned),
            name: "chat".to_owned(),
            version,
        };
        for (text, expect) in [
            ("model:chat@3", model(None, Pick::Number(3))),
            ("model:chat@v3", model(None, Pick::Number(3))),
            ("model:nlp/chat@champion", model(Some("nlp"), Pick::Alias("champion".into()))),
            ("model:chat", model(None, Pick::Newest)),
            ("run:0b3c", Start::Run("0b3c".into())),
            ("logged_model:m-1", Start::Logged("m-1".into())),
            ("job:17_3", Start::Job("17_3".parse().unwrap())),
            ("data:c4@v3", Start::Data { team: None, version: "c4@v3".parse().unwrap() }),
        ] {
            assert_eq!(Start::parse(text).unwrap(), expect, "{text}");
        }
        for text in ["", "17", "run:", "job:x", "data:C4", "image:python", "endpoint:chat"] {
            let fault = Start::parse(text).unwrap_err();
            assert_eq!(fault.0.known_code(), Some(Code::BadRequest), "{text}");
            assert!(fault.0.next.contains("model:NAME@VERSION"), "{text}");
        }
    }
}
