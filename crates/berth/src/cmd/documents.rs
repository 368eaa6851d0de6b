//! The files of `berth apply` as the one text that the server reads, and where each file is in it.

use crate::fail::Failure;
use berth_api::client::Error;
use std::path::{Path, PathBuf};

/// One text with a line between the files.
#[derive(Debug, Default)]
pub struct Documents {
    text: String,
    files: Vec<File>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    /// Its first line in the text, from 1.
    begins: usize,
    /// Lines at its beginning that are not in the text.
    left_out: usize,
}

impl Documents {
    pub fn add(&mut self, path: &Path, text: &str) {
        let text = text.trim_end();
        let (text, left_out) = match text.strip_prefix("---\n") {
            Some(rest) => (rest, 1),
            None => (text, 0),
        };
        if !self.files.is_empty() {
            self.text.push_str("---\n");
        }
        let begins = self.text.lines().count() + 1;
        self.files.push(File { path: path.to_owned(), begins, left_out });
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub fn text(&self) -> String {
        self.text.clone()
    }

    /// The server counts lines of the whole text; people look for a mistake in their own file.
    pub fn located(&self, error: Error) -> Failure {
        let Error::Problem(mut problem) = error else { return error.into() };
        let mut lines = Vec::new();
        for mistake in &mut problem.errors {
            let (Some(line), Some(column)) = (mistake.line, mistake.column) else { continue };
            let Some(file) = self.files.iter().rfind(|file| file.begins <= line) else { continue };
            let own = line - file.begins + 1 + file.left_out;
            mistake.line = Some(own);
            let path = file.path.display();
            lines.push(format!("{path}:{own}:{column}: {}", mistake.message));
        }
        if !lines.is_empty() && lines.len() == problem.errors.len() {
            problem.detail = lines.join("\n       ");
        }
        Failure::from(*problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_api::{Code, FieldError, Problem};

    fn two() -> Documents {
        let mut both = Documents::default();
        both.add(Path::new("a.yaml"), "---\nkind: team\nname: a\n");
        both.add(Path::new("b.yaml"), "kind: team\nname: b\n\n");
        both
    }

    #[test]
    fn files_become_documents_of_one_text() {
        assert_eq!(two().text(), "kind: team\nname: a\n---\nkind: team\nname: b\n");
    }

    #[test]
    fn a_mistake_is_shown_at_its_place_in_its_own_file() {
        let mistake = |line, message: &str| FieldError {
            path: String::new(),
            line: Some(line),
            column: Some(1),
            message: message.to_owned(),
        };
        let errors = vec![mistake(2, "the first"), mistake(5, "the second")];
        let problem = Problem::new(Code::BadDocuments, "line 2 …").errors(errors);
        let failure = two().located(Error::Problem(Box::new(problem)));
        let (detail, _) = failure.parts();
        assert_eq!(detail, "a.yaml:3:1: the first\n       b.yaml:2:1: the second");
    }

    #[test]
    fn a_refusal_without_places_stays_as_it_is() {
        let problem = Problem::new(Code::InUse, "team `a` has volumes: data");
        let failure = two().located(Error::Problem(Box::new(problem)));
        assert_eq!(failure.parts().0, "team `a` has volumes: data");
    }
}
