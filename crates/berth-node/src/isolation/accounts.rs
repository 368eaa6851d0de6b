//! Which account of the machine a user's tasks run as.

use berth_sandbox::Account;
use fnv::FnvHasher;
use nix::unistd::{User, getgrouplist};
use std::ffi::CString;
use std::hash::Hasher;
use std::path::PathBuf;

/// Numbers for users and teams that have no account here. Containers and systemd end below it.
const FIRST: u32 = 0x7000_0000;
const COUNT: u32 = 0x0FFF_FFFE;

/// Accounts below this number belong to the system, which no job acts for.
const FIRST_PERSON: u32 = 1_000;
const NOBODY: u32 = 65_534;

/// How users become accounts where the server is root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accounts {
    /// Whoever started the server: their tasks keep its account, without its rights.
    pub operator: String,
    /// The home folder of the account that runs the server. Of all users only the operator may show
    /// it to jobs.
    pub home: Option<PathBuf>,
}

impl Accounts {
    pub fn new(operator: &str) -> Accounts {
        let own = User::from_uid(nix::unistd::geteuid()).ok().flatten();
        let home = own.and_then(|user| user.dir.canonicalize().ok());
        // Some accounts have the root folder as their home, which says nothing.
        let home = home.filter(|home| home.parent().is_some());
        Accounts { operator: operator.to_owned(), home }
    }

    /// The account of a user's task in a team. The team is a group, for the team's volumes.
    pub fn of(&self, user: &str, team: &str) -> Account {
        let mut account = if user == self.operator { own_account() } else { Accounts::other(user) };
        account.groups.push(Accounts::group(team));
        account
    }

    fn other(user: &str) -> Account {
        Accounts::named(user).unwrap_or_else(|| Accounts::made_up(user))
    }

    /// The person's account of that name, if there is one.
    fn named(user: &str) -> Option<Account> {
        let found = User::from_name(user).ok().flatten()?;
        let uid = found.uid.as_raw();
        if uid < FIRST_PERSON || uid == NOBODY {
            return None;
        }
        let name = CString::new(user).ok()?;
        let groups = getgrouplist(&name, found.gid).unwrap_or_else(|_| vec![found.gid]);
        // Membership in a group of the system may mean rights over it: docker is as good as root.
        let groups = groups.iter().map(|gid| gid.as_raw()).filter(|gid| *gid >= FIRST_PERSON);
        let gid = primary(found.gid.as_raw(), user);
        Some(Account { uid, gid, groups: groups.collect() })
    }

    /// Whether the tasks of that user would have an account that was there without Berth.
    pub fn is_taken(&self, user: &str) -> bool {
        user == self.operator || Accounts::named(user).is_some()
    }

    /// An account that nobody else has. It follows from the name, so it is the same each time.
    pub fn made_up(user: &str) -> Account {
        let uid = number("user", user);
        Account { uid, gid: uid, groups: Vec::new() }
    }

    /// The group that a team's volumes belong to.
    pub fn group(team: &str) -> u32 {
        number("team", team)
    }
}

/// That of this process.
pub fn own_account() -> Account {
    let groups = rustix::process::getgroups().unwrap_or_default();
    Account {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        groups: groups.iter().map(|gid| gid.as_raw()).filter(|gid| *gid >= FIRST_PERSON).collect(),
    }
}

/// The group that a person's files get: one of the system's counts for no more here than elsewhere.
fn primary(gid: u32, user: &str) -> u32 {
    if gid < FIRST_PERSON { number("user", user) } else { gid }
}

fn number(kind: &str, name: &str) -> u32 {
    let mut hasher = FnvHasher::default();
    hasher.write(kind.as_bytes());
    hasher.write_u8(0);
    hasher.write(name.as_bytes());
    let spread = hasher.finish() % u64::from(COUNT);
    FIRST + u32::try_from(spread).expect("below the count")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_an_account_gets_the_same_number_each_time_and_no_other() {
        let ana = Accounts::made_up("ana");
        assert_eq!(ana, Accounts::made_up("ana"));
        assert_ne!(ana.uid, Accounts::made_up("ben").uid);
        assert_ne!(ana.uid, Accounts::group("ana"));
        assert!(ana.uid >= FIRST && ana.uid < 1 << 31);
    }

    #[test]
    fn no_user_acts_for_a_group_of_the_system_by_having_it_as_the_first() {
        assert_eq!(primary(1_000, "ana"), 1_000);
        for gid in [0, 4, 999] {
            assert_eq!(primary(gid, "ana"), Accounts::made_up("ana").gid);
        }
    }

    #[test]
    fn a_name_is_taken_where_it_stands_for_the_operator_or_for_an_account_of_a_person() {
        let accounts = Accounts::new("op");
        assert!(accounts.is_taken("op"));
        for name in ["root", "daemon", "nobody", "no such user"] {
            assert!(!accounts.is_taken(name), "{name}: its number follows from the name");
        }
    }

    #[test]
    fn no_user_becomes_an_account_of_the_system() {
        let accounts = Accounts::new("op");
        for name in ["root", "daemon", "nobody", "no such user"] {
            assert!(accounts.of(name, "t").uid >= FIRST, "{name}");
        }
        let own = accounts.of("op", "t");
        assert_eq!(own.uid, rustix::process::geteuid().as_raw());
        assert!(own.groups.contains(&Accounts::group("t")));
    }
}
