//! Backups of a hub that runs, and hubs that start on what was restored.

use crate::support::{Client, Hub, PATIENCE, Result, count, start};
use buildscale_hub::backup::{BackupJob, Progress, make};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Output,
};
use tempfile::TempDir;
use tokio::{process::Command, runtime::Handle, task::block_in_place, time::timeout};

/// A data folder, a backup of it, and a folder to restore to.
struct Places {
    folder: TempDir,
}

impl Places {
    fn new() -> Result<Self> {
        Ok(Self { folder: tempfile::tempdir()? })
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn backup(&self) -> PathBuf {
        self.folder.path().join("backup")
    }

    fn restored(&self) -> PathBuf {
        self.folder.path().join("restored")
    }

    async fn back_up(&self, more: &[&str]) -> Result<Value> {
        good(&run("backup", &self.backup(), &self.data(), more).await?)
    }

    async fn restore(&self, more: &[&str]) -> Result<Value> {
        good(&run("restore", &self.backup(), &self.restored(), more).await?)
    }
}

async fn run(command: &str, backup: &Path, data: &Path, more: &[&str]) -> Result<Output> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_buildscale"));
    program.env_clear().arg(command).arg(backup).arg("--data-dir").arg(data).arg("--json").args(more);
    Ok(program.output().await?)
}

fn good(output: &Output) -> Result<Value> {
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Its error, which has a hint, and its code.
fn refused(output: &Output) -> Result<(String, String)> {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    let error = &serde_json::from_slice::<Value>(&output.stderr)?["error"];
    assert!(error["hint"].is_string(), "{error}");
    let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    Ok((text("code"), text("message")))
}

/// Longer than what the table keeps of a file.
fn long(word: &str) -> String {
    format!("{word}\n").repeat(20_000)
}

async fn content(client: &Client, file: &str) -> Result<String> {
    Ok(client.look(&format!("{file}/content")).await?.is(200)?.text())
}

fn contents_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let each = |stored: embedded::StoredContent| {
        found.push(stored.path);
        Ok::<_, std::io::Error>(())
    };
    embedded::contents(&folder.join("workspaces"), &mut { each })?;
    Ok(found)
}

#[tokio::test]
async fn a_backup_of_a_running_hub_is_a_hub_that_serves_everything_and_goes_on() -> Result {
    let places = Places::new()?;
    let hub = start(&places.data(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let file = client.file(&place, "/projects/long.md", &long("first")).await?;
    let kept = client.file(&place, "/projects/short.md", "short").await?;
    let done = client.chat(&place, "novel").await?;
    client.watch(&done).until_event("done").await?;
    let gone = client.chat(&place, "say something").await?;
    client.watch(&gone).until_event("done").await?;
    client.ask(Method::DELETE, &gone, Value::Null).await?.good()?;
    client.until_settled().await?;
    let slow = client.chat(&place, "slow").await?;
    client.watch(&slow).until_event("chunk").await?;
    let first = places.back_up(&[]).await?;
    assert_eq!((&first["damaged"], &first["left_out"]), (&json!([]), &json!([])), "{first}");

    // Brought up to date: only what is new is copied, and the store.
    let second_content = long("second");
    client.ask(Method::PUT, &file, json!({ "content": second_content })).await?.good()?;
    let second = places.back_up(&[]).await?;
    assert_eq!(second["files"].as_u64(), first["files"].as_u64().map(|files| files + 1), "{first} {second}");
    assert_eq!(second["copied_files"], 3, "the store, a new content, and the file of the deleted chat: {second}");
    assert_eq!(contents_below(&places.backup())?.len(), 2);
    // A later write is in no backup.
    client.file(&place, "/projects/later.md", "later").await?;
    let history = client.get(&done).await?["messages"].clone();
    assert!(history.as_array().is_some_and(|messages| messages.len() > 1), "{history}");
    drop(hub);

    let restored = places.restore(&[]).await?;
    assert_eq!(restored["copied_files"], second["files"], "{restored}");
    let hub = start(&places.restored(), &[]).await?;
    let client = hub.client();
    assert_eq!(content(&client, &file).await?, second_content);
    let old = client.look(&format!("{file}/versions/1/content")).await?.is(200)?.text();
    assert_eq!(old, long("first"));
    assert_eq!(content(&client, &kept).await?, "short");
    client.look(&format!("{place}/files/by-path?path=/projects/later.md")).await?.refuses(404, "NOT_FOUND")?;
    assert_eq!(client.get(&done).await?["messages"], history);
    let watch = client.watch(&slow);
    watch.until(|events| events.iter().any(|event| event.name == "turn_started" && event.data["attempt"] == 2)).await?;
    client.post(&format!("{slow}/stop"), Value::Null).await?;
    watch.until_event("stopped").await?;
    let again = client.chat(&place, "another").await?;
    client.watch(&again).until_event("done").await?;
    chats_have_their_files(&places.restored(), &place, &done, &gone).await
}

/// The file of a chat is made again from its log; that of a deleted one is in the trash.
async fn chats_have_their_files(data: &Path, place: &str, done: &str, gone: &str) -> Result {
    let id = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let workspace = data.join("workspaces").join(id(place));
    let transcript = workspace.join(format!("latest/chats/{}.md", id(done)));
    while !fs::read_to_string(&transcript).unwrap_or_default().contains("The file of novel is done.") {
        tokio::task::yield_now().await;
    }
    while data.join("buildscale.transcripts-behind").exists() {
        tokio::task::yield_now().await;
    }
    assert!(fs::read_to_string(workspace.join("trash").join(id(gone)))?.contains("say something"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workspace_that_is_deleted_while_the_backup_is_made_is_in_it_with_its_contents() -> Result {
    let places = Places::new()?;
    let hub = start(&places.data(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let file = client.file(&place, "/projects/long.md", &long("kept")).await?;
    client.place().await?;
    let (mut deleted, mut failed) = (false, None);
    let mut tell = |progress: Progress| {
        // The store has been copied, and no content yet.
        if progress.part == "contents" && !deleted {
            deleted = true;
            let gone = async { client.ask(Method::DELETE, &place, Value::Null).await?.good() };
            failed = block_in_place(|| Handle::current().block_on(gone)).err();
        }
    };
    let (data, into) = (places.data(), places.backup());
    let made = make(BackupJob { data: &data, into: &into, with_secrets: false }, &mut tell).await?;
    assert!(deleted && failed.is_none() && made.damaged.is_empty(), "{failed:?} {made:?}");
    client.look(&place).await?.refuses(404, "NOT_FOUND")?;
    assert_eq!(contents_below(&data)?, Vec::<PathBuf>::new(), "nothing of it stays when the backup is complete");
    assert_eq!(fs::read_dir(data.join("workspaces/.deleted"))?.count(), 0);

    places.restore(&[]).await?;
    let restored = start(&places.restored(), &[]).await?;
    assert_eq!(content(&restored.client(), &file).await?, long("kept"));
    // The next one has neither.
    places.back_up(&[]).await?;
    assert_eq!(contents_below(&into)?, Vec::<PathBuf>::new());
    Ok(())
}

/// A hub that has ended, with a file, and a backup of it.
async fn ended(places: &Places) -> Result<(String, String)> {
    let mut hub = start(&places.data(), &[]).await?;
    let client = hub.client();
    let place = client.place().await?;
    let file = client.file(&place, "/projects/long.md", &long("kept")).await?;
    client.file(&place, "/projects/other.md", &long("other")).await?;
    assert!(hub.terminate().await?.success());
    places.back_up(&[]).await?;
    Ok((place, file))
}

#[tokio::test]
async fn nothing_is_restored_over_a_hub_that_runs_or_over_data_unless_it_is_moved_aside() -> Result {
    let places = Places::new()?;
    let (_, file) = ended(&places).await?;
    let restore = async |more: &[&str]| run("restore", &places.backup(), &places.restored(), more).await;
    let mut hub = start(&places.restored(), &[]).await?;
    let other = hub.client().place().await?;
    for more in [&[][..], &["--replace"]] {
        assert_eq!(refused(&restore(more).await?)?.0, "DATA_IN_USE");
    }
    assert!(hub.terminate().await?.success());
    let (code, message) = refused(&restore(&[]).await?)?;
    assert_eq!(code, "DATA_NOT_EMPTY");
    assert!(message.contains("buildscale."), "{message}");
    hub.restart().await?;
    hub.client().get(&other).await?;
    assert!(hub.terminate().await?.success());

    let restored = good(&restore(&["--replace"]).await?)?;
    let moved = restored["moved_to"].as_str().ok_or("nothing was moved")?;
    assert!(Path::new(moved).join("buildscale.sqlite3").is_file());
    let hub = start(&places.restored(), &[]).await?;
    hub.client().look(&other).await?.refuses(404, "NOT_FOUND")?;
    assert_eq!(content(&hub.client(), &file).await?, long("kept"));
    drop(hub);
    // The way back.
    let back = start(Path::new(moved), &[]).await?;
    back.client().get(&other).await?;
    Ok(())
}

#[tokio::test]
async fn a_backup_in_the_data_folder_stays_where_it_is() -> Result {
    let places = Places::new()?;
    ended(&places).await?;
    // The folder in which the backup is, and the backup itself.
    for data in [places.folder.path(), &places.backup()] {
        for more in [&[][..], &["--replace"]] {
            let (code, message) = refused(&run("restore", &places.backup(), data, more).await?)?;
            assert_eq!(code, "INVALID_ARGUMENT");
            assert!(message.ends_with("is in the data folder"), "{message}");
        }
    }
    assert_eq!(places.restore(&["--check"]).await?["damaged"], json!([]));
    assert!(!places.backup().join("buildscale.lock").exists());
    Ok(())
}

#[tokio::test]
async fn no_hub_begins_with_nothing_in_a_backup() -> Result {
    let places = Places::new()?;
    ended(&places).await?;
    let mut program = Command::new(env!("CARGO_BIN_EXE_buildscale"));
    program.env_clear().args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(places.backup());
    let output = timeout(PATIENCE, program.kill_on_drop(true).output()).await??;
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && why.contains("is a backup, and no data folder (NOT_A_DATA_FOLDER)"), "{why}");
    assert!(why.contains("buildscale restore BACKUP --data-dir DATA"), "{why}");
    assert!(!places.backup().join("buildscale.sqlite3").exists());
    Ok(())
}

#[tokio::test]
async fn a_backup_that_is_damaged_or_was_interrupted_is_never_taken_for_a_whole_one() -> Result {
    let places = Places::new()?;
    let (_, file) = ended(&places).await?;
    let restore = async |more: &[&str]| run("restore", &places.backup(), &places.restored(), more).await;
    assert_eq!(good(&restore(&["--check"]).await?)?["damaged"], json!([]));
    assert!(!places.restored().exists(), "to check is to write nothing");

    let damaged = contents_below(&places.backup())?
        .into_iter()
        .find(|path| fs::read_to_string(path).is_ok_and(|text| text.starts_with("other")));
    let damaged = damaged.ok_or("no such content")?;
    let whole = fs::read(&damaged)?;
    let mut altered = whole.clone();
    altered[7] ^= 1;
    fs::write(&damaged, altered)?;
    let name = damaged.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for more in [&["--check"][..], &[]] {
        let (code, message) = refused(&restore(more).await?)?;
        assert_eq!(code, "BACKUP_DAMAGED");
        assert!(message.contains(&name), "{message}");
    }
    // A hub would begin anew there, beside workspaces; it does not.
    assert!(!places.restored().join("buildscale.sqlite3").exists());
    assert!(start(&places.restored(), &[]).await.is_err());
    fs::remove_file(places.restored().join("script.yaml"))?;
    let restored = good(&restore(&["--keep-going"]).await?)?;
    assert_eq!(restored["damaged"].as_array().map(Vec::len), Some(1), "{restored}");
    let hub = start(&places.restored(), &[]).await?;
    assert_eq!(content(&hub.client(), &file).await?, long("kept"));
    drop(hub);

    fs::write(&damaged, whole)?;
    let store = fs::read_dir(places.backup())?.flatten().map(|entry| entry.path());
    let store =
        store.into_iter().find(|path| path.extension().is_some_and(|end| end == "sqlite3")).ok_or("no store")?;
    let copy = fs::read(&store)?;
    fs::write(&store, &copy[..copy.len() - 1])?;
    assert_eq!(refused(&restore(&["--replace"]).await?)?.0, "BACKUP_DAMAGED");

    // As a backup is that was interrupted before its end.
    fs::remove_file(places.backup().join("backup.json"))?;
    for more in [&["--check"][..], &["--replace"]] {
        assert_eq!(refused(&restore(more).await?)?.0, "BACKUP_NOT_WHOLE");
    }
    let again = places.back_up(&[]).await?;
    assert_eq!(again["copied_files"], 1, "the store alone: {again}");
    good(&restore(&["--check"]).await?)?;
    Ok(())
}

#[tokio::test]
async fn a_backup_goes_neither_into_foreign_folders_nor_over_the_backup_of_another_hub() -> Result {
    let places = Places::new()?;
    ended(&places).await?;
    let code = async |into: &Path, data: &Path| {
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(refused(&run("backup", into, data, &[]).await?)?.0)
    };
    let (data, another) = (places.data(), places.folder.path().join("another"));
    let mut hub: Hub = start(&another, &[]).await?;
    hub.client().place().await?;
    assert_eq!(code(&places.backup(), &another).await?, "BACKUP_OF_ANOTHER");
    assert!(hub.terminate().await?.success());
    good(&run("restore", &places.backup(), &places.restored(), &["--check"]).await?)?;

    assert_eq!(code(&places.backup(), places.folder.path()).await?, "NOT_A_DATA_FOLDER");
    assert_eq!(code(&data.join("workspaces/backup"), &data).await?, "INVALID_ARGUMENT");
    assert!(!data.join("workspaces/backup").exists());
    assert_eq!(code(&another, &data).await?, "NOT_A_BACKUP");
    assert_eq!(refused(&run("restore", &data, &places.restored(), &[]).await?)?.0, "NOT_A_BACKUP");
    let lock = fs::File::open(places.backup().join("lock"))?;
    lock.lock()?;
    assert_eq!(code(&places.backup(), &data).await?, "BACKUP_IN_USE");
    assert_eq!(refused(&run("restore", &places.backup(), &places.restored(), &[]).await?)?.0, "BACKUP_IN_USE");
    Ok(())
}

#[tokio::test]
async fn other_users_read_nothing_of_a_backup_in_a_folder_that_is_open_to_them() -> Result {
    let places = Places::new()?;
    fs::create_dir(places.backup())?;
    fs::set_permissions(places.backup(), Permissions::from_mode(0o755))?;
    ended(&places).await?;
    let mut parts = Vec::new();
    for entry in fs::read_dir(places.backup())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(part) = ["store-", "contents-", "files-", "workspaces"].iter().find(|part| name.starts_with(**part))
        {
            assert_eq!(entry.metadata()?.permissions().mode() & 0o077, 0, "{name}");
            parts.push(*part);
        }
    }
    parts.sort_unstable();
    assert_eq!(parts, ["contents-", "files-", "store-", "workspaces"]);
    Ok(())
}

#[tokio::test]
async fn secrets_are_left_out_unless_they_are_asked_for() -> Result {
    let places = Places::new()?;
    ended(&places).await?;
    let (data, restored) = (places.data(), places.restored());
    fs::create_dir_all(data.join("secrets/more"))?;
    fs::write(data.join("secrets/more/key"), "the-key-itself")?;
    fs::write(data.join("buildscale.toml"), "[server]\n")?;
    let without = places.back_up(&[]).await?;
    assert_eq!(without["left_out"], json!(["buildscale.toml", "secrets"]));
    // A configuration that is there already does not stop a restore.
    fs::create_dir_all(&restored)?;
    fs::write(restored.join("buildscale.toml"), "[auth]\n")?;
    places.restore(&[]).await?;
    assert_eq!(fs::read_to_string(restored.join("buildscale.toml"))?, "[auth]\n");
    assert!(!restored.join("secrets").exists());

    let with = places.back_up(&["--with-secrets"]).await?;
    assert_eq!(
        (&with["left_out"], with["files"].as_u64()),
        (&json!([]), without["files"].as_u64().map(|files| files + 2))
    );
    places.restore(&["--replace"]).await?;
    assert_eq!(fs::read_to_string(restored.join("secrets/more/key"))?, "the-key-itself");
    assert_eq!(fs::read_to_string(restored.join("buildscale.toml"))?, "[server]\n");
    assert_eq!(count(&[], "done"), 0);
    Ok(())
}
