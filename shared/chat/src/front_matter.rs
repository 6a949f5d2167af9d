//! The front matter of personas and skills, and the faults in it.
//!
//! Skills have the format of [Agent Skills](https://agentskills.io/specification), so that public ones load unchanged: keys that are not
//! known here are no fault. A fault is told with its line, and whatever can be read of the rest counts.

use domain::ModelSettings;
pub use frontmatter::FrontMatterFault;
use frontmatter::TextParts;
use serde_json::{Map, Value};

/// The longest name of a skill, in characters.
const NAME: usize = 64;
/// The longest description of a skill, in characters.
const DESCRIPTION: usize = 1024;
/// The longest requirement of a skill, in characters.
const COMPATIBILITY: usize = 500;

/// The front matter of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrontMatter<'a> {
    /// Its keys; none when it cannot be read.
    pub keys: Map<String, Value>,
    /// The text after it; the whole text when there is none.
    pub body: &'a str,
    /// Why it cannot be read, if so.
    pub fault: Option<FrontMatterFault>,
    yaml: &'a str,
}

/// Reads the front matter of a persona or a skill, which must have one.
pub fn front_matter(text: &str) -> FrontMatter<'_> {
    let TextParts { keys, yaml, body, fault } = frontmatter::read(text);
    let is_missing = yaml.is_none() && fault.is_none();
    let missing = is_missing.then(|| FrontMatterFault {
        line: 1,
        message: "the file does not begin with front matter: a line ---, keys with values, and a line ---".into(),
    });
    FrontMatter { keys, body, fault: fault.or(missing), yaml: yaml.unwrap_or_default() }
}

impl FrontMatter<'_> {
    /// The text of a key; none when it is not there, is empty or is no text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.keys.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    }

    /// The line of the file that a key is on; the first one when it is not there.
    pub fn line(&self, key: &str) -> u32 {
        let is_here = |line: &str| {
            let rest = line.strip_prefix(key).or_else(|| {
                let quoted = line.strip_prefix(['"', '\''])?.strip_prefix(key)?;
                quoted.strip_prefix(['"', '\''])
            });
            rest.is_some_and(|rest| rest.trim_start().starts_with(':'))
        };
        self.yaml.lines().position(is_here).map_or(1, |position| u32::try_from(position + 2).unwrap_or(u32::MAX))
    }

    /// Whether a key stands in the text, also in one that cannot be read.
    pub fn mentions(&self, key: &str) -> bool {
        self.keys.contains_key(key) || self.line(key) > 1
    }

    /// The settings of the model that a persona has.
    ///
    /// # Errors
    /// The fault of the first setting that is no number, or outside of its bounds.
    pub(crate) fn model_settings(&self) -> Result<ModelSettings, FrontMatterFault> {
        let told = |key: &str, message: String| FrontMatterFault { line: self.line(key), message };
        let given = |key: &str| self.keys.get(key).filter(|value| !value.is_null());
        let number = |key: &str| {
            let read = |value: &Value| value.as_f64().ok_or_else(|| told(key, format!("{key} is no number")));
            given(key).map(read).transpose()
        };
        let tokens = |key: &str| {
            let read = |value: &Value| value.as_u64().and_then(|tokens| u32::try_from(tokens).ok());
            let fault = || told(key, format!("{key} is a whole number, 1 or more"));
            given(key).map(|value| read(value).ok_or_else(fault)).transpose()
        };
        let settings = ModelSettings {
            temperature: number("temperature")?,
            top_p: number("top_p")?,
            max_output_tokens: tokens("max_output_tokens")?,
        };
        match settings.fault() {
            None => Ok(settings),
            Some((key, bounds)) => Err(told(key, format!("{key} is {bounds}"))),
        }
    }

    /// The tools that a skill declares as approved in advance, as it names them.
    pub fn allowed_tools(&self) -> Vec<String> {
        match self.keys.get("allowed-tools") {
            Some(Value::String(text)) => words(text, |character| character == ',' || character.is_whitespace()),
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    /// The faults of a skill in a folder of this name, by line.
    pub fn faults_of_skill(&self, folder: &str) -> Vec<FrontMatterFault> {
        if let Some(fault) = &self.fault {
            return vec![fault.clone()];
        }
        let mut faults = Vec::new();
        let mut add = |key: &str, message: String| faults.push(FrontMatterFault { line: self.line(key), message });
        match self.keys.get("name") {
            None => add("name", "name is missing: write the name of the folder".into()),
            Some(Value::String(name)) => {
                if let Some(why) = no_name(name) {
                    add("name", format!("name {name:?} {why}"));
                } else if name != folder {
                    add("name", format!("name {name:?} is not the name of the folder, {folder:?}"));
                }
            }
            Some(_) => add("name", "name is no text: put it in quotation marks".into()),
        }
        match self.keys.get("description") {
            None => add("description", "description is missing: say what the skill does and when to use it".into()),
            Some(Value::String(text)) if text.trim().is_empty() => {
                add("description", "description is empty: say what the skill does and when to use it".into());
            }
            Some(Value::String(text)) => add_if_long(&mut add, "description", text, DESCRIPTION),
            Some(_) => add("description", "description is no text: put it in quotation marks".into()),
        }
        for (key, longest) in [("license", usize::MAX), ("compatibility", COMPATIBILITY)] {
            match self.keys.get(key) {
                None => {}
                Some(Value::String(text)) => add_if_long(&mut add, key, text, longest),
                Some(_) => add(key, format!("{key} is no text")),
            }
        }
        let is_flat =
            |values: &Map<String, Value>| values.values().all(|value| !value.is_array() && !value.is_object());
        if self.keys.get("metadata").is_some_and(|metadata| !metadata.as_object().is_some_and(is_flat)) {
            add("metadata", "metadata is no list of keys with texts".into());
        }
        let is_named = |names: &Value| match names {
            Value::String(_) => true,
            Value::Array(names) => names.iter().all(Value::is_string),
            _ => false,
        };
        if self.keys.get("allowed-tools").is_some_and(|names| !is_named(names)) {
            add("allowed-tools", "allowed-tools is no text: write the names of tools with spaces between them".into());
        }
        faults.sort_by_key(|fault| fault.line);
        faults
    }
}

fn add_if_long(add: &mut impl FnMut(&str, String), key: &str, text: &str, longest: usize) {
    let length = text.chars().count();
    if length > longest {
        add(key, format!("{key} has {length} characters; {longest} fit"));
    }
}

/// Why a text is no name of a skill, if so.
fn no_name(name: &str) -> Option<&'static str> {
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    match name {
        "" => Some("is empty"),
        _ if name.chars().count() > NAME => Some("has more than 64 characters"),
        _ if !name.chars().all(is_plain) => Some("has other characters than a to z, 0 to 9 and -"),
        _ if name.starts_with('-') || name.ends_with('-') => Some("begins or ends with -"),
        _ if name.contains("--") => Some("has two - in a row"),
        _ => None,
    }
}

/// The parts of a text between separators that stand in no parentheses.
pub(crate) fn words(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<String> {
    let (mut words, mut word, mut depth) = (Vec::new(), String::new(), 0_usize);
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && is_separator(character) {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(character);
        }
    }
    words.push(word);
    words.iter().map(|word| word.trim()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str, folder: &str) -> Vec<(u32, String)> {
        front_matter(text).faults_of_skill(folder).into_iter().map(|fault| (fault.line, fault.message)).collect()
    }

    #[test]
    fn front_matter_is_taken_off_and_read() {
        let text = "---\nname: github\ndescription: Opens pull requests\n---\n# GitHub\nbody";
        let head = front_matter(text);
        assert_eq!((head.body, head.fault.clone()), ("# GitHub\nbody", None));
        assert_eq!((head.text("name"), head.text("description")), (Some("github"), Some("Opens pull requests")));
        assert_eq!((head.line("description"), head.line("none")), (3, 1));
        let windows = "\u{feff}---\r\nname: a\r\nx: ---\r\n---\r\nbody";
        assert_eq!((front_matter(windows).text("name"), front_matter(windows).body), (Some("a"), "body"));
        let none = front_matter("# no front matter");
        assert_eq!((none.body, none.fault.map(|fault| fault.line)), ("# no front matter", Some(1)));
        assert_eq!(front_matter("---\n---\nx").keys, Map::new());
    }

    #[test]
    fn the_settings_of_the_model_of_a_persona_are_read_within_their_bounds() {
        let read = |keys: &str| front_matter(&format!("---\nname: a\n{keys}\n---\nbody")).model_settings();
        let settings = ModelSettings { temperature: Some(0.2), top_p: Some(1.0), max_output_tokens: Some(500) };
        assert_eq!(read("temperature: 0.2\ntop_p: 1\nmax_output_tokens: 500"), Ok(settings));
        assert_eq!(read("temperature:\nmodel: a/b"), Ok(ModelSettings::default()));
        for (keys, line, words) in [
            ("temperature: 2.5", 3, "temperature is a number from 0 to 2"),
            ("temperature: warm", 3, "temperature is no number"),
            ("model: a/b\ntop_p: -1", 4, "top_p is a number from 0 to 1"),
            ("max_output_tokens: 0", 3, "max_output_tokens is a whole number, 1 or more"),
            ("max_output_tokens: 1.5", 3, "max_output_tokens is a whole number, 1 or more"),
        ] {
            let fault = read(keys).err().map(|fault| (fault.line, fault.message));
            assert_eq!(fault, Some((line, words.to_owned())), "{keys}");
        }
    }

    #[test]
    fn a_public_skill_has_no_fault_whatever_else_it_says() {
        let text = "---\nname: pdf-processing\ndescription: >\n  Extracts text.\n  Use it for forms.\nlicense: Apache-2.0\n\
                    compatibility: Requires python3\nmetadata:\n  author: example-org\n  version: 1.0\n\
                    allowed-tools: Bash(git add:*, git commit:*) Read\nuser-invocable: false\nmodel: sonnet\n---\n# PDF\n";
        assert_eq!(faults(text, "pdf-processing"), []);
        assert_eq!(front_matter(text).allowed_tools(), ["Bash(git add:*, git commit:*)", "Read"]);
        let listed = "---\nname: a\ndescription: b\nallowed-tools: [Read, Grep]\n---\n";
        assert_eq!((faults(listed, "a"), front_matter(listed).allowed_tools().len()), (vec![], 2));
    }

    #[test]
    fn faults_of_a_skill_are_told_with_their_lines() {
        let long = "x".repeat(1025);
        for (text, line, words) in [
            ("no front matter", 1, "does not begin"),
            ("---\nname: a\n", 1, "no end"),
            ("---\nname: a\ndescription: [b\n---\n", 0, "not YAML"),
            ("---\nname: a\nname: b\ndescription: c\n---\n", 0, "not YAML"),
            ("---\ndescription: b\n---\n", 1, "name is missing"),
            ("---\nname: b\ndescription: b\n---\n", 2, "the name of the folder"),
            ("---\nlicense: MIT\nname: A b\ndescription: b\n---\n", 3, "other characters"),
            ("---\nname: -a\ndescription: b\n---\n", 2, "begins or ends"),
            ("---\nname: a--a\ndescription: b\n---\n", 2, "two - in a row"),
            ("---\nname: 7\ndescription: b\n---\n", 2, "no text"),
            ("---\nname: a\n---\n", 1, "description is missing"),
            ("---\nname: a\ndescription: ''\n---\n", 3, "description is empty"),
            (&format!("---\nname: a\ndescription: {long}\n---\n"), 3, "1025 characters; 1024 fit"),
            ("---\nname: a\ndescription: b\nmetadata: [x]\n---\n", 4, "metadata"),
            ("---\nname: a\ndescription: b\nlicense: {}\nallowed-tools: 3\n---\n", 4, "license is no text"),
        ] {
            let found = faults(text, "a");
            assert!(found[0].1.contains(words), "{text:?}: {found:?}");
            assert!(line == 0 || found[0].0 == line, "{text:?}: {found:?}");
        }
        let two = faults("---\nallowed-tools: 3\ndescription: b\n---\n", "a");
        assert_eq!(two.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2], "all of them, by line: {two:?}");
        let broken = faults("---\nname: a\ndescription: b\nx: [1\n---\n", "a");
        assert!((4..=6).contains(&broken[0].0), "{broken:?}");
    }
}
