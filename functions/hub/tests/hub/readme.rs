//! The README, as a new reader uses it: its samples run as they stand, at a hub without a model.

use crate::support::{Hub, PATIENCE, Result};
use std::path::Path;
use tokio::{process::Command, time::timeout};

/// Ends the watching after the answer, as a person does with Ctrl-C. Nothing waits for the program that is left behind.
const WATCHING: &str = r#"
curl() {
  [ "$1" = -N ] || { command curl "$@"; return; }
  while read -r line; do
    echo "$line"
    [ "$line" != 'event: done' ] || break
  done < <(command curl -sN "$2" 2>/dev/null)
}
"#;

fn readme() -> Result<String> {
    Ok(std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"))?)
}

/// The part of a text between two others.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> Result<&'a str> {
    let part = text.split_once(begin).and_then(|(_, rest)| rest.split_once(end));
    Ok(part.ok_or_else(|| format!("no sample after {begin:?}"))?.0)
}

/// The output of a program that runs this code.
async fn said(program: &str, file: &Path, code: &str) -> Result<String> {
    std::fs::write(file, code)?;
    let run = Command::new(program).arg(file).kill_on_drop(true).output();
    let done = timeout(PATIENCE, run).await??;
    assert!(done.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&done.stderr));
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[tokio::test]
async fn the_samples_of_the_readme_run_as_they_stand() -> Result {
    let data = tempfile::tempdir()?;
    let hub = Hub::start_with(Path::new(env!("CARGO_BIN_EXE_buildscale")), data.path(), &[]).await?;
    let here = hub.client().address("/");
    let text = readme()?.replace("http://127.0.0.1:8686", here.trim_end_matches('/'));

    for (program, file, begin) in [("node", "sample.mjs", "\n```js\n"), ("python3", "sample.py", "\n```python\n")] {
        let said = said(program, &data.path().join(file), between(&text, begin, "\n```")?).await?;
        assert!(said.contains("ask me something"), "{program}: {said}");
    }
    let code: Vec<&str> = between(&text, "With curl:\n\n", "\n\nWith ")?.lines().map(str::trim_start).collect();
    let said = said("bash", &data.path().join("sample.sh"), &(WATCHING.to_owned() + &code.join("\n"))).await?;
    for part in ["event: chunk", "event: done", "\"path\":\"/projects/demo/hello.md\""] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    Ok(())
}

#[test]
fn the_readme_is_read_in_minutes() -> Result {
    let bytes = readme()?.len();
    assert!(bytes < 12_000, "the README has {bytes} bytes: the rest belongs into docs/");
    Ok(())
}
