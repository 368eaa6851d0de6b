//! No import cycles: in every folder of a crate, what lies in it forms layers.
//!
//! A cycle between two rooms makes them one room: neither can be read, tested or moved without the
//! other. So the `use` paths of every crate are read here. Each file or folder of a folder is one
//! node, with all that lies below it; its own root (`lib.rs`, `mod.rs`) only wires and re-exports,
//! and is none. Names that a root re-exports lead to where they are defined. Tests may reach
//! anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module, as the path from the crate's root.
type Module = Vec<String>;

#[test]
fn no_folder_of_any_crate_has_an_import_cycle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates lie in a folder");
    let mut found = Vec::new();
    for entry in fs::read_dir(crates).expect("the crates can be listed") {
        let path = entry.expect("the crates can be listed").path();
        let source = path.join("src");
        if source.is_dir() {
            let name = path.file_name().expect("a crate has a name").to_string_lossy().into_owned();
            let sources = read(&source);
            found.extend(cycles(&sources).into_iter().map(|cycle| format!("{name}: {cycle}")));
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn a_planted_cycle_is_found_also_through_a_re_export_and_tests_are_let_off() {
    let sources = |files: &[(&str, &str)]| -> BTreeMap<PathBuf, String> {
        files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect()
    };
    let plain = [
        ("lib.rs", "mod a; mod b; pub use b::Thing;"),
        ("a.rs", "use crate::b::{self, Thing};"),
        ("b/mod.rs", "mod c; pub struct Thing;"),
        ("b/c.rs", "fn f() { let brace = \"{\"; }"),
    ];
    assert_eq!(cycles(&sources(&plain)), [""; 0]);

    let mut planted = plain;
    planted[3] = ("b/c.rs", "use crate::a::Other;");
    assert_eq!(cycles(&sources(&planted)), ["src: a -> b -> a"]);
    // A path inside a function counts as well.
    planted[3] = ("b/c.rs", "fn f() { crate::a::other() }");
    assert_eq!(cycles(&sources(&planted)), ["src: a -> b -> a"]);
    planted[3] = ("b/c.rs", "#[cfg(test)] mod tests { use crate::a::Other; fn f() {} }");
    assert_eq!(cycles(&sources(&planted)), [""; 0]);

    let by_name = [
        ("lib.rs", "mod a; mod b; pub use a::Other;"),
        ("a.rs", "use super::b::Thing; pub struct Other;"),
        ("b.rs", "use crate::Other; // use crate::c"),
    ];
    assert_eq!(cycles(&sources(&by_name)), ["src: a -> b -> a"]);

    let deeper = [
        ("lib.rs", "mod room;"),
        ("room/mod.rs", "mod x; mod y;"),
        ("room/x.rs", "use super::y::Y;"),
        ("room/y.rs", "use super::x;"),
    ];
    assert_eq!(cycles(&sources(&deeper)), ["src/room: x -> y -> x"]);
}

/// Every file of a crate that ships, by its path below `src`.
fn read(source: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a source folder can be listed") {
            let path = entry.expect("a source folder can be listed").path();
            let below = path.strip_prefix(source).expect("it lies below").to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file is text");
                files.insert(below, text);
            }
        }
    }
    files
}

/// Programs are roots of their own, and files of tests may reach anywhere.
fn ships(path: &Path) -> bool {
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    !path.starts_with("bin") && !parts.any(|part| part == "tests" || part == "tests.rs")
}

fn module(path: &Path) -> Module {
    let path = path.with_extension("");
    let mut parts: Module = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// Each cycle in words: the folder, and the way around.
fn cycles(sources: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let imports: BTreeMap<Module, Vec<Import>> = sources
        .iter()
        .filter(|(path, _)| ships(path))
        .map(|(path, text)| (module(path), imports(text)))
        .collect();
    let edges = edges(&imports);
    let folders: BTreeSet<&[String]> =
        imports.keys().flat_map(|module| (0..module.len()).map(|depth| &module[..depth])).collect();
    let mut found = Vec::new();
    for folder in folders {
        let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, to) in &edges {
            let (Some(from), Some(to)) = (entry(folder, from), entry(folder, to)) else { continue };
            if from != to {
                graph.entry(from).or_default().insert(to);
            }
        }
        let place = std::iter::once("src").chain(folder.iter().map(String::as_str));
        let place = place.collect::<Vec<_>>().join("/");
        found.extend(way_around(&graph).map(|way| format!("{place}: {}", way.join(" -> "))));
    }
    found
}

/// The file or folder directly in a folder that a module lies in.
fn entry<'a>(folder: &[String], module: &'a [String]) -> Option<&'a str> {
    module.strip_prefix(folder)?.first().map(String::as_str)
}

/// Pairs of modules of which the first imports something of the second.
fn edges(imports: &BTreeMap<Module, Vec<Import>>) -> BTreeSet<(Module, Module)> {
    let mut exported: BTreeMap<&Module, BTreeMap<String, Module>> = BTreeMap::new();
    for (module, of) in imports {
        for import in of.iter().filter(|import| import.is_public) {
            if let Some(path) = absolute(imports, module, &import.path)
                && let Some(name) = path.last()
            {
                exported.entry(module).or_default().insert(name.clone(), path.clone());
            }
        }
    }
    let mut edges = BTreeSet::new();
    for (module, of) in imports {
        for import in of {
            let Some(path) = absolute(imports, module, &import.path) else { continue };
            if let Some(to) = defined_in(imports, &exported, path)
                && to != *module
            {
                edges.insert((module.clone(), to));
            }
        }
    }
    edges
}

/// A path from the crate's root; nothing for other crates.
fn absolute(
    imports: &BTreeMap<Module, Vec<Import>>,
    from: &Module,
    path: &[String],
) -> Option<Module> {
    let mut at = from.clone();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => (at, rest) = (Vec::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {
            while let Some(("super", left)) = rest.split_first().map(|(a, b)| (a.as_str(), b)) {
                at.pop();
                rest = left;
            }
        }
        child => {
            let below: Module = [from.as_slice(), &[child.to_owned()]].concat();
            imports.get(&below)?;
        }
    }
    at.extend(rest.iter().cloned());
    Some(at)
}

/// The module that defines what a path names, through re-exports.
fn defined_in(
    imports: &BTreeMap<Module, Vec<Import>>,
    exported: &BTreeMap<&Module, BTreeMap<String, Module>>,
    mut path: Module,
) -> Option<Module> {
    // Re-exports of re-exports come to an end long before.
    for _ in 0..8 {
        let depth = (0..=path.len()).rev().find(|depth| imports.contains_key(&path[..*depth]))?;
        let module: Module = path[..depth].to_vec();
        let name = path.get(depth);
        let next = name.and_then(|name| exported.get(&module)?.get(name)).cloned();
        match next.filter(|next| *next != path) {
            None => return Some(module),
            Some(next) => path = [next.as_slice(), &path[depth + 1..]].concat(),
        }
    }
    None
}

/// One cycle of a graph, if there is any, with its start repeated at the end.
fn way_around<'a>(graph: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Option<Vec<&'a str>> {
    fn walk<'a>(
        graph: &BTreeMap<&'a str, BTreeSet<&'a str>>,
        node: &'a str,
        way: &mut Vec<&'a str>,
        done: &mut BTreeSet<&'a str>,
    ) -> Option<Vec<&'a str>> {
        if let Some(start) = way.iter().position(|seen| *seen == node) {
            let mut cycle = way[start..].to_vec();
            cycle.push(node);
            return Some(cycle);
        }
        if !done.insert(node) {
            return None;
        }
        way.push(node);
        let found = graph.get(node).into_iter().flatten();
        let found = found.copied().find_map(|next| walk(graph, next, way, done));
        way.pop();
        found
    }
    let mut done = BTreeSet::new();
    graph.keys().find_map(|node| walk(graph, node, &mut Vec::new(), &mut done))
}

/// One imported path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Import {
    is_public: bool,
    path: Vec<String>,
}

/// The imports of a file, and the paths from `crate` and `super` that its code names.
fn imports(text: &str) -> Vec<Import> {
    let tokens = without_tests(tokens(text));
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "use" => {
                let end = at + tokens[at..].iter().position(|token| token == ";").unwrap_or(0);
                let is_public =
                    tokens[..at].last().is_some_and(|last| last == "pub" || last == ")");
                let mut paths = Vec::new();
                expand(&tokens[at + 1..end.max(at + 1)], &[], &mut paths);
                found.extend(paths.into_iter().map(|path| Import { is_public, path }));
                at = end.max(at + 1);
            }
            "crate" | "super" if tokens.get(at + 1).is_some_and(|next| next == "::") => {
                let mut path = vec![tokens[at].clone()];
                while tokens.get(at + 1).is_some_and(|next| next == "::")
                    && tokens.get(at + 2).is_some_and(|next| is_word(next))
                {
                    path.push(tokens[at + 2].clone());
                    at += 2;
                }
                found.push(Import { is_public: false, path });
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// The paths of a `use` tree.
fn expand(tree: &[String], prefix: &[String], found: &mut Vec<Vec<String>>) {
    let mut path = prefix.to_vec();
    let mut at = 0;
    while at < tree.len() {
        match tree[at].as_str() {
            "::" => at += 1,
            "{" => {
                let mut depth = 0;
                let mut start = at + 1;
                for end in at..tree.len() {
                    match tree[end].as_str() {
                        "{" => depth += 1,
                        "}" => depth -= 1,
                        _ => {}
                    }
                    let ends_part = depth == 1 && tree[end] == "," || depth == 0;
                    if ends_part {
                        if start < end {
                            expand(&tree[start..end], &path, found);
                        }
                        start = end + 1;
                    }
                    if depth == 0 {
                        break;
                    }
                }
                return;
            }
            "as" => break,
            word => {
                path.push(word.to_owned());
                at += 1;
            }
        }
    }
    found.push(path);
}

/// Without items that are compiled for tests alone.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    const FOR_TESTS: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let here = tokens[at..].iter().take(FOR_TESTS.len()).map(String::as_str);
        if !here.eq(FOR_TESTS) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += FOR_TESTS.len();
        let mut depth = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 && matches!(token.as_str(), ";" | "}") {
                break;
            }
        }
    }
    kept
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::` and single marks; comments and literals are left out.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let next = chars.get(at + 1).copied();
        match chars[at] {
            '/' if next == Some('/') => at = line_end(&chars, at),
            '/' if next == Some('*') => at = comment_end(&chars, at),
            '"' => at = string_end(&chars, at),
            'r' | 'b' if raw_hashes(&chars, at).is_some() => at = raw_end(&chars, at),
            '\'' => at = quote_end(&chars, at),
            c if c.is_alphanumeric() || c == '_' => {
                let start = at;
                while chars.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_') {
                    at += 1;
                }
                tokens.push(chars[start..at].iter().collect());
            }
            ':' if next == Some(':') => {
                tokens.push("::".to_owned());
                at += 2;
            }
            c if c.is_whitespace() => at += 1,
            c => {
                tokens.push(c.to_string());
                at += 1;
            }
        }
    }
    tokens
}

fn line_end(chars: &[char], from: usize) -> usize {
    chars[from..].iter().position(|c| *c == '\n').map_or(chars.len(), |length| from + length)
}

fn comment_end(chars: &[char], from: usize) -> usize {
    let ends = chars[from..].windows(2).position(|pair| pair == ['*', '/']);
    ends.map_or(chars.len(), |length| from + length + 2)
}

fn string_end(chars: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(c) = chars.get(at) {
        match c {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// How many `#` a raw string begins with, if one begins here.
fn raw_hashes(chars: &[char], from: usize) -> Option<usize> {
    let before = from.checked_sub(1).map(|before| chars[before]);
    if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let at = if chars[from] == 'b' { from + 1 } else { from };
    if chars.get(at) != Some(&'r') {
        return None;
    }
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    (chars.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

fn raw_end(chars: &[char], from: usize) -> usize {
    let hashes = raw_hashes(chars, from).unwrap_or(0);
    let open = from + chars[from..].iter().position(|c| *c == '"').unwrap_or(0) + 1;
    let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let ends = chars[open..].windows(close.len()).position(|window| window == close);
    ends.map_or(chars.len(), |length| open + length + close.len())
}

/// A character, or a lifetime.
fn quote_end(chars: &[char], from: usize) -> usize {
    match (chars.get(from + 1), chars.get(from + 2)) {
        (Some('\\'), _) => {
            let ends = chars[from + 3..].iter().position(|c| *c == '\'');
            ends.map_or(chars.len(), |length| from + 3 + length + 1)
        }
        (Some(_), Some('\'')) => from + 3,
        _ => from + 1,
    }
}
