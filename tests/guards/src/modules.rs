//! The modules of a crate: in one style of files, and without circles.

use crate::repository::{none, root, rust_files};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

/// A file of this name that has to be there: one that `#[path]` names finds its modules beside it.
const MOD_RS: [&str; 1] = ["shared/models/tests/it/support/mod.rs"];

#[test]
fn a_module_is_the_file_with_its_name() {
    let files = rust_files("").into_iter().map(|(path, _)| path);
    let odd = files.filter(|path| path.ends_with("/mod.rs") && !MOD_RS.contains(&path.as_str()));
    none(odd.collect(), "Rename these files to the name of their folder, beside it: x/mod.rs is x.rs");
}

#[test]
fn modules_name_only_those_below_them() {
    let mut faults = Vec::new();
    for layer in ["shared", "functions"] {
        for entry in fs::read_dir(root().join(layer)).into_iter().flatten().flatten() {
            let name = format!("{layer}/{}", entry.file_name().to_string_lossy());
            let circle = circle(&modules(&name));
            faults.extend(circle.map(|circle| format!("{name}: {}", circle.join(" -> "))));
        }
    }
    none(faults, "These modules name each other in a circle: move what both need into a module that names neither");
}

/// The top modules of a crate, each with those that it names by `crate::`. Tests do not count, and a re-export of the crate's root counts
/// as its module.
fn modules(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let source = format!("{folder}/src/");
    let (mut exported, mut named) = (BTreeMap::new(), BTreeMap::<String, BTreeSet<String>>::new());
    for (path, text) in rust_files(&source) {
        let place = path.trim_start_matches(&source);
        let code = code(&text);
        match place.split('/').next().unwrap_or_default().trim_end_matches(".rs") {
            "lib" => exported = exports(&code),
            "main" | "bin" => {}
            _ if place.ends_with("tests.rs") || place.contains("tests/") => {}
            module => named.entry(module.to_owned()).or_default().extend(after_crate(&code)),
        }
    }
    let known: BTreeSet<String> = named.keys().cloned().collect();
    for (module, names) in &mut named {
        *names = names.iter().map(|name| exported.get(name).unwrap_or(name).clone()).collect();
        names.retain(|name| known.contains(name) && name != module);
    }
    named
}

/// A file without comments, and without the module of tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The first names after `crate::`, also of a list in braces.
fn after_crate(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (_, rest) in code.match_indices("crate::").map(|(at, found)| code.split_at(at + found.len())) {
        let Some(list) = rest.strip_prefix('{') else {
            names.insert(rest.chars().take_while(|letter| is_of_a_name(*letter)).collect());
            continue;
        };
        let (mut depth, mut name, mut is_first) = (1, String::new(), true);
        for letter in list.chars() {
            match letter {
                letter if depth == 1 && is_first && is_of_a_name(letter) => name.push(letter),
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => is_first = true,
                _ => {}
            }
            if !name.is_empty() && (!is_of_a_name(letter) || depth == 0) {
                names.insert(std::mem::take(&mut name));
                is_first = letter == ',';
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}

/// The names that the root of a crate exports from its modules, each with the module.
fn exports(code: &str) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for statement in code.split(';').filter_map(|statement| statement.split_once(" use ")) {
        let (module, names) = statement.1.split_once("::").unwrap_or_default();
        for name in names.split(|letter| !is_of_a_name(letter)).filter(|name| !name.is_empty()) {
            exported.insert(name.to_owned(), module.trim().to_owned());
        }
    }
    exported
}

/// A circle, if there is one: the modules on the way, the first one again at the end.
fn circle(named: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    /// Whether a circle is found; `left` has the modules that lead to none.
    fn walk(
        at: &str,
        named: &BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<String>,
        left: &mut BTreeSet<String>,
    ) -> bool {
        if left.contains(at) {
            return false;
        }
        if let Some(begin) = way.iter().position(|module| module == at) {
            way.drain(..begin);
            way.push(at.to_owned());
            return true;
        }
        way.push(at.to_owned());
        if named.get(at).into_iter().flatten().any(|next| walk(next, named, way, left)) {
            return true;
        }
        way.pop();
        left.insert(at.to_owned());
        false
    }
    let (mut way, mut left) = (Vec::new(), BTreeSet::new());
    named.keys().any(|module| walk(module, named, &mut way, &mut left)).then_some(way)
}

#[test]
fn a_circle_is_found_in_any_form_of_use() {
    let named = |files: [(&str, &str); 3]| -> BTreeMap<String, BTreeSet<String>> {
        files.map(|(module, text)| (module.to_owned(), after_crate(&code(text)))).into()
    };
    let straight = named([
        ("flow", "use crate::{\n    canonical,\n    graph::{Graph, Role},\n};\n// crate::load::Fault\n"),
        ("load", "use crate::{Graph, flow::{Agent, Flow}, graph::FaultAt};"),
        ("graph", "#[cfg(test)]\nmod tests { use crate::load::load; }"),
    ]);
    assert_eq!(straight["flow"], ["canonical", "graph"].map(String::from).into());
    assert_eq!(straight["load"], ["Graph", "flow", "graph"].map(String::from).into());
    assert_eq!(circle(&straight), None);
    let round = named([
        ("flow", "use crate::{\n    graph::Graph,\n    load::Fault,\n};"),
        ("load", "fn x(flow: crate::flow::Flow) {}"),
        ("graph", ""),
    ]);
    assert_eq!(circle(&round), Some(["flow", "load", "flow"].map(String::from).into()));
    let exported = exports("pub use flow::Flow;\npub use graph::{Graph, Role as Part};");
    assert_eq!(exported.get("Flow").map(String::as_str), Some("flow"));
    assert_eq!(exported.get("Part").map(String::as_str), Some("graph"));
}
