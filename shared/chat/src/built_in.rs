//! The personas in the box, files under `personas/`. They are not copied into workspaces: a workspace without a persona of that name has the one
//! here, and gets the newer one with the program.

/// By name.
const PERSONAS: [(&str, &str); 9] = [
    ("assistant", include_str!("../personas/assistant.md")),
    ("brief-writer", include_str!("../personas/brief-writer.md")),
    ("builder", include_str!("../personas/builder.md")),
    ("content-strategist", include_str!("../personas/content-strategist.md")),
    ("planner", include_str!("../personas/planner.md")),
    ("researcher", include_str!("../personas/researcher.md")),
    ("reviewer", include_str!("../personas/reviewer.md")),
    ("security-auditor", include_str!("../personas/security-auditor.md")),
    ("seo-specialist", include_str!("../personas/seo-specialist.md")),
];

/// The names of the personas in the box, in order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PERSONAS.iter().map(|(name, _)| *name)
}

/// The `AGENT.md` of a persona in the box; none when there is no such persona.
pub(crate) fn persona(name: &str) -> Option<&'static str> {
    PERSONAS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{front_matter::front_matter, tool_allowlist};

    /// Every request of a chat pays for the prompt: about 1,700 tokens.
    const MOST: usize = 7 * 1024;

    #[test]
    fn every_persona_in_the_box_has_a_purpose_tools_that_exist_and_a_prompt_of_bounded_length() {
        for name in names() {
            let text = persona(name).unwrap_or_default();
            let head = front_matter(text);
            assert_eq!(head.faults_of_skill(name), [], "{name}");
            let tools = tool_allowlist::listed(&head).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_eq!(tools.is_none(), name == "assistant", "{name}: only the assistant has all tools");
            let lines = head.body.trim().lines().count();
            assert!((25..=100).contains(&lines) && text.len() <= MOST, "{name}: {lines} lines, {} bytes", text.len());
            for section in ["## Method", "## Result", "## Limits"] {
                assert!(head.body.contains(section), "{name}: {section}");
            }
        }
    }
}
