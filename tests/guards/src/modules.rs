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
            let files = sources(&name);
            for folder in folders(&files) {
                let circle = circle(&modules(&files, &folder));
                faults.extend(circle.map(|circle| format!("{name}/src/{folder}: {}", circle.join(" -> "))));
            }
        }
    }
    none(faults, "These modules name each other in a circle: move what both need into a module that names neither");
}

/// The code of a crate, by the paths of its files below `src`. Tests do not count.
fn sources(folder: &str) -> BTreeMap<String, String> {
    let source = format!("{folder}/src/");
    let files = rust_files(&source).into_iter();
    let files = files.map(|(path, text)| (path.trim_start_matches(&source).to_owned(), code(&text)));
    files.filter(|(place, _)| !place.ends_with("tests.rs") && !place.contains("tests/")).collect()
}

/// The folders that have modules: that of the crate itself, which is empty, and those such as `hub/`.
fn folders(files: &BTreeMap<String, String>) -> BTreeSet<String> {
    let above = |place: &String| place.match_indices('/').map(|(at, _)| place[..=at].to_owned()).collect::<Vec<_>>();
    let found = files.keys().flat_map(above).filter(|folder| folder != "bin/");
    found.chain([String::new()]).collect()
}

/// The modules of a folder, each with those beside it that it names by `crate::` or `super::`. A re-export of the module above counts as
/// the module that it is from.
fn modules(files: &BTreeMap<String, String>, folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let above = if folder.is_empty() { "lib".into() } else { folder.trim_end_matches('/').to_owned() };
    let exported = files.get(&format!("{above}.rs")).map(|code| exports(code)).unwrap_or_default();
    let mut named = BTreeMap::<String, BTreeSet<String>>::new();
    for (path, code) in files {
        let Some(place) = path.strip_prefix(folder) else { continue };
        let module = place.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        if folder.is_empty() && ["lib", "main", "bin"].contains(&module) {
            continue;
        }
        let names = named.entry(module.to_owned()).or_default();
        names.extend(after(code, &format!("crate::{}", folder.replace('/', "::"))));
        names.extend(after(code, &"super::".repeat(1 + place.matches('/').count())));
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

/// The first names after a path such as `crate::`, also of a list in braces.
fn after(code: &str, path: &str) -> BTreeSet<String> {
    let begins = |at: usize| !code[..at].ends_with(|letter: char| is_of_a_name(letter) || letter == ':');
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(path).filter(|(at, _)| begins(*at)) {
        let rest = &code[at + path.len()..];
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
        files.map(|(module, text)| (module.to_owned(), after(&code(text), "crate::"))).into()
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

#[test]
fn a_circle_is_found_in_any_folder() {
    let files: BTreeMap<String, String> = [
        ("lib.rs", "mod hub;"),
        ("hub.rs", "mod one;\nmod two;\npub(crate) use two::Kind;"),
        ("hub/one.rs", "use super::{Kind, three::Three};"),
        ("hub/two.rs", "mod deep;"),
        ("hub/two/deep.rs", "use super::super::one::One;"),
        ("hub/three.rs", "use crate::other::one;"),
    ]
    .map(|(path, text)| (path.to_owned(), text.to_owned()))
    .into();
    assert_eq!(folders(&files), ["", "hub/", "hub/two/"].map(String::from).into());
    let named = modules(&files, "hub/");
    assert_eq!(named["one"], ["three", "two"].map(String::from).into());
    assert!(named["three"].is_empty());
    assert_eq!(circle(&named), Some(["one", "two", "one"].map(String::from).into()));
    assert_eq!(circle(&modules(&files, "")), None);
}
