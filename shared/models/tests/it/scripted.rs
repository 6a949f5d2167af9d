//! Scripts: conditions, templates, faults, the checks of every request, and the demo.

use crate::support::{answers, deltas, error, note, request, result, says, user};
use buildscale_models::{PrefixGuard, Scripted, check};
use domain::{CallId, Message, MessageId, Timestamp, ToolCall, event::StopReason};
use futures::StreamExt;
use ports::{Delta, Model, ModelError};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

fn play(yaml: &str) -> Scripted {
    Scripted::from_yaml(yaml).unwrap()
}

fn text(deltas: &[Delta]) -> String {
    deltas.iter().filter_map(|delta| if let Delta::Text(text) = delta { Some(text.as_str()) } else { None }).collect()
}

#[tokio::test]
async fn the_first_rule_that_fits_plays_the_step_that_the_history_says() {
    let script = play(
        r#"
rules:
- when: {user: '^bye', turn: 2}
  steps: [{text: 'bye in turn {{turn}}'}]
- steps:
  - {text: one, calls: [{tool: read, args: {path: '/{{user}}', n: 1}}, {tool: ls, args: 'no json'}]}
  - when: {result: 'missing'}
    text: 'no: {{call.0.output}}'
    else: {text: 'yes: {{call.0.output/name}} {{call.1.success}} {{result}} {{counter}} {{messages}} {{call.9.output}}'}
"#,
    );
    let said = deltas(&script, request("", vec![user("hi")])).await;
    assert_eq!(said[0], Delta::Text("one".into()));
    assert_eq!(said[1], Delta::Call { tool: "read".into(), args: r#"{"path":"/hi","n":1}"#.into() });
    assert_eq!(said[2], Delta::Call { tool: "ls".into(), args: "no json".into() });
    let Delta::End { reason: StopReason::EndTurn, usage, provider: Value::Null, model: None } = &said[3] else {
        panic!("{said:?}")
    };
    assert!(usage.input_tokens > 0 && usage.output_tokens > 0);

    let step = says("one", &[("read", "{}"), ("ls", "no json")], Value::Null);
    let found = vec![user("hi"), step.clone(), result("read", r#"{"name": "x"}"#), result("ls", "a b")];
    assert_eq!(text(&deltas(&script, request("", found.clone())).await), "yes: x true a b 1 4 ");
    let missing = vec![user("hi"), step, result("read", "r"), result("ls", "missing")];
    assert_eq!(text(&deltas(&script, request("", missing)).await), "no: r");
    let again = deltas(&script, request("", found.clone())).await;
    assert_eq!(again, deltas(&script, request("", found.clone())).await, "the same request, the same answer");

    let mut second = found;
    second.extend([says("yes", &[], Value::Null), user("bye")]);
    assert_eq!(text(&deltas(&script, request("", second.clone())).await), "bye in turn 2");
    second.extend([says("bye", &[], Value::Null), note("more")]);
    assert_eq!(text(&deltas(&script, request("", second)).await), "", "after its last step a script says nothing");
}

#[tokio::test(start_paused = true)]
async fn the_script_in_the_documents_is_played() {
    let page = include_str!("../../../../docs/how-to/models.md");
    let yaml = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let script = play(yaml);
    let asked = vec![user("Order three bolts")];
    let said = deltas(&script, request("", asked.clone())).await;
    assert_eq!(text(&said), "I look at the list first.");
    let step = says("I look at the list first.", &[("read", "{}")], Value::Null);
    let seen = [asked, vec![step, result("read", "bolts: 3")]];
    assert_eq!(text(&deltas(&script, request("", seen.concat())).await), "The list says: bolts: 3");
    assert_eq!(text(&deltas(&script, request("", vec![user("hello")])).await), "You said hello.");
    let mut review = request("", vec![user("hello")]);
    review.system = "You are a reviewer.".into();
    assert!(text(&deltas(&script, review).await).contains("accepted"));
}

#[tokio::test]
async fn one_script_plays_several_agents() {
    let script = play(
        r#"
rules:
- when: {system: '(?i)you are the planner'}
  steps: [{text: '{"steps": ["{{user}}"]}'}]
- when: {system: reviewer, user: good}
  steps: [{text: approved}]
- steps:
  - when: {system: coder}
    text: code
    else: {text: nobody}
"#,
    );
    let as_agent = |system: &str, says: &str| {
        let mut request = request("", vec![user(says)]);
        request.system = system.into();
        request
    };
    for (system, says, expected) in [
        ("You are the planner.\nPlan.", "a boat", r#"{"steps": ["a boat"]}"#),
        ("A reviewer.", "good work", "approved"),
        ("A reviewer.", "bad work", "nobody"),
        ("A coder.", "good work", "code"),
    ] {
        assert_eq!(text(&deltas(&script, as_agent(system, says)).await), expected, "{system} {says}");
    }
}

#[tokio::test(start_paused = true)]
async fn texts_come_in_pieces_over_time() {
    let script = play("rules: [{steps: [{text: 'grüße, welt', chunks: 3, delay_ms: 100, usage: {input_tokens: 7}}]}]");
    let start = tokio::time::Instant::now();
    let said = deltas(&script, request("", vec![user("hi")])).await;
    assert_eq!(start.elapsed(), Duration::from_millis(300));
    assert_eq!(said[..3], [Delta::Text("grüß".into()), Delta::Text("e, w".into()), Delta::Text("elt".into())]);
    assert!(matches!(said[3], Delta::End { usage, .. } if usage.input_tokens == 7));
}

#[tokio::test(start_paused = true)]
async fn scripts_can_fail_hang_and_stop_short() {
    let script = play(
        r#"
rules:
- when: {user: limit}
  steps: [{error: rate_limited, retry_after_ms: 2500}]
- when: {user: break}
  steps: [{text: abcdef, chunks: 3, error: broken, after: 2}]
- when: {user: hang}
  steps: [{text: wait, hang: true}]
- steps: [{text: long, cut_short: true}]
"#,
    );
    let limited = error(&script, request("", vec![user("limit")])).await;
    assert_eq!(limited, ModelError::RateLimited { retry_after: Some(Duration::from_millis(2500)) });
    let broken = answers(&script, request("", vec![user("break")])).await;
    assert_eq!(broken.len(), 3);
    assert_eq!(broken[1], Ok(Delta::Text("cd".into())));
    assert!(matches!(broken[2], Err(ModelError::Broken(_))));
    let mut hanging = script.stream(request("", vec![user("hang")])).await.unwrap();
    assert_eq!(hanging.next().await, Some(Ok(Delta::Text("wait".into()))));
    assert!(tokio::time::timeout(Duration::from_secs(86_400), hanging.next()).await.is_err());
    let cut = deltas(&script, request("", vec![user("else")])).await;
    assert!(matches!(cut[1], Delta::End { reason: StopReason::MaxOutputTokens, .. }));
}

#[test]
fn scripts_that_make_no_sense_are_refused_with_the_place() {
    let check = |yaml: &str, expected: &str| {
        let error = Scripted::from_yaml(yaml).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    };
    check("rules: [{steps: [{text: a}, {text: '{{usr}}'}]}]", "rule 1, step 2: there is no {{usr}}");
    check("rules: [{steps: [{calls: [{tool: t, args: {a: ['{{call.x.output}}']}}]}]}]", "call.x.output");
    check("rules: [{steps: [{else: {text: '{{no}}'}}]}]", "{{no}}");
    check("rules: [{steps: [{txt: a}]}]", "txt");
    check("rules: [{when: {user: '('}, steps: []}]", "rule 1: regex");
    check("rules: [{steps: []}, {steps: [{else: {when: {result: '['}}}]}]", "rule 2: regex");
    check("rules: [{steps: [{chunks: 0}]}]", "chunks is a number from 1 to 10000");
    check("rules: [{steps: [{text: a}, {else: {chunks: 10001}}]}]", "rule 1, step 2: chunks");
    for (usage, told) in [("input_tokens: 9000000000000", "usage"), ("cost_usd: -0.5", "usage"), ("cost_usd: .nan", "")]
    {
        check(&format!("rules: [{{steps: [{{text: a, usage: {{{usage}}}}}]}}]"), told);
    }
}

#[test]
fn the_patterns_of_a_script_are_bounded_together() {
    let script = |pattern: &str, count: usize| {
        let rules = format!("- {{when: {{user: '{pattern}'}}, steps: []}}\n").repeat(count);
        Scripted::from_yaml(&format!("rules:\n{rules}")).map(drop).map_err(|error| error.to_string())
    };
    let refused = |pattern: &str, count: usize, expected: &str| {
        let error = script(pattern, count).unwrap_err();
        assert!(error.contains(expected), "{count} of {pattern}: {error}");
    };
    assert_eq!(script("^The plan|^build", 1_000), Ok(()));
    refused("a", 1_001, "1001 patterns");
    refused(r"\pL{1000}", 1, "size limit of 1048576 bytes");
    // Each alone is fine.
    assert_eq!(script(r"\pL{5}", 1), Ok(()));
    refused(r"\pL{5}", 1_000, "rule 1: ");
}

#[tokio::test]
async fn every_request_is_checked() {
    let refuse = async |messages: Vec<Message>, expected: &str| {
        let said = error(&play("rules: []"), request("", messages)).await;
        assert!(matches!(&said, ModelError::Rejected(reason) if reason.contains(expected)), "{said:?}");
    };
    let calls = || says("", &[("read", "{}"), ("ls", "{}")], Value::Null);
    refuse(vec![], "no messages").await;
    refuse(vec![user("a"), says("b", &[], Value::Null)], "nothing to answer").await;
    refuse(vec![user("a"), calls()], "no result answers").await;
    refuse(vec![user("a"), calls(), result("read", ""), user("b")], "comes before the answers").await;
    refuse(vec![user("a"), calls(), result("read", ""), note("n"), result("ls", "")], "comes before the answers").await;
    refuse(vec![user("a"), calls(), result("ls", ""), result("read", "")], "comes first").await;
    refuse(vec![user("a"), calls(), result("read", ""), result("ls", ""), result("ls", "")], "was not made").await;
    refuse(vec![user("a"), result("ls", "")], "was not made").await;
    refuse(vec![user("a"), calls(), result("read", ""), result("ls", ""), calls()], "again").await;

    let mut good = request("", vec![user("a"), calls(), result("read", ""), result("ls", ""), note("n")]);
    assert_eq!(check(&good), Ok(()));
    good.system = " ".into();
    assert!(check(&good).unwrap_err().contains("system"));
    good.system = "".into();
    assert_eq!(check(&good), Ok(()), "an agent of a flow may have none");
    good.system = "s".into();
    let mut tools = good.tools.to_vec();
    Arc::make_mut(&mut tools[1]).name = "two words".into();
    good.tools = tools.into();
    assert!(check(&good).unwrap_err().contains("two words"));
}

#[tokio::test]
async fn the_guard_refuses_what_would_lose_the_cache() {
    let guard = PrefixGuard::new(Arc::new(play("rules: [{steps: [{text: ok}]}]")));
    let first = vec![user("a"), says("1", &[], Value::Null), user("b")];
    let longer = [first.clone(), vec![says("2", &[], Value::Null), user("c")]].concat();
    for messages in [first.clone(), first.clone(), longer.clone(), longer[2..].to_vec()] {
        deltas(&guard, request("", messages)).await;
    }
    let guard = PrefixGuard::new(Arc::new(play("rules: [{steps: [{text: ok}]}]")));
    deltas(&guard, request("", longer.clone())).await;
    let changed = [vec![user("A")], longer[1..].to_vec()].concat();
    let said = error(&guard, request("", changed)).await;
    assert!(matches!(&said, ModelError::Rejected(reason) if reason.contains("message 0 changed")), "{said:?}");
    let mut other = request("", longer.clone());
    deltas(&guard, {
        let mut elsewhere = other.clone();
        elsewhere.conversation = "chat-2".into();
        elsewhere
    })
    .await;
    let guard = PrefixGuard::new(Arc::new(play("rules: [{steps: [{text: ok}]}]")));
    deltas(&guard, other.clone()).await;
    other.system = "Another.".into();
    assert!(matches!(error(&guard, other).await, ModelError::Rejected(reason) if reason.contains("system")));
}

/// Plays whole turns of the demo, answering its calls with `answer`, and lists the calls and the last text.
async fn demo_turn(
    history: &mut Vec<Message>,
    text: &str,
    answer: impl Fn(&str, &Value) -> (String, bool),
) -> (Vec<String>, String) {
    let demo = PrefixGuard::new(Arc::new(Scripted::demo()));
    let at = Timestamp::from_millis(0);
    history.push(user(text));
    let mut made = Vec::new();
    for step in 0.. {
        assert!(step < 20, "the demo does not end");
        let said = deltas(&demo, request("", history.clone())).await;
        let content = self::text(&said);
        let calls: Vec<_> = said
            .iter()
            .filter_map(|delta| if let Delta::Call { tool, args } = delta { Some((tool, args)) } else { None })
            .map(|(tool, args)| {
                let call_id = CallId::from_key(
                    "demo",
                    &format!("{} {}", history.len(), made.len() + tool.len() * 1000 + args.len()),
                );
                ToolCall { call_id, tool: tool.clone(), args: args.clone() }
            })
            .collect();
        if calls.is_empty() {
            history.push(Message::Assistant {
                id: MessageId::from_key("d", text),
                at,
                content: content.clone(),
                calls,
                reasoning: String::new(),
                provider: Value::Null,
            });
            return (made, content);
        }
        history.push(Message::Assistant {
            id: MessageId::from_key("d", text),
            at,
            content,
            calls: calls.clone(),
            reasoning: String::new(),
            provider: Value::Null,
        });
        for call in calls {
            let args = call.parsed().unwrap();
            let (output, success) = answer(&call.tool, &args);
            made.push(format!("{} {args}", call.tool));
            history.push(Message::Tool { call_id: call.call_id, tool: call.tool, at, output, success });
        }
    }
    unreachable!()
}

#[tokio::test(start_paused = true)]
async fn the_demo_uses_the_tools_turn_after_turn() {
    let mut history = Vec::new();
    let fresh =
        |tool: &str, _: &Value| if tool == "read" { ("no such file".into(), false) } else { ("ok".into(), true) };
    let (calls, last) = demo_turn(&mut history, "Build me a boat", fresh).await;
    insta::assert_json_snapshot!("demo-goal", calls);
    assert!(last.contains("/projects/demo/hello.md"));
    let (calls, _) = demo_turn(&mut history, "And a harbour", |_, _| ("ok".into(), true)).await;
    assert!(
        calls.iter().any(|call| call.starts_with("write") && call.contains("And a harbour") && call.contains("turn 2"))
    );
    assert!(
        calls.iter().position(|call| call.starts_with("read"))
            < calls.iter().position(|call| call.starts_with("write"))
    );

    let answered =
        |tool: &str, _: &Value| (if tool == "ask_user" { r#"{"colour":"green"}"#.into() } else { "ok".into() }, true);
    let (calls, last) = demo_turn(&mut history, "Ask me something", answered).await;
    insta::assert_json_snapshot!("demo-ask", calls);
    assert!(last.contains("Your answer was: green\n"), "{last}");
    let (calls, last) = demo_turn(&mut history, "ask again", |_, _| ("nobody answered".into(), false)).await;
    assert!(calls.len() == 1 && last.contains("No answer came"));
}

#[tokio::test(start_paused = true)]
async fn the_demo_counts_slowly_enough_to_be_stopped() {
    let start = tokio::time::Instant::now();
    let said = deltas(&Scripted::demo(), request("", vec![user("count slowly, please")])).await;
    assert!(start.elapsed() > Duration::from_secs(20));
    assert!(said.len() > 100 && text(&said).contains("ninety-nine, one hundred"));
}
