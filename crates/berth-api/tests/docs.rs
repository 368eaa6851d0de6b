//! The pages about errors and about who may do what are what the code does.
//!
//! With BERTH_WRITE_DOCS=1 the pages are written anew, to be read before they are committed.

use berth_api::access::{Owner, Role, Standing, allows};
use berth_api::routes::FOREIGN;
use berth_api::{Code, Permission, ROUTES, Route};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn writing() -> bool {
    std::env::var_os("BERTH_WRITE_DOCS").is_some()
}

fn check(path: &Path, expect: &str) {
    if writing() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder to write to");
        std::fs::write(path, expect).expect("a page to write");
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expect, "{} is not what the code says", path.display());
}

#[test]
fn every_code_has_its_page_and_every_page_its_code() {
    let folder = docs().join("errors");
    for code in Code::ALL {
        check(&folder.join(format!("{}.md", code.code())), &code.page());
    }
    let pages: BTreeSet<String> = std::fs::read_dir(&folder)
        .expect("the folder of pages")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let codes: BTreeSet<String> =
        Code::ALL.iter().map(|code| format!("{}.md", code.code())).collect();
    assert_eq!(pages, codes);
}

#[test]
fn codes_count_up_and_none_is_given_twice() {
    for (index, code) in Code::ALL.iter().enumerate() {
        assert_eq!(code.code(), format!("BRT{:04}", index + 1));
        assert!((400..=599).contains(&code.status()), "{code:?}");
    }
}

/// How far a standing reaches: everything, the team's, one's own, or nothing.
fn reach(permission: Permission, here: Standing, elsewhere: Standing) -> &'static str {
    if allows(elsewhere, permission, Owner::Another) {
        "all"
    } else if allows(here, permission, Owner::Another) {
        "team"
    } else if allows(here, permission, Owner::Oneself) {
        "own"
    } else {
        "–"
    }
}

fn cells(route: &Route) -> [&'static str; 8] {
    let permission = route.permission;
    let nobody = Standing::default();
    let member = |role| {
        let here = Standing { here: Some(role), cluster: None };
        reach(permission, here, nobody)
    };
    let cluster = |role| {
        let standing = Standing { here: None, cluster: Some(role) };
        reach(permission, standing, standing)
    };
    [
        if route.is_public() { "all" } else { "–" },
        reach(permission, nobody, nobody),
        member(Role::Viewer),
        member(Role::Researcher),
        member(Role::TeamLead),
        cluster(Role::Viewer),
        cluster(Role::Operator),
        cluster(Role::Admin),
    ]
}

fn matrix() -> String {
    let mut text = String::from(
        "| route | permission | no token | no role | viewer | researcher | team lead | \
         cluster viewer | operator | admin |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for route in ROUTES {
        let Route { method, path, permission, .. } = route;
        let cells = cells(route).join(" | ");
        text.push_str(&format!("| {method} {path} | {} | {cells} |\n", permission.name()));
    }
    text
}

#[test]
fn the_matrix_of_roles_is_what_the_code_allows_cell_by_cell() {
    let path = docs().join("authorization.md");
    let page = std::fs::read_to_string(&path).expect("docs/authorization.md");
    let (before, rest) = page.split_once("| route |").expect("the matrix");
    let (_, after) = rest.split_once("\n\n").expect("something after the matrix");
    check(&path, &format!("{before}{}\n{after}", matrix()));
}

#[test]
fn every_permission_is_asked_for_by_a_route_or_a_document() {
    let documents = berth_api::wire::DocumentKind::ALL.map(|kind| kind.permission());
    for permission in Permission::ALL {
        let asked = ROUTES.iter().chain(FOREIGN).any(|route| route.permission == *permission);
        assert!(asked || documents.contains(permission), "nothing asks for {permission:?}");
    }
}
