//! The YAML of scripts.
//!
//! ```yaml
//! rules:                       # the first rule that fits the turn plays it; `system` tells several agents apart
//! - when: {system: '^You are the planner', user: '(?i)\bask\b', turn: 1}
//!   steps:                     # one answer of the model each
//!   - reasoning: A question would help.
//!     calls: [{tool: ask_user, args: {questions: [{name: a, question: 'Which?', schema: {type: string}}]}}]
//!   - when: {success: true}    # of the last tool result; a step that does not fit plays `else`
//!     text: 'You said {{result}}.'
//!     else: {text: No answer came.}
//! - steps:
//!   - {text: Hello, chunks: 3, delay_ms: 100}
//! ```

use crate::{request_view::RequestView, template};
use domain::Usage;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The most patterns of a script. People bring scripts for their evaluations.
const MOST_PATTERNS: usize = 1_000;
/// The most bytes of a compiled pattern, and of all of a script together; and the room, in bytes, in which each remembers what it has matched, at least.
const MOST_COMPILED: usize = 1 << 20;
const ALL_COMPILED: usize = 8 << 20;
const LEAST_REMEMBERED: usize = 64 << 10;
/// The most pieces of a text: each is a message to the reader, and all of them are made before the first is sent.
const MOST_CHUNKS: usize = 10_000;

/// A script that cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// Not the YAML that it should be.
    #[error("{0}")]
    Yaml(Box<serde_saphyr::Error>),
    /// A rule makes no sense.
    #[error("rule {rule}, step {step}: {reason}")]
    Step {
        /// The number of the rule, from 1.
        rule: usize,
        /// The number of the step in the rule, from 1.
        step: usize,
        /// The fault.
        reason: String,
    },
    /// A pattern is none, or too large beside the others.
    #[error("rule {rule}: {reason}")]
    Pattern {
        /// The number of the rule, from 1.
        rule: usize,
        /// The fault.
        reason: Box<regex::Error>,
    },
    /// There are too many patterns.
    #[error("it has {0} patterns, and {most} are the most", most = MOST_PATTERNS)]
    Patterns(usize),
}

/// A whole script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    pub(crate) rules: Vec<Rule>,
}

/// A turn's condition, and the steps to play in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    #[serde(default)]
    pub(crate) when: Condition,
    pub(crate) steps: Vec<Step>,
}

/// A condition; everything that it names must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Condition {
    /// The last words of a person.
    user: Option<Pattern>,
    /// The system text: which agent is asked.
    system: Option<Pattern>,
    /// The output of the last tool in this turn.
    result: Option<Pattern>,
    /// Whether that tool succeeded.
    success: Option<bool>,
    /// The number of the turn, from 1.
    turn: Option<usize>,
}

impl Condition {
    pub(crate) fn holds(&self, scene: &RequestView<'_>) -> bool {
        let last = scene.results.last();
        self.user.as_ref().is_none_or(|pattern| pattern.is_match(scene.user))
            && self.system.as_ref().is_none_or(|pattern| pattern.is_match(scene.system))
            && self.result.as_ref().is_none_or(|pattern| last.is_some_and(|last| pattern.is_match(last.output)))
            && self.success.is_none_or(|success| last.is_some_and(|last| last.success == success))
            && self.turn.is_none_or(|turn| turn == scene.turn)
    }

    fn patterns(&mut self) -> impl Iterator<Item = &mut Pattern> {
        [&mut self.user, &mut self.system, &mut self.result].into_iter().flatten()
    }
}

/// A regular expression. It is compiled once it is known how many there are.
#[derive(Debug)]
enum Pattern {
    Text(String),
    Compiled(Regex),
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Text)
    }
}

impl Pattern {
    /// Compiles it within so many bytes.
    fn compile(&mut self, most: usize) -> Result<(), regex::Error> {
        if let Self::Text(text) = self {
            let remembered = most.max(LEAST_REMEMBERED);
            *self = Self::Compiled(RegexBuilder::new(text).size_limit(most).dfa_size_limit(remembered).build()?);
        }
        Ok(())
    }

    fn is_match(&self, text: &str) -> bool {
        matches!(self, Self::Compiled(pattern) if pattern.is_match(text))
    }
}

/// One answer.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Step {
    when: Condition,
    /// Played when `when` does not hold; nothing is said when there is none.
    #[serde(rename = "else")]
    otherwise: Option<Box<Step>>,
    pub(crate) reasoning: String,
    pub(crate) text: String,
    /// The pieces that reasoning and text come in, each; from 1 to [`MOST_CHUNKS`].
    pub(crate) chunks: Option<usize>,
    /// The wait before each piece, in milliseconds.
    pub(crate) delay_ms: u64,
    pub(crate) calls: Vec<Call>,
    pub(crate) error: Option<ScriptedFault>,
    /// How many deltas come before the error; the whole answer when it says nothing and there is one.
    pub(crate) after: Option<usize>,
    /// The requested wait of a `rate_limited` error, in milliseconds.
    pub(crate) retry_after_ms: Option<u64>,
    /// Never ends.
    pub(crate) hang: bool,
    /// Stops at the output limit instead of by itself.
    pub(crate) cut_short: bool,
    pub(crate) usage: Option<ScriptUsage>,
}

impl Step {
    /// The step that is played here.
    pub(crate) fn chosen(&self, scene: &RequestView<'_>) -> Option<&Self> {
        if self.when.holds(scene) { Some(self) } else { self.otherwise.as_ref()?.chosen(scene) }
    }

    fn patterns<'a>(&'a mut self, found: &mut Vec<&'a mut Pattern>) {
        found.extend(self.when.patterns());
        if let Some(step) = &mut self.otherwise {
            step.patterns(found);
        }
    }

    fn check(&self) -> Result<(), String> {
        template::check(&self.reasoning)?;
        template::check(&self.text)?;
        self.calls.iter().try_for_each(|call| template::check_value(&call.args))?;
        if self.chunks.is_some_and(|chunks| !(1..=MOST_CHUNKS).contains(&chunks)) {
            return Err(format!("chunks is a number from 1 to {MOST_CHUNKS}"));
        }
        if self.usage.is_some_and(|usage| !usage.can_be_counted()) {
            return Err(format!("usage has tokens up to {MOST_TOKENS}, and dollars from 0 to {MOST_TOKENS}"));
        }
        self.otherwise.as_ref().map_or(Ok(()), |step| step.check())
    }
}

/// One tool call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    pub(crate) tool: String,
    /// An object, or a text to send as it is, valid or not.
    #[serde(default)]
    pub(crate) args: Value,
}

/// The kinds of failures: see `ports::ModelError`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScriptedFault {
    RateLimited,
    Unavailable,
    Unauthorized,
    Rejected,
    Broken,
}

/// The usage that an answer reports.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ScriptUsage {
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    cost_usd: f64,
}

/// The most tokens, and dollars, of an answer: little enough to be added up. People bring scripts for their evaluations.
const MOST_TOKENS: u64 = 1 << 40;

impl ScriptUsage {
    fn can_be_counted(&self) -> bool {
        let tokens = [self.input_tokens, self.output_tokens, self.cached_tokens];
        tokens.into_iter().all(|tokens| tokens <= MOST_TOKENS) && (0.0..=MOST_TOKENS as f64).contains(&self.cost_usd)
    }
}

impl From<ScriptUsage> for Usage {
    fn from(spent: ScriptUsage) -> Self {
        Self {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cached_tokens: spent.cached_tokens,
            cost_usd: spent.cost_usd,
        }
    }
}

impl Script {
    pub(crate) fn parse(yaml: &str) -> Result<Self, ScriptError> {
        let mut script: Self = serde_saphyr::from_str(yaml).map_err(|error| ScriptError::Yaml(Box::new(error)))?;
        script.compile()?;
        for (rule, found) in script.rules.iter().enumerate() {
            for (step, found) in found.steps.iter().enumerate() {
                found.check().map_err(|reason| ScriptError::Step { rule: rule + 1, step: step + 1, reason })?;
            }
        }
        Ok(script)
    }

    /// Compiles its patterns, each within its share of the bytes for all.
    fn compile(&mut self) -> Result<(), ScriptError> {
        let mut patterns = Vec::new();
        for (rule, Rule { when, steps }) in self.rules.iter_mut().enumerate() {
            let mut found: Vec<_> = when.patterns().collect();
            steps.iter_mut().for_each(|step| step.patterns(&mut found));
            patterns.extend(found.into_iter().map(|pattern| (rule + 1, pattern)));
        }
        if patterns.len() > MOST_PATTERNS {
            return Err(ScriptError::Patterns(patterns.len()));
        }
        let most = (ALL_COMPILED / patterns.len().max(1)).min(MOST_COMPILED);
        for (rule, pattern) in patterns {
            pattern.compile(most).map_err(|error| ScriptError::Pattern { rule, reason: Box::new(error) })?;
        }
        Ok(())
    }
}
