//! Rows of the settings table that record which custom resource has set up what.

use berth_file::object::Kind;

const PREFIX: &str = "kube/";

/// The name of the row that says what an object has set up.
pub fn row(kind: Kind, name: &str) -> String {
    format!("{PREFIX}{}/{name}", kind.plural())
}

/// The object that a row is about, if it is such a row.
pub fn owner(row: &str) -> Option<(Kind, String)> {
    let (plural, name) = row.strip_prefix(PREFIX)?.split_once('/')?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.plural() == plural)?;
    Some((kind, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_of_an_object_leads_back_to_it() {
        for kind in Kind::ALL {
            assert_eq!(owner(&row(kind, "nlp.east")), Some((kind, "nlp.east".to_owned())));
        }
        assert_eq!(owner("notify/slack"), None);
    }
}
