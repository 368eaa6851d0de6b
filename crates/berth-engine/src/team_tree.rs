//! Which team lies below which, for deciding who may do what without a look at the state.

use berth_core::State;
use berth_model::{Event, Name};
use std::collections::BTreeMap;

/// The queues of the teams, each with the one above it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeamTree {
    parents: BTreeMap<Name, Option<Name>>,
}

impl TeamTree {
    pub fn of(state: &State) -> TeamTree {
        let parents = state.queue_parents().map(|(name, parent)| (name.clone(), parent.cloned()));
        TeamTree { parents: parents.collect() }
    }

    /// Whether it may be another one after this event.
    pub fn may_change(event: &Event) -> bool {
        matches!(event, Event::QueueSet { .. } | Event::QueueRemoved { .. })
    }

    /// The team and those above it, the lowest first. The core takes no circle.
    pub fn path<'t>(&'t self, team: &'t str) -> impl Iterator<Item = &'t str> {
        let above = |team: &&'t str| self.parents.get(*team)?.as_deref();
        std::iter::successors(Some(team), above)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parents.keys().map(Name::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{QueueSpec, Stamped, Time};

    fn set(state: &mut State, name: &str, parent: Option<&str>) {
        let mut queue = QueueSpec::new(name);
        queue.parent = parent.map(Name::new);
        let event = Event::QueueSet { queue: Box::new(queue) };
        assert!(TeamTree::may_change(&event));
        let seq = state.seq() + 1;
        let _ = state.apply(&Stamped { seq, at: Time(0), event }).expect("a queue");
    }

    #[test]
    fn the_path_of_a_team_leads_from_it_to_the_top() {
        let mut state = State::new();
        set(&mut state, "lab", None);
        set(&mut state, "vision", Some("lab"));
        set(&mut state, "video", Some("vision"));
        let tree = TeamTree::of(&state);
        assert_eq!(tree.path("video").collect::<Vec<_>>(), ["video", "vision", "lab"]);
        assert_eq!(tree.path("lab").collect::<Vec<_>>(), ["lab"]);
        assert_eq!(tree.path("nobody").collect::<Vec<_>>(), ["nobody"]);
    }
}
