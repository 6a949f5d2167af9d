//! Every crate that a build links carries a licence that deny.toml allows.

use crate::repository::{metadata, none, parse_toml};

#[test]
fn licences_are_allowed() {
    let rules = parse_toml("deny.toml");
    let allowed: Vec<&str> =
        rules["licenses"]["allow"].as_array().into_iter().flatten().filter_map(|l| l.as_str()).collect();
    let faults = metadata()
        .packages
        .iter()
        .map(|package| (package, package.license.as_deref().or_else(|| clarified(&rules, &package.name))))
        .filter(|(_, licence)| !licence.is_some_and(|licence| is_allowed(licence, &allowed)))
        .map(|(package, licence)| format!("{} {}: {}", package.name, package.version, licence.unwrap_or("none named")))
        .collect();
    none(faults, "deny.toml does not allow these licences; take another crate, or decide and add the licence there");
}

/// The licence of a crate that has it in a file alone, as somebody has read it there.
fn clarified<'a>(rules: &'a toml::Table, name: &str) -> Option<&'a str> {
    let all = rules["licenses"].get("clarify")?.as_array()?;
    let own = all.iter().find(|own| own.get("crate").and_then(toml::Value::as_str) == Some(name))?;
    own.get("expression")?.as_str()
}

/// Whether an SPDX expression can be met with `allowed` alone.
///
/// Brackets are dropped, and each part between two `AND` must offer one allowed choice. If brackets or precedence matter, that asks for
/// more than the expression does, never for less, and no crate here needs the difference.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let flat = expression.replace(['(', ')'], "").replace('/', " OR ");
    flat.split(" AND ").all(|choices| choices.split(" OR ").any(|licence| allowed.contains(&licence.trim())))
}

#[test]
fn expressions_are_never_read_too_generously() {
    let allowed = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("MIT/GPL-3.0", true),
        ("GPL-3.0 OR MIT", true),
        ("MIT AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("(MIT OR GPL-3.0) AND GPL-3.0", false),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
