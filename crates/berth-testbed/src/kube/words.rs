//! The words that follow a verb of kubectl, as far as requests of our own understand them.

/// What a call of kubectl names and asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// As in `pod`, `jobs.batch` or `bj`, or several with commas between them.
    pub kind: String,
    /// Names, then whatever else has no dash before it, such as `disk=fast`.
    pub names: Vec<String>,
    pub namespace: Option<String>,
    pub all_namespaces: bool,
    pub selector: Option<String>,
    pub field_selector: Option<String>,
    pub all: bool,
    pub grace_seconds: Option<u32>,
    pub does_not_wait: bool,
    pub ignores_missing: bool,
    pub subresource: Option<String>,
    pub patch_type: Option<String>,
    pub patch: Option<String>,
}

/// Options that take a value, by all their names.
const WITH_VALUE: &[&str] = &[
    "-n",
    "--namespace",
    "-l",
    "--selector",
    "--field-selector",
    "--grace-period",
    "--subresource",
    "--type",
    "-p",
    "--patch",
];

impl Words {
    /// # Panics
    ///
    /// If a word is not understood: a test that needs it starts kubectl itself.
    pub fn parse(words: &[&str]) -> Words {
        let mut parsed = Words::default();
        let mut rest = words.iter().copied();
        while let Some(word) = rest.next() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) if word.starts_with('-') => (option, Some(value)),
                _ => (word, None),
            };
            if WITH_VALUE.contains(&option) {
                let value = value.or_else(|| rest.next());
                parsed.set(option, value.unwrap_or_else(|| panic!("{words:?}: {word} what?")));
            } else if word.starts_with('-') {
                parsed.switch(word, words);
            } else if parsed.kind.is_empty() {
                match word.split_once('/') {
                    Some((kind, name)) => {
                        parsed.kind = kind.to_owned();
                        parsed.names.push(name.to_owned());
                    }
                    None => parsed.kind = word.to_owned(),
                }
            } else {
                parsed.names.push(word.to_owned());
            }
        }
        assert!(!parsed.kind.is_empty(), "{words:?}: of which kind?");
        parsed
    }

    fn set(&mut self, option: &str, value: &str) {
        let text = Some(value.to_owned());
        match option {
            "-n" | "--namespace" => self.namespace = text,
            "-l" | "--selector" => self.selector = text,
            "--field-selector" => self.field_selector = text,
            "--subresource" => self.subresource = text,
            "--type" => self.patch_type = text,
            "-p" | "--patch" => self.patch = text,
            "--grace-period" => {
                self.grace_seconds = Some(value.parse().expect("a period is a number of seconds"));
            }
            _ => unreachable!("{option} is not in the list of options with a value"),
        }
    }

    fn switch(&mut self, word: &str, words: &[&str]) {
        match word {
            "-A" | "--all-namespaces" => self.all_namespaces = true,
            "--all" => self.all = true,
            "--force" => self.grace_seconds = self.grace_seconds.or(Some(0)),
            "--now" => self.grace_seconds = Some(1),
            "--wait=false" => self.does_not_wait = true,
            "--ignore-not-found" => self.ignores_missing = true,
            // As requests of ours do anyway.
            "--wait=true" | "--cascade=background" | "--overwrite" => {}
            _ => panic!("{words:?}: {word} is not understood here, call kubectl"),
        }
    }

    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kind.split(',')
    }

    /// The namespace to ask in: None for all of them.
    pub fn namespace(&self) -> Option<&str> {
        (!self.all_namespaces).then(|| self.namespace.as_deref().unwrap_or("default"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_may_stand_anywhere_and_have_their_value_in_two_forms() {
        let one = Words::parse(&["-n", "berth", "pod", "a", "b", "--force", "--grace-period=0"]);
        let other = Words::parse(&["pod", "a", "--grace-period", "0", "b", "--namespace=berth"]);
        assert_eq!(one, other);
        assert_eq!((one.kind.as_str(), one.namespace()), ("pod", Some("berth")));
        assert_eq!((one.names, one.grace_seconds), (vec!["a".into(), "b".into()], Some(0)));
    }

    #[test]
    fn a_value_may_contain_an_equals_sign() {
        let words = Words::parse(&["pods", "-l", "job=a", "--selector=job=b"]);
        assert_eq!(words.selector.as_deref(), Some("job=b"));
        let words = Words::parse(&["node/a", "disk=fast", "old-"]);
        assert_eq!(words.names, ["a", "disk=fast", "old-"]);
    }

    #[test]
    #[should_panic(expected = "call kubectl")]
    fn a_word_that_is_not_understood_is_not_passed_over() {
        Words::parse(&["pods", "--dry-run=server"]);
    }
}
