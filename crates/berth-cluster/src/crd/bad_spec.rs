//! Why the spec of a custom resource cannot be applied.

use berth_file::documents::NO_POOLS;
use berth_file::error::Error;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSpec {
    /// Without the places of the mistakes: they are places in a text that Berth made of the object.
    #[error("{}", joined(.0))]
    Mistakes(Vec<Error>),
    /// A pool without a mistake. Berth buys no machines yet.
    #[error("{}", NO_POOLS)]
    Pool,
    /// The name is not one that the core takes; the text is that of the service.
    #[error("{0}")]
    Name(String),
    #[error("")]
    Empty,
}

impl From<Vec<Error>> for BadSpec {
    fn from(mistakes: Vec<Error>) -> BadSpec {
        match &mistakes[..] {
            [mistake] if mistake.message == NO_POOLS => BadSpec::Pool,
            _ => BadSpec::Mistakes(mistakes),
        }
    }
}

fn joined(mistakes: &[Error]) -> String {
    let all: Vec<&str> = mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
    all.join("; ")
}
