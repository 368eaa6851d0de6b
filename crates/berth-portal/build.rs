//! Makes a table of the files of the portal, as `make portal` has built them.

#[path = "src/table.rs"]
mod table;

use std::env;
use std::fs;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/table.rs");
    println!("cargo::rerun-if-env-changed=PORTAL");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where"));
    let dist = dist();
    let is_wanted = env::var("PORTAL").as_deref() != Ok("no");
    let table = match dist.filter(|_| is_wanted) {
        Some(dist) => table::of(&dist).expect("the files of the portal can be read"),
        None => table::empty(),
    };
    fs::write(out.join("files.rs"), table).expect("a table to write");
}

/// The folder that the portal is built into. Cargo looks at the build script again when something
/// changes in it; a folder that is not there counts as changed every time, and all that depends on
/// this crate would be compiled again with every build. So it is made, where that can be. Where the
/// sources are is asked of the environment: several clones may share a target folder, and with it
/// the build script that the first of them has compiled.
fn dist() -> Option<PathBuf> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join("../../portal");
    let dist = root.join("dist");
    if !dist.is_dir() && fs::create_dir_all(&dist).is_err() {
        return None;
    }
    let dist = dist.canonicalize().ok()?;
    println!("cargo::rerun-if-changed={}", dist.display());
    Some(dist)
}
