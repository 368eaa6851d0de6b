//! The server that tests of the store stand on.

use berth_testbed::{Postgres, Stop, until};
use std::path::Path;

#[test]
fn a_server_comes_back_with_its_data_and_leaves_nothing_when_it_is_dropped() {
    let mut postgres = Postgres::start();
    let address = postgres.database();
    let name = address.rsplit('/').next().expect("it ends with the name").to_owned();
    postgres.sql(&name, "CREATE TABLE kept (a int); INSERT INTO kept VALUES (7)");
    for how in [Stop::Fast, Stop::Immediate] {
        postgres.stop(how);
        postgres.resume();
        assert_eq!(postgres.sql(&name, "SELECT a FROM kept"), "7", "{how:?}");
    }
    let data = postgres.sql(&name, "SHOW data_directory");
    let process =
        postgres.sql(&name, "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)");
    assert!(Path::new("/proc").join(&process).exists(), "{process}");
    drop(postgres);
    assert!(!Path::new(&data).exists());
    until("its process ends", || !Path::new("/proc").join(&process).exists());
}
