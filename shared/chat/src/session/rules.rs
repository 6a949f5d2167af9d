//! Rules that are certain about a message, so that no model is asked. Pure.
//!
//! A rule speaks only when nothing in the message points elsewhere; for all other messages there is none, and the model is asked. The rules
//! know English. A message in another language is left to the model.

use domain::{Analysis, Strategy};
use std::collections::{HashMap, HashSet};

/// The reasoning about a message that asks for nothing.
pub(crate) const COURTESY: &str = "a greeting, or thanks";

/// Words that are a whole message, alone or with others of them.
const COURTESIES: &[&str] = &[
    "hi", "hello", "hey", "there", "good", "morning", "evening", "night", "thanks", "thank", "you", "ok", "okay",
    "great", "perfect", "yes", "no", "bye", "cool", "nice", "sounds", "fine", "got", "it", "never", "mind", "work",
    "welcome", "back", "sure", "right", "well", "done", "a", "lot", "that", "helps", "so", "much", "please", "again",
];
/// Beginnings of questions about the world, and not about files of the person.
const QUESTIONS: &[&str] = &[
    "what is a ",
    "what is an ",
    "what is the difference between ",
    "what does ",
    "explain ",
    "define ",
    "how does ",
    "how do i say ",
    "tell me a joke",
    "who are you",
    "what can you do",
    "can you explain ",
    "why is the ",
    "why do ",
];
/// Words about things of the person: a question with one of them is not about the world.
const OWN: &[&str] = &[
    "my",
    "our",
    "mine",
    "project",
    "projects",
    "task",
    "tasks",
    "note",
    "notes",
    "file",
    "files",
    "calendar",
    "folder",
    "meeting",
    "meetings",
    "brief",
    "report",
    "reports",
    "document",
    "documents",
    "deadline",
    "deadlines",
    "last",
];
/// Verbs of one operation.
const OPERATIONS: &[&str] = &[
    "list", "show", "find", "search", "open", "read", "get", "create", "add", "mark", "rename", "set", "update",
    "move", "delete", "archive", "count", "print", "schedule",
];
/// Verbs of work that an operation does not do.
const WORKS: &[&str] = &[
    "compare",
    "analyse",
    "analyze",
    "review",
    "audit",
    "plan",
    "prepare",
    "research",
    "evaluate",
    "investigate",
    "summarise",
    "summarize",
    "write",
    "draft",
    "merge",
    "rank",
    "group",
    "collect",
    "extract",
    "propose",
    "recommend",
    "suggest",
    "forecast",
    "estimate",
    "reschedule",
    "organise",
    "organize",
    "fix",
    "remove",
    "gather",
    "rate",
    "score",
    "check",
    "develop",
    "design",
    "migrate",
    "translate",
    "tell",
    "make",
    "put",
    "explain",
    "decide",
    "assign",
];
/// Words that join steps.
const JOINTS: &[&str] = &["then", "finally", "afterwards"];
/// Beginnings of questions that one look answers.
const LOOKS: &[&str] = &[
    "what is on my calendar",
    "what's on my calendar",
    "which of my tasks",
    "which tasks",
    "how many tasks",
    "how many files",
    "when is my next",
    "do i have a meeting",
    "am i free",
    "what is in the folder",
    "where did i save",
];

/// Courtesies that may be the answer to a question: what they ask for is in the words before them.
const ANSWERS: &[&str] = &[
    "yes", "no", "ok", "okay", "sure", "fine", "right", "sounds", "good", "great", "please", "perfect", "again",
    "done", "it", "got",
];
/// Words that point at something that was said, or at what the conversation is about.
const POINTERS: &[&str] = &[
    "we", "us", "it", "its", "this", "that", "these", "those", "they", "them", "he", "she", "next", "here", "above",
    "again",
];

/// Words of an agreement, which thanks do not take back.
const AGREEMENTS: &[&str] = &["yes", "sure", "please"];
/// Words of questions and of locations that name nothing.
const COMMON: &[&str] = &[
    "an",
    "and",
    "are",
    "at",
    "between",
    "by",
    "can",
    "define",
    "difference",
    "do",
    "does",
    "explain",
    "for",
    "from",
    "how",
    "in",
    "is",
    "mean",
    "more",
    "no",
    "of",
    "on",
    "or",
    "tell",
    "the",
    "there",
    "to",
    "what",
    "who",
    "why",
    "with",
    "yet",
    "you",
];

/// The place of a message in its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessagePlace {
    /// Whether words were said before it.
    pub follows: bool,
    /// Whether the session is about nothing in particular.
    pub is_global: bool,
    /// Whether it [names](names_something) something of the session's location, such as a project.
    pub is_of_location: bool,
}

impl MessagePlace {
    /// The first message of a session about nothing in particular.
    #[cfg(test)]
    pub const FIRST: Self = Self { follows: false, is_global: true, is_of_location: false };
}

/// The analysis of a message about which a rule is certain. An answer to what was said before asks for something that no rule sees; and a
/// question in a session about something is about that, and not about the world.
pub(crate) fn certain(message: &str, place: MessagePlace) -> Option<Analysis> {
    let text = message.trim().to_lowercase();
    let words: Vec<&str> = text
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let names_a_path = text.contains('/');
    if words.is_empty() {
        return None;
    }
    if words.len() <= 8 && words.iter().all(|word| COURTESIES.contains(word)) {
        let answers = has(AGREEMENTS) || has(ANSWERS) && !has(&["thanks", "thank", "bye"]);
        if place.follows && answers {
            return None;
        }
        return Some(analysis(Strategy::Simple, COURTESY, 0));
    }
    let acts: Vec<usize> = positions(&words, |word| OPERATIONS.contains(&word) || WORKS.contains(&word));
    let joints = words.iter().filter(|word| JOINTS.contains(word)).count();
    let ranges = text.contains("for each ") || text.contains("for every ");
    let numbered =
        ["1.", "1)"].iter().any(|one| text.starts_with(one)) && ["2.", "2)"].iter().any(|two| text.contains(two));
    let steps = steps(&words, &acts, |word| follows_a_joint(&text, word));
    if numbered || (joints > 0 && acts.len() >= 2) || (ranges && !acts.is_empty()) || steps >= 3 {
        let operations = u32::try_from(acts.len().max(2)).unwrap_or(2);
        return Some(analysis(Strategy::Complex, "it has several steps", operations));
    }
    let is_one = acts.len() <= 1 && joints == 0 && !ranges && !has(&["all", "each", "every"]);
    let is_of_the_world = place.is_global && !place.is_of_location && !has(OWN) && !has(POINTERS);
    if !names_a_path && is_one && is_of_the_world && QUESTIONS.iter().any(|begin| text.starts_with(begin)) {
        return Some(analysis(Strategy::Simple, "a question about the world", 0));
    }
    if is_one && LOOKS.iter().any(|begin| text.starts_with(begin)) {
        return Some(analysis(Strategy::Tool, "a question that one look answers", 1));
    }
    let begins = words.first().is_some_and(|word| OPERATIONS.contains(word));
    let short = words.len() <= 14;
    let several = text.matches(',').count() > 1 || text.contains(" and ");
    if begins && short && !several && joints == 0 && !ranges && !has(&["each", "every"]) && !works_beside(&words) {
        return Some(analysis(Strategy::Tool, "one operation", 1));
    }
    None
}

/// Whether a message has a word of a location: the name of a project, or of a task. It is then no question about the world.
pub(crate) fn names_something(message: &str, location: &str) -> bool {
    let lower = |text: &str| text.to_lowercase();
    let (message, location) = (lower(message), lower(location));
    let named: HashSet<&str> = names(&location).collect();
    names(&message).any(|word| named.contains(word))
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| word.chars().nth(1).is_some() && !COMMON.contains(word))
}

/// The steps that the verbs at these places begin. A verb behind a comma or an "and" begins another step; elsewhere the same word may be a noun. Each verb
/// is looked for in the text once, however often it is there: a message may be long.
fn steps(words: &[&str], acts: &[usize], follows: impl Fn(&str) -> bool) -> usize {
    let mut known: HashMap<&str, bool> = HashMap::new();
    let mut begins = |word| *known.entry(word).or_insert_with(|| follows(word));
    acts.iter().filter(|at| **at == 0 || begins(words[**at])).count()
}

fn positions(words: &[&str], is: impl Fn(&str) -> bool) -> Vec<usize> {
    words.iter().enumerate().filter(|(_, word)| is(word)).map(|(at, _)| at).collect()
}

/// Whether a word stands behind a comma, a colon, an "and" or a "then".
fn follows_a_joint(text: &str, word: &str) -> bool {
    [", ", ": ", "and ", "then "].iter().any(|joint| text.contains(&format!("{joint}{word} ")))
}

/// Whether work is asked for beside the first word, which is an operation.
fn works_beside(words: &[&str]) -> bool {
    // "the plan", "a review", "write the brief" as the name of a task: an article before it, or a quotation, makes it a noun.
    let is_noun = |at: usize| at > 0 && ["the", "a", "to", "task", "note", "project", "that"].contains(&words[at - 1]);
    positions(words, |word| WORKS.contains(&word)).into_iter().any(|at| at > 0 && !is_noun(at))
}

/// An analysis with this strategy.
pub(crate) fn analysis(strategy: Strategy, reasoning: &str, estimated_operations: u32) -> Analysis {
    Analysis {
        strategy,
        reasoning: reasoning.to_owned(),
        estimated_operations,
        requires_tools: strategy != Strategy::Simple,
        requires_executors: strategy == Strategy::Complex,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strategy and message, a line each. They were written for this test, so the figures say how certain the rules are, and not how well
    /// they would do on the messages of strangers.
    const MESSAGES: &str = include_str!("../../tests/data/messages.tsv");

    #[test]
    fn rules_are_right_when_they_speak_and_leave_the_rest_to_the_model() {
        let (mut all, mut spoken, mut wrong) = (0_usize, 0_usize, Vec::new());
        for line in MESSAGES.lines() {
            let (label, message) = line.split_once('\t').unwrap_or_default();
            all += 1;
            let Some(analysis) = certain(message, MessagePlace::FIRST) else { continue };
            spoken += 1;
            let told = format!("{:?}", analysis.strategy).to_lowercase();
            if told != label {
                wrong.push(format!("{message}: {told} instead of {label}"));
            }
        }
        assert_eq!(all, 200);
        assert!(spoken >= 100, "the rules spoke about {spoken} of {all} messages");
        assert!(wrong.len() * 50 <= spoken, "{} of {spoken} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn each_verb_is_looked_for_once_in_a_message_of_any_length() {
        let words = ["list", "and", "show"].repeat(10_000);
        let acts = positions(&words, |word| OPERATIONS.contains(&word));
        let looked = std::cell::Cell::new(0);
        let follows = |word: &str| {
            looked.set(looked.get() + 1);
            word == "show"
        };
        assert_eq!(steps(&words, &acts, follows), 10_001, "the first word, and each that follows a joint");
        assert_eq!(looked.get(), 2);
    }

    #[test]
    fn a_message_of_another_language_or_of_none_is_left_to_the_model() {
        for message in
            ["", "…", "Vergleiche die drei Berichte und schreibe eine Empfehlung", "これを要約して", "apollo"]
        {
            assert_eq!(certain(message, MessagePlace::FIRST), None, "{message}");
        }
    }

    #[test]
    fn an_answer_and_a_question_about_what_a_session_is_about_are_left_to_the_model() {
        let answers = MessagePlace { follows: true, ..MessagePlace::FIRST };
        for message in [
            "Yes",
            "Yes please",
            "Yes, thanks",
            "Sure, thank you so much!",
            "Please, thanks",
            "ok",
            "Sure",
            "No",
            "sounds good",
            "Do it again please",
            "great",
        ] {
            assert_eq!(certain(message, answers), None, "{message}");
        }
        for message in ["Thank you so much", "Thanks, that helps a lot", "good night, bye"] {
            assert!(certain(message, answers).is_some(), "{message}");
        }
        let project = MessagePlace { is_global: false, ..MessagePlace::FIRST };
        for message in [
            "Why do we miss the dates?",
            "Explain the risks",
            "What does Atlas cost so far?",
            "What does it say about paper?",
            "Define the next milestone",
            "How does the launch look?",
        ] {
            assert_eq!(certain(message, project), None, "{message}");
        }
        for message in ["Why do we miss the dates?", "What does it say about paper?", "Define the next milestone"] {
            assert_eq!(certain(message, MessagePlace::FIRST), None, "{message}");
        }
        assert!(certain("Hello", project).is_some());
    }

    #[test]
    fn a_question_about_something_of_the_location_is_left_to_the_model() {
        const LOCATION: &str =
            "The projects: atlas, q3-launch and 3 more.\nOpen tasks:\n/projects/atlas/tasks/draw.md: Draw the Elbe";
        for message in [
            "What does Atlas cost so far?",
            "what does atlas cost?",
            "Explain Atlas",
            "How does the launch look?",
            "Why do Atlas's dates slip?",
            "Explain the Elbe drawing",
        ] {
            assert!(names_something(message, LOCATION), "{message}");
            let place = MessagePlace { is_of_location: true, ..MessagePlace::FIRST };
            assert_eq!(certain(message, place), None, "{message}");
            assert!(certain(message, MessagePlace::FIRST).is_some(), "{message}: it would be answered without a look");
        }
        for message in ["What is a burn-down chart?", "Explain the Eisenhower matrix", "Why do estimates grow?", ""] {
            assert!(!names_something(message, LOCATION), "{message}");
        }
        assert!(!names_something("What does Atlas cost?", "There are no projects yet."));
    }
}
