//! The suite for commands.

use super::{Bench, Did, PATIENCE, all_of, begun, call, command, path, refused, run, script};
use crate::conformance::table::ok;
use futures::StreamExt;
use ports::{Exec, ExecEvent, Sandbox};
use std::{future::Future, time::Duration};

pub(super) async fn hold<F: Future<Output = Bench>>(fresh: &impl Fn() -> F) {
    files_are_readable_and_only_those_of_the_root(fresh().await).await;
    a_command_gets_its_words_and_its_environment_and_nothing_else(&*fresh().await.sandbox).await;
    input_and_output_and_the_end_are_told(&*fresh().await.sandbox).await;
    nonsense_is_refused(&*fresh().await.sandbox).await;
    a_call_runs_once(&*fresh().await.sandbox).await;
    a_command_runs_without_a_listener(&*fresh().await.sandbox).await;
    those_who_come_later_follow(&*fresh().await.sandbox).await;
    it_ends_when_its_time_is_up_and_when_it_is_killed(&*fresh().await.sandbox).await;
    output_is_kept_from_both_ends(&*fresh().await.sandbox).await;
    scratch_is_written_to_and_goes(&*fresh().await.sandbox).await;
    tmp_is_the_commands_own(&*fresh().await.sandbox).await;
    files_that_it_leaves_are_kept(&*fresh().await.sandbox).await;
    sockets_have_to_be_asked_for(&*fresh().await.sandbox).await;
}

async fn files_are_readable_and_only_those_of_the_root(bench: Bench) {
    let files: &[(&str, &[u8])] = &[("/projects/app/a.md", b"of the app"), ("/projects/other/b.md", b"of another")];
    let bench = bench.with(files).await;
    let (sandbox, latest) = (&*bench.sandbox, &bench.latest);
    let inside = |words: &[&str]| Exec { folder: path("/projects/app"), root: path("/projects"), ..command(words) };
    assert_eq!(run(sandbox, inside(&["cat", "a.md", "../other/b.md"])).await.well(), "of the appof another");
    assert_eq!(run(sandbox, inside(&["pwd"])).await.well().trim(), format!("{latest}/projects/app"));

    let confined = |words: &[&str]| Exec { root: path("/projects/app"), ..inside(words) };
    assert_eq!(run(sandbox, confined(&["cat", "a.md"])).await.well(), "of the app");
    for refused in [["cat", "../other/b.md"], ["ls", ".."]] {
        let did = run(sandbox, confined(&refused)).await;
        assert!(did.end.code != Some(0) && did.errors.contains("Permission denied"), "{refused:?}: {did:?}");
    }
    let absolute = format!("{latest}/projects");
    let did = run(sandbox, confined(&["ls", &absolute])).await;
    assert!(!did.output.contains("other"), "{did:?}");
    assert_eq!(run(sandbox, confined(&["cat", &format!("{absolute}/app/a.md")])).await.well(), "of the app");
    let write = "echo x >>a.md; echo x >new.md; rm a.md; mv a.md c.md; mkdir d; ln a.md e.md; exit 0";
    let did = run(sandbox, inside(&["sh", "-c", write])).await;
    let refusals = ["Permission denied", "Read-only file system"].map(|said| did.errors.matches(said).count());
    assert!(refusals.iter().sum::<usize>() >= 6, "{did:?}");
    assert_eq!(run(sandbox, inside(&["cat", "a.md"])).await.well(), "of the app", "files are read-only");
    assert_eq!(run(sandbox, inside(&["ls"])).await.well(), "a.md\n");
}

async fn a_command_gets_its_words_and_its_environment_and_nothing_else(sandbox: &dyn Sandbox) {
    let words = command(&["printf", "%s|", "$HOME", "a b", "*", "", "é"]);
    assert_eq!(run(sandbox, words).await.well(), "$HOME|a b|*||é|", "no shell is between");
    let mut asked = command(&["env"]);
    asked.env = [("ANSWER".to_owned(), "4 2".to_owned()), ("LANG".into(), "C".into())].into();
    let output = run(sandbox, asked).await.well();
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    let names: Vec<&str> = lines.iter().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert_eq!(names, ["ANSWER", "HOME", "LANG", "PATH", "TMPDIR"]);
    assert!(lines.contains(&"ANSWER=4 2") && lines.contains(&"LANG=C"), "{lines:?}");
}

async fn input_and_output_and_the_end_are_told(sandbox: &dyn Sandbox) {
    let asked = Exec { stdin: Some("from\0input".into()), ..script("cat; echo wrong >&2; exit 3") };
    let did = run(sandbox, asked).await;
    assert_eq!((did.output.as_str(), did.errors.as_str(), did.dropped), ("from\0input", "wrong\n", 0));
    assert_eq!((did.end.code, did.end.signal, did.end.timed_out), (Some(3), None, false));
    assert_eq!(run(sandbox, command(&["cat"])).await.well(), "", "without input there is nothing to read");
    let large = "0123456789".repeat(100_000);
    let counted = Exec { stdin: Some(large.clone()), ..command(&["wc", "-c"]) };
    assert_eq!(run(sandbox, counted).await.well().trim(), large.len().to_string());
    let unread = Exec { stdin: Some(large), ..command(&["true"]) };
    assert_eq!(run(sandbox, unread).await.well(), "", "input has not to be read");
    let did = run(sandbox, script("kill -TERM $$")).await;
    assert_eq!((did.end.code, did.end.signal, did.end.timed_out), (None, Some(15), false));
    let did = run(sandbox, script(r"printf 'a\377b'")).await;
    assert_eq!(did.well(), "a\u{fffd}b", "bytes that are no UTF-8 are replaced");
}

async fn nonsense_is_refused(sandbox: &dyn Sandbox) {
    refused(sandbox, command(&[])).await;
    refused(sandbox, command(&["no-such-program-anywhere"])).await;
    refused(sandbox, command(&["a\0b"])).await;
    refused(sandbox, Exec { folder: path("/absent"), ..command(&["true"]) }).await;
    refused(sandbox, Exec { root: path("/absent"), ..command(&["true"]) }).await;
    refused(sandbox, Exec { folder: path("/a"), root: path("/b"), ..command(&["true"]) }).await;
    // Nothing ran, so the call may come again.
    let call = call();
    refused(sandbox, Exec { call, ..command(&["no-such-program-anywhere"]) }).await;
    assert_eq!(run(sandbox, Exec { call, ..command(&["echo", "now"]) }).await.well(), "now\n");
}

/// A text that no two runs have in common.
const UNIQUE: &str = "/proc/sys/kernel/random/uuid";

async fn a_call_runs_once(sandbox: &dyn Sandbox) {
    let asked = command(&["cat", UNIQUE]);
    let first = run(sandbox, asked.clone()).await;
    let repeated = run(sandbox, asked.clone()).await;
    assert_eq!(repeated, first, "the same call gives its result once more");
    let other = run(sandbox, Exec { call: call(), ..asked }).await;
    assert_ne!(other.output, first.output, "another call is another run");

    let asked = command(&["cat", UNIQUE]);
    let at_once = (0..8).map(|_| run(sandbox, asked.clone()));
    let mut outputs: Vec<String> = futures::future::join_all(at_once).await.into_iter().map(Did::well).collect();
    outputs.dedup();
    assert_eq!(outputs.len(), 1, "also when many ask at once");
}

async fn a_command_runs_without_a_listener(sandbox: &dyn Sandbox) {
    let asked = script("read line; echo $line");
    let asked = Exec { stdin: Some("heard\n".into()), ..asked };
    drop(begun(sandbox, asked.clone()).await);
    let did = run(sandbox, asked).await;
    assert_eq!(did.well(), "heard\n", "dropping the stream ends nothing");
}

async fn those_who_come_later_follow(sandbox: &dyn Sandbox) {
    let asked = script("echo begun; sleep 1000");
    let mut first = begun(sandbox, asked.clone()).await;
    let has_begun = |event: Option<ports::Result<ExecEvent>>| {
        assert!(
            matches!(&event, Some(Ok(ExecEvent::Output { error: false, text })) if text == "begun\n"),
            "output comes as it is written: {event:?}"
        );
    };
    has_begun(soon(first.next()).await);
    let mut second = begun(sandbox, asked.clone()).await;
    has_begun(soon(second.next()).await);
    soon(sandbox.kill(asked.call)).await.expect("it is killed");
    let (first, second) = (all_of(first).await, all_of(second).await);
    assert_eq!(first.end, second.end);
    assert_eq!((first.end.signal, first.end.timed_out), (Some(9), false));
    let third = run(sandbox, asked).await;
    assert_eq!((third.output.as_str(), &third.end), ("begun\n", &first.end));
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

async fn it_ends_when_its_time_is_up_and_when_it_is_killed(sandbox: &dyn Sandbox) {
    let asked = Exec { timeout: Duration::from_millis(500), ..script("sleep 1000 & echo $!; sleep 1000") };
    let did = run(sandbox, asked).await;
    assert_eq!((did.end.code, did.end.signal, did.end.timed_out), (None, Some(9), true));
    assert!(did.end.duration >= Duration::from_millis(500), "{did:?}");
    is_gone(sandbox, did.output.trim()).await;

    let did = run(sandbox, script("sleep 1000 & echo $!")).await;
    assert_eq!(
        (did.end.code, did.end.timed_out),
        (Some(0), false),
        "processes that it leaves behind do not hold it up"
    );
    is_gone(sandbox, did.output.trim()).await;
    ok(sandbox.kill(call()).await);
}

/// Whether a process that a command started is no more, or waits to be forgotten by its parent.
async fn is_gone(sandbox: &dyn Sandbox, process: &str) {
    assert!(process.parse::<u32>().is_ok(), "{process:?} is no process");
    // Another process may have its number, if a command sees only its own processes.
    let is_it = format!("tr '\\0' ' ' </proc/{process}/cmdline | grep -q '^sleep 1000'");
    let state = format!("if {is_it}; then sed -n 's/^State:.//p' /proc/{process}/status; fi 2>/dev/null");
    let state = run(sandbox, script(&state)).await.output;
    assert!(state.is_empty() || state.starts_with(['Z', 'X']), "{process} is left: {state}");
}

async fn output_is_kept_from_both_ends(sandbox: &dyn Sandbox) {
    let asked = Exec { max_output: 1000, ..command(&["seq", "10000", "19999"]) };
    let did = run(sandbox, asked.clone()).await;
    assert_eq!((did.output.len(), did.dropped), (1000, 59_000));
    assert!(did.output.starts_with("10000\n10001\n") && did.output.ends_with("\n19998\n19999\n"), "{did:?}");
    assert_eq!(run(sandbox, asked).await, did, "and so once more");
    let all = Exec { max_output: 60_000, ..command(&["seq", "10000", "19999"]) };
    let did = run(sandbox, all).await;
    assert_eq!((did.output.len(), did.dropped), (60_000, 0));
}

async fn scratch_is_written_to_and_goes(sandbox: &dyn Sandbox) {
    let write = r#"cd "$TMPDIR" && echo kept >a && mkdir b && mv a b/a && cat b/a && test "$HOME" = "$TMPDIR" && pwd"#;
    let output = run(sandbox, script(write)).await.well();
    let folder = output.strip_prefix("kept\n").expect("it reads its own output").trim();
    let did = run(sandbox, command(&["stat", &format!("{folder}/b")])).await;
    assert!(did.errors.contains("No such file"), "{did:?}");
    let locked = run(sandbox, script(r#"cd "$TMPDIR" && mkdir -p a/b && chmod 0 a/b a && pwd"#)).await.well();
    let did = run(sandbox, command(&["stat", &format!("{}/a", locked.trim())])).await;
    assert!(did.errors.contains("No such file"), "{did:?}");
}

/// If the machine can do it, `/tmp` is the command's own; else the command is told which folder to use instead.
async fn tmp_is_the_commands_own(sandbox: &dyn Sandbox) {
    let name = format!("/tmp/{}", call());
    let write = format!("echo mine >{name} && cat {name}");
    let did = run(sandbox, script(&write)).await;
    if did.end.code == Some(0) {
        assert_eq!(did.well(), "mine\n");
        let reads = format!("cat {name}; echo $TMPDIR $HOME");
        let did = run(sandbox, script(&reads)).await;
        assert!(did.errors.contains("No such file") && did.output == "/tmp /tmp\n", "{did:?}");
    } else {
        assert!(did.errors.contains("use $TMPDIR"), "{did:?}");
    }
}

async fn files_that_it_leaves_are_kept(sandbox: &dyn Sandbox) {
    let makes = r"cd $TMPDIR && mkdir -p out/deep && printf 'a\377' >out/deep/bytes && echo chart >out/chart
        ln -s /etc/passwd out/link; echo told; exit 3";
    let keep = ["/out", "/out/chart", "/absent"].map(path).to_vec();
    let asked = Exec { keep: keep.clone(), ..script(makes) };
    let did = run(sandbox, asked.clone()).await;
    assert_eq!((did.end.code, did.output.as_str()), (Some(3), "told\n"), "{did:?}");
    let kept: Vec<_> = did.kept.iter().map(|file| (file.of, file.below.as_str(), &file.content[..])).collect();
    assert_eq!(kept, [(0, "/chart", &b"chart\n"[..]), (0, "/deep/bytes", &b"a\xff"[..]), (1, "/", &b"chart\n"[..])]);
    let left_out: Vec<_> = did.left_out.iter().map(|left| (left.of, left.below.as_str())).collect();
    assert_eq!(left_out, [(0, "/link"), (2, "/")]);
    assert_eq!(run(sandbox, asked).await, did, "and who comes later is given them once more");
    let late = Exec { keep, timeout: Duration::from_millis(500), ..script("mkdir $TMPDIR/out; sleep 1000") };
    let did = run(sandbox, late).await;
    assert!(did.end.timed_out && did.kept.is_empty(), "{did:?}");
    assert_eq!(did.left_out.len(), 3, "it did not end by itself: {did:?}");
    refused(sandbox, Exec { keep: vec![path("/out"); ports::MOST_KEEPS + 1], ..command(&["true"]) }).await;
}

async fn sockets_have_to_be_asked_for(sandbox: &dyn Sandbox) {
    // Port 9 of the loopback: no program listens there.
    let asked = |network| Exec { network, ..command(&["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/9"]) };
    let did = run(sandbox, asked(false)).await;
    assert!(did.errors.contains("not permitted"), "{did:?}");
    let did = run(sandbox, asked(true)).await;
    assert!(did.errors.contains("refused"), "{did:?}");
}
