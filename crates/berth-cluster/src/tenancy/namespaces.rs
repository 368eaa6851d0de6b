//! The namespace of each team.

use crate::options::PodSettings;
use crate::view::managed_names::{LONGEST, slug};
use ring::digest::{SHA256, digest};

/// Whether a namespace could be that of a team.
pub fn is_for_teams(settings: &PodSettings, namespace: &str) -> bool {
    namespace.starts_with(&settings.namespace_prefix)
        || settings.namespaces.values().any(|named| named == namespace)
}

/// The namespace of a team.
pub fn namespace(settings: &PodSettings, team: &str) -> String {
    if let Some(named) = settings.namespaces.get(team) {
        return named.clone();
    }
    let plain = slug(team);
    let mut name = format!("{}{plain}", settings.namespace_prefix);
    // Two teams must not share one because their names differ in what it cannot have.
    if plain != team || name.len() > LONGEST {
        let hash = digest(&SHA256, team.as_bytes());
        let hash = hex::encode(&hash.as_ref()[..4]);
        name.truncate(LONGEST - 1 - hash.len());
        name = format!("{}-{hash}", name.trim_end_matches('-'));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_that_differ_have_namespaces_that_differ() {
        let prefix = "berth-".to_owned();
        let namespaces = [("ops".to_owned(), "platform".to_owned())].into();
        let settings =
            PodSettings { namespace_prefix: prefix, namespaces, ..PodSettings::default() };
        assert_eq!(namespace(&settings, "nlp"), "berth-nlp");
        assert_eq!(namespace(&settings, "ops"), "platform");
        let dotted = namespace(&settings, "a.b");
        assert!(dotted.starts_with("berth-a-b-"), "{dotted}");
        assert_ne!(dotted, namespace(&settings, "a_b"));
        assert!(namespace(&settings, &"x".repeat(63)).len() <= LONGEST);
    }
}
