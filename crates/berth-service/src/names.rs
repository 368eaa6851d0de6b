//! Names that people give, and finding by them what belongs to a team.

use crate::fault::{Fault, lister};
use berth_api::Code;
use berth_file::error::did_you_mean;

const LONGEST: usize = 63;

/// Names stand in addresses, files and commands, so they are plain.
pub fn check(what: &str, name: &str) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if starts && name.len() <= LONGEST && name.chars().all(plain) {
        return Ok(());
    }
    let next = format!(
        "use 1 to {LONGEST} lowercase letters, digits, `-`, `_` and `.`, with a letter or a digit \
         first"
    );
    Err(Fault::new(Code::BadRequest, format!("`{name}` is no name for a {what}")).next(next))
}

/// The name of a secret is often that of the variable it stands in, such as `HF_TOKEN`, so it may
/// have capital letters. A job file names it in the same way.
pub fn check_secret(name: &str) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let starts = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts && name.len() <= LONGEST && name.chars().all(plain) {
        return Ok(());
    }
    let next = format!(
        "use 1 to {LONGEST} letters, digits, `-`, `_` and `.`, with a letter or a digit first, such \
         as HF_TOKEN"
    );
    let detail = format!("a secret cannot be called `{name}`");
    Err(Fault::new(Code::BadRequest, detail).next(next))
}

/// Nothing of that kind has the name, and perhaps another was meant.
pub fn unknown<'a>(what: &str, name: &str, known: impl IntoIterator<Item = &'a str>) -> Fault {
    let guess = did_you_mean(name, known);
    let fault = Fault::new(Code::NotFound, format!("there is no {what} `{name}`{guess}"));
    fault.next(match lister(what) {
        Some(command) => format!("`{command}` lists all {what}s"),
        None => format!("look at the name of the {what} again"),
    })
}

/// Something that is known by its team and its name.
pub trait OfTeam {
    const WHAT: &'static str;
    fn team(&self) -> &str;
    fn name(&self) -> &str;
}

/// The one that is meant by `name`, or by `team:name` where several teams have one. All of
/// `visible` may be seen by the caller, whose own team goes first.
pub fn pick<T: OfTeam>(own: Option<String>, visible: Vec<T>, wanted: &str) -> Result<T, Fault> {
    choose(own.as_deref(), visible, wanted)
}

fn choose<T: OfTeam>(own: Option<&str>, visible: Vec<T>, wanted: &str) -> Result<T, Fault> {
    let (team, name) = match wanted.split_once(':') {
        Some((team, name)) => (Some(team), name),
        None => (None, wanted),
    };
    let hint = did_you_mean(name, visible.iter().map(OfTeam::name));
    let fits = |one: &T| one.name() == name && team.is_none_or(|team| one.team() == team);
    let mut found: Vec<T> = visible.into_iter().filter(fits).collect();
    if let Some(at) = found.iter().position(|one| Some(one.team()) == own) {
        return Ok(found.swap_remove(at));
    }
    if found.len() > 1 {
        let teams: Vec<&str> = found.iter().map(OfTeam::team).collect();
        let detail = format!("{} each have a {} `{name}`", teams.join(", "), T::WHAT);
        let next = format!("say whose, such as `{}:{name}`", teams[0]);
        return Err(Fault::new(Code::BadRequest, detail).next(next));
    }
    let none = || {
        let mut fault = Fault::not_found(T::WHAT, wanted);
        fault.0.detail.push_str(&hint);
        fault
    };
    found.pop().ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_taken_and_others_refused_with_what_to_do() {
        for name in ["a", "vision", "3d", "a.b-c_d", &"x".repeat(63)] {
            assert!(check("team", name).is_ok(), "{name}");
        }
        for name in ["", "A", "-a", ".a", "a b", "a/b", "a:b", "ü", &"x".repeat(64)] {
            let fault = check("team", name).unwrap_err();
            assert_eq!(fault.0.known_code(), Some(Code::BadRequest), "{name}");
            assert!(fault.0.next.contains("lowercase"));
        }
    }

    #[test]
    fn a_secret_may_be_called_like_the_variable_that_holds_it() {
        for name in ["HF_TOKEN", "hf_token", "WANDB_API_KEY", "a.b-c", "3d", &"X".repeat(63)] {
            assert!(check_secret(name).is_ok(), "{name}");
        }
        for name in ["", "_X", "-a", "A B", "a/b", "a:b", "ü", &"x".repeat(64)] {
            let fault = check_secret(name).unwrap_err();
            assert_eq!(fault.0.known_code(), Some(Code::BadRequest), "{name}");
            assert!(fault.0.next.contains("HF_TOKEN"));
        }
    }

    #[test]
    fn a_slip_in_a_name_gets_a_suggestion() {
        let fault = unknown("team", "visoin", ["nlp", "vision"]);
        assert_eq!(fault.0.detail, "there is no team `visoin`; did you mean `vision`?");
        assert_eq!(fault.0.next, "`berth team list` lists all teams");
        assert_eq!(unknown("team", "audio", ["nlp"]).0.detail, "there is no team `audio`");
    }

    #[derive(Debug, PartialEq)]
    struct Thing(&'static str, &'static str);

    impl OfTeam for Thing {
        const WHAT: &'static str = "thing";
        fn team(&self) -> &str {
            self.0
        }
        fn name(&self) -> &str {
            self.1
        }
    }

    fn chosen(own: Option<&str>, wanted: &str) -> Result<Thing, Option<Code>> {
        let all = vec![Thing("nlp", "base"), Thing("vision", "base"), Thing("vision", "big")];
        choose(own, all, wanted).map_err(|fault| fault.0.known_code())
    }

    #[test]
    fn a_name_that_several_teams_use_is_ones_own_or_has_to_name_its_team() {
        assert_eq!(chosen(Some("nlp"), "base"), Ok(Thing("nlp", "base")));
        assert_eq!(chosen(Some("nlp"), "big"), Ok(Thing("vision", "big")));
        assert_eq!(chosen(None, "base"), Err(Some(Code::BadRequest)));
        assert_eq!(chosen(None, "vision:base"), Ok(Thing("vision", "base")));
        assert_eq!(chosen(Some("nlp"), "vision:base"), Ok(Thing("vision", "base")));
        assert_eq!(chosen(None, "audio:base"), Err(Some(Code::NotFound)));
    }
}
