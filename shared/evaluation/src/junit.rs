//! The report that build servers read.

use super::{CaseResult, Evaluation, Outcome, Progress};
use std::fmt::{self, Write};

/// An evaluation as JUnit XML: a suite a suite, a test case a case.
pub fn junit(evaluation: &Evaluation) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a text cannot fail.
    let _ = suites(&mut out, evaluation);
    out
}

fn suites(out: &mut String, evaluation: &Evaluation) -> fmt::Result {
    let (flow, cases) = (&evaluation.flow.name, &evaluation.cases);
    let mut sums = Sums::of(cases);
    let unfinished = unfinished(evaluation);
    if unfinished.is_some() {
        (sums.tests, sums.errors) = (sums.tests + 1, sums.errors + 1);
    }
    writeln!(out, "<testsuites name=\"{}\" {sums}>", XmlText(flow))?;
    for suite in cases.chunk_by(|one, next| one.suite == next.suite) {
        let name = suite.first().map_or("", |first| &first.suite);
        writeln!(out, "  <testsuite name=\"{}\" {}>", XmlText(name), Sums::of(suite))?;
        for case in suite {
            test_case(out, flow, case)?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    if let Some(why) = unfinished {
        error_of_its_own(out, evaluation, why)?;
    }
    writeln!(out, "</testsuites>")
}

/// Why cases may lack a result: the evaluation ended early, or still runs.
fn unfinished(evaluation: &Evaluation) -> Option<&str> {
    match (&evaluation.error, evaluation.status) {
        (Some(error), _) => Some(&error.message),
        (None, Progress::Queued | Progress::Running) => Some("the evaluation still runs: read the report again later"),
        (None, Progress::Finished) => None,
    }
}

/// An evaluation without the results of all cases has an error of its own. Without it, a build server would see a report without failures.
fn error_of_its_own(out: &mut String, evaluation: &Evaluation, why: &str) -> fmt::Result {
    let (name, done) = (format!("evaluation {}", evaluation.evaluation_id), evaluation.cases.len());
    let text = format!("{done} of {} cases have a result: {why}", evaluation.total);
    let ended = CaseResult { failures: vec![text], ..CaseResult::new(&name, "end", Outcome::Error) };
    let sums = Sums::of(std::slice::from_ref(&ended));
    writeln!(out, "  <testsuite name=\"{}\" {sums}>", XmlText(&name))?;
    test_case(out, &evaluation.flow.name, &ended)?;
    writeln!(out, "  </testsuite>")
}

fn test_case(out: &mut String, flow: &str, case: &CaseResult) -> fmt::Result {
    let class = format!("{flow}.{}", case.suite);
    let (class, name, time) = (XmlText(&class), XmlText(&case.case), Seconds(case.duration_ms));
    write!(out, "    <testcase classname=\"{class}\" name=\"{name}\" time=\"{time}\"")?;
    let element = match case.outcome {
        Outcome::Passed | Outcome::Blessed => return writeln!(out, "/>"),
        Outcome::Skipped => return writeln!(out, "><skipped/></testcase>"),
        Outcome::Failed => "failure",
        Outcome::Error => "error",
    };
    let all = case.failures.join("\n");
    let first = all.lines().next().unwrap_or_default();
    writeln!(out, "><{element} message=\"{}\">{}</{element}></testcase>", XmlText(first), XmlText(&all))
}

/// The attributes that count.
struct Sums {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    milliseconds: u64,
}

impl Sums {
    fn of(cases: &[CaseResult]) -> Self {
        let count = |outcome: Outcome| cases.iter().filter(|case| case.outcome == outcome).count();
        Self {
            tests: cases.len(),
            failures: count(Outcome::Failed),
            errors: count(Outcome::Error),
            skipped: count(Outcome::Skipped),
            milliseconds: cases.iter().map(|case| case.duration_ms).sum(),
        }
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tests, failures, errors, skipped, milliseconds } = self;
        let time = Seconds(*milliseconds);
        write!(f, "tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\" time=\"{time}\"")
    }
}

struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// A text inside of XML. Characters that XML 1.0 cannot represent become the replacement character.
struct XmlText<'a>(&'a str);

impl fmt::Display for XmlText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\n' => f.write_str("&#10;")?,
                '\r' => f.write_str("&#13;")?,
                '\t' => f.write_str("&#9;")?,
                '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}')?,
                letter if letter < ' ' => f.write_char('\u{fffd}')?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::Selection;
    use domain::{Error, EvaluationId, Principal, Sha256, Timestamp, WorkspaceId, task::FlowRef};

    fn evaluation(cases: Vec<CaseResult>) -> Evaluation {
        let now: Timestamp = serde_json::from_str("\"2026-01-02T03:04:05Z\"").unwrap();
        let mut evaluation = Evaluation {
            evaluation_id: EvaluationId(uuid::Uuid::nil()),
            workspace_id: WorkspaceId(uuid::Uuid::nil()),
            flow: FlowRef { name: "a & \"b\" <c>".into(), hash: Sha256::of(b"") },
            status: Progress::Finished,
            selection: Selection::default(),
            total: cases.len() as u64,
            passed: 0,
            failed: 0,
            skipped: 0,
            cases: Vec::new(),
            error: None,
            by: Principal::local(),
            created_at: now,
            finished_at: Some(now),
        };
        cases.into_iter().for_each(|case| evaluation.add(case));
        evaluation
    }

    /// A name, attributes, and the text after the tag.
    type Element = (String, Vec<(String, String)>, String);

    /// Reads the elements of an XML text: names with attributes, and texts. Anything that is not well-formed panics.
    fn parse(xml: &str) -> Vec<Element> {
        let mut rest = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
        let (mut open, mut found): (Vec<String>, Vec<Element>) = (Vec::new(), Vec::new());
        let plain = |text: &str| {
            let wrong = |letter: char| letter == '<' || (letter < ' ' && letter != '\n');
            assert!(!text.contains(wrong), "{text:?}");
            let parts: Vec<&str> = text.split('&').collect();
            let known = ["amp;", "lt;", "gt;", "quot;", "#10;", "#13;", "#9;"];
            assert!(parts[1..].iter().all(|part| known.iter().any(|known| part.starts_with(known))), "{text:?}");
            let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#10;", "\n");
            text.replace("&#9;", "\t").replace("&#13;", "\r").replace("&amp;", "&")
        };
        while let Some((text, after)) = rest.split_once('<') {
            if let Some((.., last)) = found.last_mut() {
                last.push_str(&plain(text));
            }
            let (tag, after) = after.split_once('>').unwrap();
            rest = after;
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name));
                continue;
            }
            let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
            let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            let mut all = Vec::new();
            while let Some((key, after)) = attributes.split_once("=\"") {
                let (value, after) = after.split_once('"').unwrap();
                all.push((key.trim().to_owned(), plain(value)));
                attributes = after;
            }
            assert_eq!(attributes.trim(), "");
            found.push((name.to_owned(), all, String::new()));
            if !closed {
                open.push(name.to_owned());
            }
        }
        assert!(open.is_empty() && rest.trim().is_empty());
        found
    }

    #[test]
    fn s10_3_the_report_is_xml_whatever_is_in_it() {
        let nasty = "a < b && \"c\" > 'd' ]]>\u{0}\u{1b}[0m\tend\n<failure>\u{ffff}";
        let failed = CaseResult {
            failures: vec![nasty.into(), "second".into()],
            duration_ms: 1_234,
            ..CaseResult::new("one", "<case \"1\">", Outcome::Failed)
        };
        let evaluation = evaluation(vec![
            CaseResult { duration_ms: 5, ..CaseResult::new("one", "fine", Outcome::Passed) },
            failed,
            CaseResult::new("one", "off", Outcome::Skipped),
            CaseResult { failures: vec!["no end".into()], ..CaseResult::new("two", "late", Outcome::Error) },
            CaseResult::new("two", "gold", Outcome::Blessed),
        ]);
        assert_eq!((evaluation.passed, evaluation.failed, evaluation.skipped), (2, 2, 1));
        let elements = parse(&junit(&evaluation));
        let names: Vec<&str> = elements.iter().map(|(name, ..)| name.as_str()).collect();
        let expected =
            "testsuites testsuite testcase testcase failure testcase skipped testsuite testcase error testcase";
        assert_eq!(names, expected.split(' ').collect::<Vec<_>>());
        let attribute = |index: usize, key: &str| {
            elements[index].1.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str()).unwrap()
        };
        assert_eq!(attribute(0, "name"), "a & \"b\" <c>");
        let sums = |index| ["tests", "failures", "errors", "skipped", "time"].map(|key| attribute(index, key));
        assert_eq!(sums(0), ["5", "1", "1", "1", "1.239"]);
        assert_eq!(sums(1), ["3", "1", "0", "1", "1.239"]);
        assert_eq!(attribute(3, "name"), "<case \"1\">");
        let text = nasty.replace(['\u{0}', '\u{1b}', '\u{ffff}'], "\u{fffd}");
        assert_eq!(elements[4].2.trim_end(), format!("{text}\nsecond"));
        assert_eq!(attribute(9, "message"), "no end");
    }

    #[test]
    fn s10_3_a_report_of_an_evaluation_that_runs_has_an_error() {
        let fine = CaseResult::new("one", "fine", Outcome::Passed);
        for status in [Progress::Queued, Progress::Running] {
            let runs = Evaluation { total: 2, status, finished_at: None, ..evaluation(vec![fine.clone()]) };
            let xml = junit(&runs);
            let elements = parse(&xml);
            let sums = |key: &str| elements[0].1.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
            assert_eq!((sums("tests"), sums("errors")), (Some("2"), Some("1")), "{xml}");
            let (name, .., text) = elements.last().unwrap();
            assert_eq!(name, "error");
            assert!(text.starts_with("1 of 2 cases have a result: the evaluation still runs"), "{text}");
        }
    }

    #[test]
    fn s10_3_a_report_of_an_evaluation_that_ended_early_has_an_error() {
        let fine = || CaseResult::new("one", "fine", Outcome::Passed);
        let error = Some(Error::new(domain::Code::PayloadTooLarge, "a flow has at most 512 files"));
        for (cases, count) in [(vec![], "1"), (vec![fine(), fine()], "3")] {
            let ended = Evaluation { total: 5, error: error.clone(), ..evaluation(cases) };
            let (xml, done) = (junit(&ended), ended.cases.len());
            let elements = parse(&xml);
            let of = |index: usize, key: &str| {
                elements[index].1.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()).unwrap()
            };
            assert_eq!([of(0, "tests"), of(0, "errors")], [count, "1"], "{xml}");
            let (name, .., text) = elements.last().unwrap();
            assert_eq!(name, "error");
            let expected = format!("{done} of 5 cases have a result: a flow has at most 512 files");
            assert_eq!(text.trim_end(), expected);
        }
        assert!(!junit(&evaluation(vec![fine()])).contains("<error"));
    }
}
