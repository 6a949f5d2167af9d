//! `/tmp` of commands, where the machine lets each have its own: by root, with the workspace below `/tmp` and elsewhere.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use domain::{CallId, FilePath, WorkspaceId};
use futures::StreamExt;
use ports::{Exec, ExecEvent, Execution, Place, Reserve, Sandboxes};
use sandbox::Local;
use std::{collections::BTreeMap, fs, path::Path, time::Duration};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a script in `/projects/app` of a workspace, which is all that it can read of it: what it wrote, and its exit code.
async fn run(local: &Local, script: &str) -> (String, Option<i32>) {
    let sandbox = local.ready(workspace()).await.unwrap().unwrap();
    let call = CallId::from(Uuid::now_v7());
    let asked = Reserve { call, direct: false, wait: PATIENCE };
    let Place::Granted(grant) = sandbox.reserve(asked).await.unwrap() else { panic!("there are places") };
    let root: FilePath = "/projects/app".parse().unwrap();
    let command = Exec {
        call,
        grant,
        words: ["sh", "-c", script].map(String::from).to_vec(),
        folder: root.clone(),
        root,
        env: BTreeMap::new(),
        stdin: None,
        timeout: PATIENCE,
        network: false,
        max_output: 1 << 16,
    };
    let Execution::Begun(mut events) = sandbox.exec(command).await.unwrap() else { panic!("it has a place") };
    let mut text = String::new();
    while let Some(event) = tokio::time::timeout(PATIENCE, events.next()).await.unwrap() {
        match event.unwrap() {
            ExecEvent::Output { text: more, .. } => text.push_str(&more),
            ExecEvent::Dropped { .. } => {}
            ExecEvent::Ended(end) => return (text, end.code),
        }
    }
    panic!("it did not end")
}

fn workspace() -> WorkspaceId {
    WorkspaceId::from(Uuid::from_u128(7))
}

fn local(home: &Path) -> Local {
    let latest = home.join(format!("files/{}/latest", workspace()));
    for (file, text) in [("projects/app/a.md", "of the app"), ("projects/other/b.md", "of another")] {
        let file = latest.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    Local::new(home.join("files"), home.join("scratch"))
}

#[tokio::test]
async fn each_command_has_a_tmp_of_its_own_wherever_the_workspace_is() {
    for place in ["/tmp", "/var/tmp"] {
        let home = tempfile::tempdir_in(place).unwrap();
        let home = home.path().canonicalize().unwrap();
        let local = local(&home);
        let (text, code) = run(&local, "echo x >/tmp/t && cat /tmp/t").await;
        if code != Some(0) {
            // Not as root: then it is said what to use.
            assert!(text.contains("use $TMPDIR"), "{text}");
            return;
        }
        assert_eq!(text, "x\n");
        // What others have there is not to be seen, and what it had is gone.
        let beside = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        let script = format!("ls -A /tmp | grep -v '^[.]tmp'; cat {}", beside.path().display());
        let (text, _) = run(&local, &script).await;
        assert!(text.contains("No such file") && text.lines().count() == 1, "{text}");
        let both = tokio::join!(
            run(&local, "echo 1 >/tmp/same; sleep 0.2; cat /tmp/same"),
            run(&local, "echo 2 >/tmp/same; sleep 0.2; cat /tmp/same")
        );
        assert_eq!(both, (("1\n".into(), Some(0)), ("2\n".into(), Some(0))));
        // The workspace is where it was: readable by every path, as far as it is readable, and nowhere writable.
        let reads = "cat a.md; cat \"$(pwd -P)/a.md\"; cd \"$(pwd -P)\" && cat a.md";
        assert_eq!(run(&local, reads).await, ("of the app".repeat(3), Some(0)), "{place}");
        for writes in [
            "echo y >>a.md",
            "echo y >>\"$(pwd -P)/a.md\"",
            "echo y >\"$(pwd -P)/new\"",
            "chmod 777 \"$(pwd -P)/a.md\" && echo y >>\"$(pwd -P)/a.md\"",
            "cd \"$(pwd -P)\" && rm a.md",
            "ln \"$(pwd -P)/a.md\" /tmp/a && echo y >>/tmp/a",
            "cat ../other/b.md",
            "cat \"$(pwd -P)/../other/b.md\"",
        ] {
            let (text, code) = run(&local, writes).await;
            assert!(code != Some(0) && !text.contains("of another"), "{place}: {writes}: {text}");
        }
        let app = home.join(format!("files/{}/latest/projects/app", workspace()));
        assert_eq!(fs::read_to_string(app.join("a.md")).unwrap(), "of the app");
        assert_eq!(fs::read_dir(&app).unwrap().count(), 1);
        assert_eq!(fs::read_dir(home.join("scratch")).unwrap().count(), 0, "nothing is left of any");
    }
}
