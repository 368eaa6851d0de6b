//! What people do in their jobs all day goes on in spite of all that is refused.

use super::stage::{As, Stage};

fn work(who: As) {
    let Some(stage) = Stage::set(who, &[]) else { return };
    let path = stage.work.path().join("ordinary.sh");
    std::fs::write(&path, include_str!("ordinary.sh")).expect("it can be written");
    let file =
        format!("name: ordinary\nteam: red\nvolumes: {{/data: v}}\nrun: bash {}\n", path.display());
    let printed = stage.run(&file);
    let wrong: Vec<&str> = printed.lines().filter(|line| line.starts_with("wrong ")).collect();
    assert!(wrong.is_empty() && printed.contains("all is done"), "{printed}");
}

#[test]
fn a_job_copies_packs_and_changes_files_as_anywhere() {
    work(As::Us);
}

#[test]
fn a_job_copies_packs_and_changes_files_where_the_server_is_an_ordinary_user() {
    work(As::Ordinary);
}
