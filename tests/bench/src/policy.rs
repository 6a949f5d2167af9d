//! Decisions on paths with a hundred policies of a workspace's own: remembered ones, as lists and searches get them, and evaluated ones.

use crate::{Bench, Result, report::Figure, samples::Samples};
use access::{Action, Policies, Source, Subject};
use domain::{FilePath, UserId};
use std::time::Duration;
use tokio::time::Instant;

/// A workspace's own policies, beside the built-in ones.
const POLICIES: usize = 100;
/// The longest median that is taken, in microseconds.
const AT_MOST_US: f64 = 50.0;
/// The folders and the files in each.
const FOLDERS: usize = 100;
const FILES: usize = 100;

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    let text = |more: &str| {
        let policy = |n: usize| {
            format!(
                "@id(\"own-{n}\") forbid (principal is Agent, action in Action::\"change\", resource in \
                 Path::\"/projects/p{n}/signed\") unless {{ principal.person == Person::\"{}\" }};\n",
                UserId(uuid::Uuid::nil())
            )
        };
        (0..POLICIES).map(policy).chain([more.to_owned()]).collect::<String>()
    };
    let set = |text: &str| Policies::with(&[Source { name: "/system/policies/bench.cedar", text }]);
    let began = Instant::now();
    let folders = set(&text(""))?;
    let compiled = began.elapsed();
    // One policy that looks at names in all that agents do: each path is evaluated, with the folders above it.
    let names = set(&text("forbid (principal is Agent, action, resource) when { resource.name like \"*.env\" };"))?;
    let agent = Subject::Agent { persona: "assistant".into(), person: UserId(uuid::Uuid::nil()), has_home: true };
    let (mut remembered, mut evaluated) = <(Samples, Samples)>::default();
    for folder in 0..FOLDERS {
        for file in 0..FILES {
            let path = FilePath::parse(&format!("/projects/p{folder}/src/file{file}.rs"))?;
            remembered.push(microseconds(|| folders.decide(&agent, Action::Write, &path).is_permit())?);
            if file == 0 {
                evaluated.push(microseconds(|| names.decide(&agent, Action::Write, &path).is_permit())?);
            }
        }
    }
    bench.report.add(
        Figure::new("policy.decision".to_owned(), remembered.median(), "us")
            .at_most(AT_MOST_US, "50 us at 100 policies")
            .more("p99", remembered.p99())
            .more("compile_ms", compiled.as_secs_f64() * 1e3)
            .more("is", "a write of an agent; 10,000 files in 100 folders"),
    )?;
    bench.report.add(
        Figure::new("policy.new_decision".to_owned(), evaluated.median(), "us")
            .beside("remembered", remembered.median())
            .at_most(AT_MOST_US, "50 us at 100 policies")
            .more("p99", evaluated.p99())
            .more("is", "a policy looks at names: the write, and the listing of the file and of two new folders above it, are four evaluations"),
    )
}

/// How long a decision takes that permits.
fn microseconds(decide: impl FnOnce() -> bool) -> Result<f64> {
    let began = Instant::now();
    let permits = decide();
    let took: Duration = began.elapsed();
    if permits { Ok(took.as_secs_f64() * 1e6) } else { Err("a write was not permitted".into()) }
}
