//! Two replicas on one database, while everything around them is struck.

use berth_testbed::besiege;
use std::path::Path;

#[test]
fn gangs_stay_whole_through_blows_and_nothing_is_given_twice_or_lost() {
    let program = Path::new(env!("CARGO_BIN_EXE_berth"));
    let siege = besiege(program, 6, |round, blow| println!("round {round}: {blow:?}"));
    assert_eq!(siege.faults(), Vec::<String>::new(), "{siege:?}");
    assert!(siege.looks > 0 && siege.leaders_killed >= 2 && siege.taken_away > 0, "{siege:?}");
}
