//! Who may ask the API server, and how they prove who they are.

use super::ports::random;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The administrator, who may do everything.
pub const ADMIN: &str = "admin";

/// Who the controllers are, before each takes its own identity.
pub const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";

/// Who kube-scheduler is.
pub const SCHEDULER: &str = "system:kube-scheduler";

pub(super) const KWOK: &str = "testbed:kwok";

/// The group that is above all rules and limits of the API server.
const MASTERS: &str = "system:masters";

/// Users by name. There is no `Debug`, because of the tokens.
pub(super) struct Identities(BTreeMap<String, Identity>);

struct Identity {
    groups: Vec<String>,
    token: String,
}

impl Identities {
    /// The administrator and the parts of the cluster.
    pub fn new() -> Identities {
        let mut identities = Identities(BTreeMap::new());
        identities.add(ADMIN, &[MASTERS]);
        identities.add(KWOK, &[MASTERS]);
        identities.add(CONTROLLER_MANAGER, &[]);
        identities.add(SCHEDULER, &[]);
        identities
    }

    pub fn add(&mut self, name: &str, groups: &[&str]) {
        let plain = |text: &str| !text.is_empty() && !text.contains(['"', ',', '\n']);
        assert!(plain(name) && groups.iter().all(|group| plain(group)), "{name}, {groups:?}");
        let taken = self.0.keys().any(|other| file_name(other) == file_name(name));
        assert!(!taken, "there is a user {name} already, or one whose file has the same name");
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        let token = random::<16>().iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes all that is written");
            text
        });
        self.0.insert(name.to_owned(), Identity { groups, token });
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub fn token(&self, name: &str) -> &str {
        &self.0.get(name).unwrap_or_else(|| panic!("no user {name} was declared")).token
    }

    /// What the API server reads at its start.
    pub fn token_file(&self) -> String {
        let line = |(name, identity): (&String, &Identity)| {
            format!("{},{name},{name},\"{}\"\n", identity.token, identity.groups.join(","))
        };
        self.0.iter().map(line).collect()
    }

    pub fn kubeconfig(&self, name: &str, url: &str, authority: &Path) -> String {
        let token = self.token(name);
        let authority = authority.display();
        format!(
            "apiVersion: v1
kind: Config
current-context: testbed
contexts:
- name: testbed
  context: {{cluster: testbed, user: {name:?}}}
clusters:
- name: testbed
  cluster: {{server: {url:?}, certificate-authority: \"{authority}\"}}
users:
- name: {name:?}
  user: {{token: {token:?}}}
"
        )
    }
}

/// Without colons, which separate the files in `KUBECONFIG`.
pub(super) fn file_name(user: &str) -> String {
    format!("{}.yaml", user.replace([':', '/'], "-"))
}
