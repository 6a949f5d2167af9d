//! The Robots Exclusion Protocol (RFC 9309): whether a path may be read.

/// The name that groups of rules know this program by.
pub(crate) const NAME: &str = "buildscale";
/// The most lines that are read.
const MOST: usize = 20_000;

/// The rules of an origin for this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Robots {
    /// All may be read: there are no rules.
    All,
    /// Nothing may be read: the rules could not be had (§2.3.1.4).
    Nothing,
    /// Each with whether it allows, and its pattern.
    Rules(Vec<(bool, String)>),
}

impl Robots {
    /// The rules of a text: those of the groups that name this program, else those for all (§2.2.1).
    pub fn parse(text: &str) -> Self {
        let (mut own, mut all) = (None, Vec::new());
        let (mut is_own, mut is_all, mut in_rules) = (false, false, true);
        for line in text.lines().take(MOST) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((field, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            match field.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    if std::mem::take(&mut in_rules) {
                        (is_own, is_all) = (false, false);
                    }
                    let name = value.split('/').next().unwrap_or_default().trim().to_ascii_lowercase();
                    is_own |= name == NAME;
                    is_all |= name == "*";
                    if name == NAME {
                        own.get_or_insert_default();
                    }
                }
                kind @ ("allow" | "disallow") => {
                    in_rules = true;
                    // An empty pattern means nothing.
                    if value.is_empty() {
                        continue;
                    }
                    let rule = (kind == "allow", value.to_owned());
                    if is_own {
                        own.get_or_insert_with(Vec::new).push(rule.clone());
                    }
                    if is_all {
                        all.push(rule);
                    }
                }
                _ => {}
            }
        }
        Self::Rules(own.unwrap_or(all))
    }

    /// Whether the path, with its query, may be read: the longest pattern decides, and of two as long the one that allows (§2.2.2).
    pub fn allow(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Nothing => false,
            Self::Rules(rules) => {
                let fitting = rules.iter().filter(|(_, pattern)| fits(pattern, path));
                fitting.max_by_key(|(allows, pattern)| (pattern.len(), *allows)).is_none_or(|(allows, _)| *allows)
            }
        }
    }
}

/// Whether a path begins as a pattern says: `*` stands for any characters, and `$` at the end for the end (§2.2.3).
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, ends) = pattern.strip_suffix('$').map_or((pattern, false), |pattern| (pattern, true));
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| path.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (at, part) in parts.iter().enumerate() {
        // The last piece of a pattern with `$` is looked for at the end.
        if ends && at + 1 == parts.len() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(found) => rest = rest.get(found + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    !ends || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rule_of_the_nearest_group_decides() {
        let text = "User-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /private\nAllow: /private/open\nDisallow: /*.pdf$\nDisallow:\n";
        let robots = Robots::parse(text);
        for (path, may) in [
            ("/", true),
            ("/private", false),
            ("/private/x", false),
            ("/private/open/x", true),
            ("/a/b.pdf", false),
            ("/a/b.pdf?x", true),
        ] {
            assert_eq!(robots.allow(path), may, "{path}");
        }
        let own = "User-agent: *\nDisallow: /\nUser-agent: BuildScale/1.0\nUser-agent: x\nDisallow: /no # here\n";
        assert!(Robots::parse(own).allow("/yes") && !Robots::parse(own).allow("/nothing"));
        assert!(Robots::parse("<html>").allow("/x") && Robots::All.allow("/x") && !Robots::Nothing.allow("/x"));
    }
}
