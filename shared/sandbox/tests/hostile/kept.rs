//! Files that are kept of a command: its own, and no others.

use crate::{
    cage::{Cage, Did, WORKSPACE},
    escapes::namespaced,
};
use domain::{FilePath, WorkspaceId};
use ports::{Exec, Execution, MOST_KEPT, MOST_KEPT_BYTES, Sandboxes};

fn cages() -> [Cage; 3] {
    [Cage::new(1), Cage::new(u8::MAX), namespaced(|_| {})]
}

async fn kept(cage: &Cage, script: &str, keep: &[&str]) -> Did {
    let keep: Vec<FilePath> = keep.iter().map(|from| from.parse().unwrap()).collect();
    cage.run(Exec { keep, ..cage.command(&["bash", "-c", script]) }).await
}

#[tokio::test]
async fn nothing_of_the_host_is_kept_of_a_command() {
    for cage in cages() {
        let root = cage.root();
        let root = root.display();
        let script = format!(
            "cd $TMPDIR && mkdir -p moved/in && echo own >moved/in/file && mv moved out
            ln {root}/secret out/hard 2>/dev/null; ln {root}/files/*/latest/inside/a.md out/hard 2>/dev/null
            ln -s {root}/secret out/link; ln -s {root} out/folder; ln -s {root} folder; ln -s ../../../.. up
            mkfifo out/pipe; echo x >closed; chmod 000 closed; mkdir shut; echo x >shut/file; chmod 000 shut; exit 7"
        );
        let did = kept(&cage, &script, &["/out", "/folder/secret", "/up", "/closed", "/shut"]).await;
        assert_eq!((did.end.code, did.errors.as_str()), (Some(7), ""), "{did:?}");
        let own = did.kept.iter().filter(|file| file.of < 3).map(|file| (file.below.as_str(), &file.content[..]));
        assert_eq!(own.collect::<Vec<_>>(), [("/in/file", &b"own\n"[..])]);
        let left_out = did.left_out.iter().filter(|left| left.of < 3).map(|left| left.below.as_str());
        let mut left_out: Vec<&str> = left_out.collect();
        left_out.sort_unstable();
        assert_eq!(left_out, ["/", "/", "/folder", "/link", "/pipe"]);
        // To root nothing is closed; to all others it is, and that is told.
        for of in [3, 4] {
            let kept = did.kept.iter().filter(|file| file.of == of).count();
            let left_out: Vec<_> = did.left_out.iter().filter(|left| left.of == of).collect();
            let is_told = left_out.iter().all(|left| left.why == "it may not be read");
            assert!(kept + left_out.len() == 1 && is_told, "{did:?}");
        }
    }
}

#[tokio::test]
async fn of_too_much_nothing_is_kept_and_the_command_has_its_outcome() {
    for cage in cages() {
        let fits = format!("head -c {MOST_KEPT_BYTES} /dev/zero >$TMPDIR/large");
        let did = kept(&cage, &fits, &["/large"]).await;
        assert_eq!(did.kept.iter().map(|file| file.content.len()).collect::<Vec<_>>(), [MOST_KEPT_BYTES]);
        for (script, why) in [
            ("truncate -s 17M $TMPDIR/a".to_owned(), "1 file with 17825792 bytes"),
            (format!("cd $TMPDIR && touch $(seq {})", MOST_KEPT + 1), "1001 files with 0 bytes"),
        ] {
            let did = kept(&cage, &script, &["/", "/absent"]).await;
            assert_eq!((did.end.code, did.kept.len(), did.left_out.len()), (Some(0), 0, 2), "{:?}", did.left_out);
            assert!(did.left_out.iter().all(|left| left.why.starts_with(why)), "{:?}", did.left_out);
        }
    }
}

#[tokio::test]
async fn kept_files_count_among_what_is_remembered() {
    let cage = Cage::with(|options| options.remembered_bytes = 1 << 20);
    let leaves = |bytes: usize| Exec {
        keep: vec!["/a".parse().unwrap()],
        ..cage.command(&["bash", "-c", &format!("head -c {bytes} /dev/zero >$TMPDIR/a")])
    };
    let sandbox = cage.sandboxes().ready(WorkspaceId::from(WORKSPACE)).await.unwrap().unwrap();
    for (bytes, is_remembered) in [(1 << 19, true), (1 << 21, false)] {
        let command = leaves(bytes);
        assert_eq!(cage.run(command.clone()).await.kept.len(), 1);
        let again = sandbox.exec(command).await.unwrap();
        assert_eq!(matches!(again, Execution::Begun(_)), is_remembered, "{bytes} bytes");
    }
}
