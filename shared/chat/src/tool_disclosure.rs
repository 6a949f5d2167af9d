//! The tools of a session and of its executors, within their budget (spec 003 §2, §3): a tool is told of whole, or shortly, or by its name alone. Pure.
//!
//! A short declaration has the first sentence of the description, and the names and types of the arguments. Names alone are in the description of
//! [`TOOL_INFO`], which shows such tools whole; they are on the list from then on, for as long as the model reads the answer. A call is the same for
//! all three: its arguments are checked against the whole schema.

use domain::{
    ChatConfig, Message, ToolSpec, json_length,
    session::{Cut, SessionBudget},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fmt::Write as _, sync::Arc};

/// The tool that shows tools which the request has no room for.
pub(crate) const TOOL_INFO: &str = "tool_info";
/// A budget is at most this part of the context, so words keep the rest.
const PART: u64 = 4;
/// The keywords of a schema that a short declaration lacks: words, and bounds, of which a refused call tells.
const LEFT_OUT: [&str; 11] = [
    "description",
    "examples",
    "default",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
    "additionalProperties",
];

/// The tools of a request.
pub(crate) struct Offer {
    /// Their declarations.
    pub specs: Arc<[Arc<ToolSpec>]>,
    /// The tools as a part of the context that was cut; none where all are whole.
    pub cut: Option<Cut>,
}

/// The budget of the tools of this chat, in tokens; none for a chat whose tools have none.
pub(crate) fn budget(config: &ChatConfig) -> Option<u32> {
    let of_executor = || Some(config.agent.as_ref()?.executor.as_ref()?.tools_tokens);
    let usual = config.session.as_ref().map(|session| session.budgets.tools).or_else(of_executor)?;
    Some(usual.min(u32::try_from(config.context_tokens / PART).unwrap_or(u32::MAX)))
}

/// The answers of [`TOOL_INFO`] among these messages.
pub(crate) fn earlier_answers<'a>(messages: impl Iterator<Item = &'a Message>) -> String {
    let answers = messages.filter_map(|message| match message {
        Message::Tool { tool, output, success: true, .. } if tool == TOOL_INFO => Some(output.as_str()),
        _ => None,
    });
    answers.collect()
}

/// `all` tools, whose declarations have so many bytes, within so many tokens, with `plan`, which is always whole. Those that change something
/// (`changes`) come before those that look, as the work is about them. `shown` is that of [`shown`]; its tools have as much room again.
pub(crate) fn within(
    (all, bytes): (&Arc<[Arc<ToolSpec>]>, usize),
    plan: Option<ToolSpec>,
    tokens: u32,
    shown: &str,
    changes: impl Fn(&str) -> bool,
) -> Offer {
    let room = SessionBudget::bytes(tokens);
    let of_plan = plan.as_ref().map_or(0, size);
    let plan = plan.map(Arc::new);
    let whole = of_plan + bytes;
    if whole <= room {
        let specs = match plan {
            Some(plan) => all.iter().cloned().chain([plan]).collect(),
            None => Arc::clone(all),
        };
        return Offer { specs, cut: None };
    }
    let brief: Vec<_> = all.iter().map(|spec| Arc::new(briefly(spec))).collect();
    let mut left = room.saturating_sub(of_plan);
    if sizes(&brief) > left {
        left = left.saturating_sub(size(&info(all.iter())));
    }
    let mut fit = BTreeSet::new();
    for first in [true, false] {
        for (at, spec) in brief.iter().enumerate().filter(|(_, spec)| changes(&spec.name) == first) {
            if size(spec) <= left {
                left -= size(spec);
                fit.insert(at);
            }
        }
    }
    let (mut specs, mut named, mut later, mut left_for_shown) = (Vec::new(), Vec::new(), Vec::new(), room);
    for (at, (spec, brief)) in all.iter().zip(brief).enumerate() {
        if fit.contains(&at) {
            let more = size(spec).saturating_sub(size(&brief));
            let is_whole = more <= left;
            left -= if is_whole { more } else { 0 };
            specs.push(if is_whole { Arc::clone(spec) } else { brief });
        } else if size(&brief) <= left_for_shown && shown.contains(&format!("\n{}\n", brief.name)) {
            left_for_shown -= size(&brief);
            later.push(brief);
        } else {
            named.push(spec);
        }
    }
    specs.extend(plan);
    if !named.is_empty() {
        specs.push(Arc::new(info(named.into_iter())));
    }
    specs.extend(later);
    let tokens = |bytes: usize| bytes as u64 / 4;
    let cut = Cut { part: "tools".to_owned(), tokens: tokens(whole), kept: tokens(sizes(&specs)) };
    Offer { specs: specs.into(), cut: Some(cut) }
}

#[derive(Deserialize)]
struct InfoArgs {
    tools: Vec<String>,
}

/// The answer to a call of [`TOOL_INFO`] about some of these tools; an error says what is wrong with the call.
pub(crate) fn describe_tools(all: &[Arc<ToolSpec>], args: &str) -> Result<String, String> {
    let InfoArgs { tools } =
        serde_json::from_str(args).map_err(|error| format!("the argument tools is a list of names: {error}"))?;
    let mut text = String::new();
    for spec in all.iter().filter(|spec| tools.contains(&spec.name)) {
        let ToolSpec { name, description, parameters } = &**spec;
        let _ = writeln!(text, "\n{name}\n{description}\nArguments: {parameters}");
    }
    if text.is_empty() {
        let names: Vec<&str> = all.iter().map(|spec| spec.name.as_str()).collect();
        return Err(format!("none of these is a tool of yours; yours are {}", names.join(", ")));
    }
    Ok(text)
}

fn info<'a>(tools: impl Iterator<Item = &'a Arc<ToolSpec>>) -> ToolSpec {
    let names: Vec<&str> = tools.map(|spec| spec.name.as_str()).collect();
    let names = names.join(", ");
    ToolSpec {
        name: TOOL_INFO.to_owned(),
        description: format!(
            "Shows tools that you have and that are not declared here: {names}. Call it before you call one of them."
        ),
        parameters: json!({
            "type": "object",
            "properties": { "tools": { "type": "array", "items": { "type": "string" } } },
            "required": ["tools"],
        }),
    }
}

/// The short declaration of a tool.
fn briefly(spec: &ToolSpec) -> ToolSpec {
    let ToolSpec { name, description, parameters } = spec;
    let first = description.split_inclusive(". ").next().unwrap_or_default().trim_end();
    ToolSpec { name: name.clone(), description: first.to_owned(), parameters: types(parameters, true) }
}

/// A schema without [`LEFT_OUT`]. `at_schema` is false inside of `properties`, whose keys are names and not keywords.
fn types(schema: &Value, at_schema: bool) -> Value {
    match schema {
        Value::Object(object) => {
            let kept = object.iter().filter(|(key, _)| !at_schema || !LEFT_OUT.contains(&key.as_str()));
            kept.map(|(key, value)| (key.clone(), types(value, !at_schema || key != "properties"))).collect()
        }
        Value::Array(values) => values.iter().map(|value| types(value, at_schema)).collect(),
        other => other.clone(),
    }
}

fn size(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + json_length(&spec.parameters)
}

fn sizes(specs: &[Arc<ToolSpec>]) -> usize {
    specs.iter().map(|spec| size(spec)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Timestamp;

    fn tool(name: &str) -> ToolSpec {
        let words = "It has a second sentence, which is long. ".repeat(5);
        ToolSpec {
            name: name.into(),
            description: format!("Does {name}. {words}"),
            parameters: json!({
                "type": "object",
                "properties": {
                    "description": { "type": "string", "description": words, "maxLength": 9 },
                    "kind": { "type": "string", "enum": ["a", "b"] },
                },
                "required": ["kind"],
            }),
        }
    }

    fn of(count: usize) -> Arc<[Arc<ToolSpec>]> {
        let name = |at: usize| format!("{}_{at:02}", if at < 3 { "look" } else { "change" });
        (0..count).map(|at| Arc::new(tool(&name(at)))).collect()
    }

    fn offer(all: &Arc<[Arc<ToolSpec>]>, tokens: u32, shown: &str) -> Offer {
        within((all, sizes(all)), Some(tool("plan")), tokens, shown, |name| name.starts_with("change"))
    }

    fn names(specs: &[Arc<ToolSpec>]) -> Vec<&str> {
        specs.iter().map(|spec| spec.name.as_str()).collect()
    }

    #[test]
    fn tools_that_fit_are_whole() {
        let all = of(2);
        let Offer { specs, cut } = offer(&all, 1_000, "");
        assert_eq!((names(&specs), cut), (vec!["look_00", "look_01", "plan"], None));
        assert!(specs.starts_with(&all));
    }

    #[test]
    fn tools_that_do_not_fit_are_told_of_shortly() {
        let all = of(4);
        let tokens = u32::try_from(sizes(&all) / 4).unwrap_or_default();
        let Offer { specs, cut } = offer(&all, tokens, "");
        assert_eq!(names(&specs), ["look_00", "look_01", "look_02", "change_03", "plan"]);
        assert!(sizes(&specs) <= SessionBudget::bytes(tokens), "{} of {tokens} tokens", sizes(&specs) / 4);
        assert!(cut.is_some_and(|cut| cut.part == "tools" && cut.kept < cut.tokens));
        let brief = briefly(&tool("look"));
        let types = json!({ "description": { "type": "string" }, "kind": { "type": "string", "enum": ["a", "b"] } });
        assert_eq!((brief.description.as_str(), &brief.parameters["properties"]), ("Does look.", &types));
        assert_eq!(brief.parameters["required"], json!(["kind"]));
        let whole = specs.iter().filter(|spec| all.contains(spec)).count();
        assert!((1..4).contains(&whole), "room that is left is used: {whole} are whole");
    }

    #[test]
    fn tools_beyond_the_budget_are_named_and_shown_when_they_are_asked_for() {
        let all = of(12);
        let Offer { specs, .. } = offer(&all, 500, "");
        assert!(sizes(&specs) <= 2_000, "{}", sizes(&specs));
        let offered = names(&specs);
        assert!(offered.ends_with(&["plan", TOOL_INFO]), "{offered:?}");
        assert!(offered.contains(&"change_03") && !offered.contains(&"look_00"), "{offered:?}");
        let named = specs.last().map(|spec| spec.description.clone()).unwrap_or_default();
        let is_told = |name: &str| offered.contains(&name) != named.contains(name);
        assert!(all.iter().all(|spec| is_told(&spec.name)), "{offered:?} {named}");

        let answer = describe_tools(&all, r#"{"tools": ["look_00", "nothing"]}"#).unwrap_or_default();
        assert!(answer.starts_with("\nlook_00\nDoes look_00. It has"), "{answer}");
        let message = |success| Message::Tool {
            call_id: domain::CallId(uuid::Uuid::nil()),
            tool: TOOL_INFO.into(),
            at: Timestamp::default(),
            output: answer.clone(),
            success,
        };
        assert_eq!(earlier_answers([message(false)].iter()), "");
        let then = offer(&all, 500, &earlier_answers([message(true)].iter())).specs;
        let before = offered.iter().filter(|name| **name != TOOL_INFO).copied().collect::<Vec<_>>();
        assert!(names(&then).starts_with(&before), "the beginning stays for the provider's cache");
        assert!(names(&then).ends_with(&["look_00"]), "{:?}", names(&then));
        assert!(describe_tools(&all, r#"{"tools": ["x"]}"#).is_err_and(|told| told.contains("look_00, look_01")));
        assert!(describe_tools(&all, "{}").is_err_and(|told| told.contains("a list of names")));
    }
}
