//! The configuration of a hub: its faults name their place, and the values in force can be looked at.

use crate::support::{ANYWHERE, Hub, answer, command, hub, text};
use serde_json::Value;
use std::{path::Path, process::Output};

/// The output of a `serve` that does not start.
fn refused(data: &Path, more: &[&str], environment: &[(&str, &str)]) -> Output {
    let serve = ["serve", "--listen", ANYWHERE, "--data-dir", data.to_str().unwrap()];
    command(&[&serve, more].concat()).envs(environment.iter().copied()).output().unwrap()
}

#[test]
fn a_hub_does_not_start_without_the_file_that_is_named() {
    let data = tempfile::tempdir().unwrap();
    let output = refused(data.path(), &["--config", "nope.toml"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nope.toml: there is no such file"), "{}", text(&output.stderr));
}

#[test]
fn an_unusable_configuration_is_refused_before_the_hub_starts() {
    let data = tempfile::tempdir().unwrap();
    for (variable, value, told) in [
        ("BUILDSCALE__AI__MODEL", "opnai/gpt-5", "BUILDSCALE__AI__MODEL: ai.model: unknown model \"opnai/gpt-5\""),
        ("BUILDSCALE__AI__MODEL", "opnai/gpt-5", "did you mean openai/gpt-5?"),
        ("BUILDSCALE__SERVER__CORS_ORIGINS", "*", "server.cors_origins.0: \"*\" is no origin"),
        ("BUILDSCALE__SANDBOX__READABLE", "/nowhere/at/all", "there is no such folder"),
        ("BUILDSCALE__AI__MODLE", "x", "BUILDSCALE__AI__MODLE: ai.modle: there is no such key; did you mean model?"),
    ] {
        let output = refused(data.path(), &[], &[(variable, value)]);
        assert_eq!(output.status.code(), Some(1), "{variable}");
        assert!(text(&output.stderr).contains(told), "{told}: {}", text(&output.stderr));
    }
}

#[test]
fn an_error_of_the_store_says_why() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("buildscale.sqlite3"), "this is no database, despite its name\n".repeat(99))
        .unwrap();
    let output = refused(data.path(), &[], &[]);
    let why = text(&output.stderr);
    assert_eq!(why.matches("not a database").count(), 1, "{why}");
    let doctor = command(&["doctor", "--data-dir", data.path().to_str().unwrap()]).output().unwrap();
    let told = text(&doctor.stdout);
    assert!(doctor.status.code() == Some(1) && told.contains("buildscale.sqlite3 is no database"), "{told}");
}

#[test]
fn an_address_that_is_none_is_told_with_one_that_is() {
    let data = tempfile::tempdir().unwrap();
    let serve = ["serve", "--listen", "nonsense", "--data-dir", data.path().to_str().unwrap()];
    let why = text(&command(&serve).output().unwrap().stderr);
    assert!(why.contains("cannot listen on nonsense") && why.contains("such as 127.0.0.1:8686"), "{why}");
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    let output = refused(Path::new("/proc/nope"), &[], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot use /proc/nope: "), "{}", text(&output.stderr));
}

#[test]
fn an_address_in_use_is_named_with_its_user_and_the_way_out() {
    let (folder, hub) = hub();
    let other = tempfile::tempdir().unwrap();
    for (data, told) in [
        (folder.path(), "a hub already runs with the data folder"),
        (other.path(), concat!("another hub (version ", env!("CARGO_PKG_VERSION"), ") answers there")),
    ] {
        let serve = ["serve", "--listen", &hub.address, "--data-dir", data.to_str().unwrap()];
        let output = command(&serve).output().unwrap();
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{why}");
        assert!(why.contains(&format!("cannot listen on {}", hub.address)), "{why}");
        assert!(why.contains(told) && why.contains("--listen") && why.contains("server.listen"), "{why}");
    }
}

#[test]
fn https_to_a_plain_hub_and_a_folder_as_a_file_have_their_hints() {
    let (folder, hub) = hub();
    let output = hub.command(&["models"]).env("BUILDSCALE_URL", format!("https://{}", hub.address)).output().unwrap();
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{why}");
    assert!(why.contains("it speaks http, not https") && why.contains("http:// instead of https://"), "{why}");

    let output = hub.run(&["files", "put", folder.path().to_str().unwrap(), "/projects"]);
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{why}");
    assert!(why.contains("is a folder") && why.contains("buildscale files sync DIR /FOLDER"), "{why}");
}

#[test]
fn a_configuration_is_begun_checked_and_shown() {
    let data = tempfile::tempdir().unwrap();
    let run = |args: &[&str], environment: &[(&str, &str)]| {
        let output = command(&[args, &["--data-dir", data.path().to_str().unwrap()]].concat())
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, _, told) = run(&["config", "check"], &[]);
    assert!(code == Some(0) && told.contains("there is no file; nothing is wrong"), "{told}");
    assert_eq!(run(&["config", "init"], &[]).0, Some(0));
    let (code, _, why) = run(&["config", "init"], &[]);
    assert!(code == Some(1) && why.contains("is there already, and stays as it is"), "{why}");
    let (code, _, told) = run(&["config", "check"], &[]);
    assert!(code == Some(0) && told.contains("buildscale.toml: nothing is wrong"), "{told}");
    let file = data.path().join("buildscale.toml");
    std::fs::write(&file, "[ai]\nmodel = \"openai/gpt-5\"\n[server]\nauth_token = \"hunter2-hunter2\"\n").unwrap();

    let (code, said, _) = run(&["config", "check"], &[("BUILDSCALE_SERVER_LISTEN", "x")]);
    assert_eq!(code, Some(0));
    assert!(said.contains("openai/gpt-5 cannot be asked yet: set OPENAI_API_KEY"), "{said}");
    assert!(said.contains("did you mean BUILDSCALE__SERVER__LISTEN?"), "{said}");
    let (_, shown, _) = run(&["config", "show", "--json"], &[("BUILDSCALE__AI__CONTEXT_TOKENS", "7")]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let of = |key: &str| shown["settings"].as_array().unwrap().iter().find(|one| one["key"] == key).unwrap().clone();
    assert_eq!(of("server.auth_token")["value"], "(hidden)");
    assert_eq!(of("server.auth_token")["origin"], format!("{}, line 4", file.display()));
    assert_eq!(of("ai.context_tokens")["origin"], "BUILDSCALE__AI__CONTEXT_TOKENS");

    std::fs::write(&file, "[ai]\nmodel = \"opnai/gpt-5\"\n").unwrap();
    let (_, _, why) = run(&["config", "check"], &[]);
    assert!(why.contains("buildscale.toml, line 2: ai.model: unknown model"), "{why}");
    std::fs::write(&file, "[ai]\nmodle = \"x\"\n").unwrap();
    let (code, _, why) = run(&["config", "check"], &[]);
    assert_eq!(code, Some(1));
    assert!(why.contains("buildscale.toml, line 2: ai.modle: there is no such key; did you mean model?"), "{why}");
}

#[test]
fn a_check_finds_all_that_keeps_a_hub_from_starting() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("buildscale.toml");
    let place = |line| format!("{}, line {line}: ", file.display());
    for (written, line, told) in [
        ("[server]\nlisten = \"127.0.0.1\"", 2, "server.listen: \"127.0.0.1\" cannot be listened on"),
        ("[server]\nlisten = \"127.0.0.1:99999\"", 2, "server.listen: \"127.0.0.1:99999\" cannot be listened on"),
        ("[server]\nlisten = \"0.0.0.0:8686\"", 2, "server.listen: 0.0.0.0:8686 can be reached from other machines"),
        (
            "[server]\nallow_public = true\nlisten = \"[::]:8686\"\nauth_token = \"\"",
            3,
            "server.listen: [::]:8686 can be reached from other machines",
        ),
        ("[auth]\n\nsecret = \"short-secret\"", 3, "auth.secret: a secret that signs tokens has at least 32 bytes"),
        ("[auth]\nticket_secret = \"short-secret\"", 2, "auth.ticket_secret: "),
        ("[auth]\nconsole_origins = [\"a.example\"]", 2, "auth.console_origins: "),
        ("[webhooks]\nsecret = \"short-secret\"", 2, "webhooks.secret: a key of webhooks has at least 32 bytes"),
        ("[telemetry]\notlp_endpoint = \"collector\"", 2, "telemetry.otlp_endpoint: this is no URL"),
        ("[ai.limits]\nmax_steps = 0", 2, "ai.limits.max_steps: 0 would end each turn before it begins"),
        ("[ai.limits]\nmax_cost_usd = inf", 2, "ai.limits.max_cost_usd: this is no limit"),
        ("[ai]\nscript = \"nope.yaml\"", 2, "ai.script: the script nope.yaml cannot be read"),
        ("[ai.openai]\nregion = \"eu-west-1\"", 2, "ai.openai.region: openai has no `region`"),
        ("[ai.anthropic]\n\napi = \"responses\"", 3, "ai.anthropic.api: anthropic has no `api` to choose"),
        ("[ai.openai]\nbase_url = \"nonsense\"", 2, "ai.openai.base_url: "),
        ("[web.search]\nprovider = \"searxng\"", 1, "web.search.url: it is missing"),
        ("[web.search]\nprovider = \"brave\"\nurl = \"x\"", 3, "web.search.url: this is no address"),
        ("[mcp.far]\nurl = \"mcp.example.com\"", 1, "mcp.far: its url is no address"),
        ("[hub]\nallowed_roots = [\"/nowhere/at/all\"]", 2, "hub.allowed_roots: "),
        ("[hub]\nmax_active = 0", 2, "hub.max_active: 0 is too small; write 1 or more"),
        ("[auth]\nrequests_per_minute = 0", 2, "auth.requests_per_minute: 0 is too small"),
        (
            "[[grants]]\nnames = [\"A\"]\nworkspaces = [\"house\"]\nhosts = [\"*\"]",
            3,
            "grants.0.workspaces.0: \"house\" is no id of a workspace",
        ),
    ] {
        std::fs::write(&file, written).unwrap();
        let place = place(line);
        for command_line in [["config", "check"].as_slice(), &["serve", "--json"]] {
            // `serve` refuses these, too; it looks an address up itself, and says so in its own words.
            if command_line[0] == "serve" && told.starts_with("server.listen") {
                continue;
            }
            let args = [command_line, &["--data-dir", data.path().to_str().unwrap()]].concat();
            let output = command(&args).output().unwrap();
            let why = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{written}: {why}");
            assert!(why.contains(&place) && why.contains(told), "{written}: {why}");
            assert!(!why.contains("short-secret"), "{why}");
        }
    }
    let check = ["config", "check", "--data-dir", data.path().to_str().unwrap()];
    for (written, told) in [
        (
            "[server]\nlisten = 5\ndrain_seconds = \"x\"\n[nowhere]\nx = 1",
            ["2: server.listen", "3: server.drain_seconds", "4: nowhere"],
        ),
        (
            "[server]\nlisten = \"127.0.0.1\"\n[webhooks]\nsecret = \"short-secret\"\n[ai]\nmodel = \"opnai/gpt-5\"",
            ["2: server.listen", "4: webhooks.secret", "6: ai.model"],
        ),
    ] {
        std::fs::write(&file, written).unwrap();
        let output = command(&check).output().unwrap();
        let why = text(&output.stderr);
        let tells_all = told.iter().all(|fault| why.contains(&format!("buildscale.toml, line {fault}: ")));
        assert!(output.status.code() == Some(1) && tells_all && !why.contains("short-secret"), "{why}");
    }
    std::fs::write(&file, "[server]\nlisten = \"localhost:8686\"\n[ai.limits]\nmax_cost_usd = 0\n").unwrap();
    let output = command(&["config", "check", "--data-dir", data.path().to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_check_notes_keys_without_an_effect_and_a_list_shows_the_values_in_force() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("buildscale.toml");
    let run = |args: &[&str], environment: &[(&str, &str)]| {
        let args = [args, &["--json", "--data-dir", data.path().to_str().unwrap()]].concat();
        let output = command(&args).envs(environment.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    std::fs::write(&file, "[web.search]\nurl = \"https://a.example\"\n[ai.openai]\nbase_url = \"http://file/v1\"\n")
        .unwrap();
    let checked = run(&["config", "check"], &[]);
    let told = format!("{}, line 2: web.search.url: it has no effect: ", file.display());
    let notes = checked["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().is_some_and(|note| note.starts_with(&told))), "{checked}");

    let value = |environment: &[(&str, &str)]| {
        let shown = run(&["config", "show"], environment);
        let of_key = |one: &&Value| one["key"] == "ai.openai.base_url";
        let shown: Vec<Value> = shown["settings"].as_array().unwrap().iter().filter(of_key).cloned().collect();
        assert_eq!(shown.len(), 1, "{shown:?}");
        (shown[0]["value"].as_str().unwrap().to_owned(), shown[0]["origin"].as_str().unwrap().to_owned())
    };
    let (usual, own) = (("OPENAI_BASE_URL", "http://usual/v1"), ("BUILDSCALE__AI__OPENAI__BASE_URL", "http://own/v1"));
    let expected = |value: &str, origin: &str| (format!("{value:?}"), origin.to_owned());
    assert_eq!(value(&[]), expected("http://file/v1", &format!("{}, line 4", file.display())));
    assert_eq!(value(&[usual]), expected("http://usual/v1", usual.0));
    assert_eq!(value(&[usual, own]), expected("http://own/v1", own.0));
}

#[test]
fn pages_of_the_listed_origins_may_call() {
    let folder = tempfile::tempdir().unwrap();
    let origins = [("BUILDSCALE__SERVER__CORS_ORIGINS", "https://app.example,http://localhost:5173")];
    let hub = Hub::start(folder.path(), ANYWHERE, &origins);
    let allowed = |origin: &str| {
        let answer = answer(&hub.address, "/api/v1/models", &format!("origin: {origin}\r\n")).unwrap();
        answer.to_lowercase().contains(&format!("access-control-allow-origin: {origin}\r\n"))
    };
    assert!(allowed("https://app.example") && allowed("http://localhost:5173"));
    assert!(!allowed("https://other.example"));
}

#[test]
fn a_doctor_names_the_faults() {
    let (folder, hub) = hub();
    let args = ["doctor", "--json", "--data-dir", folder.path().to_str().unwrap()];
    let well: Value = serde_json::from_slice(&hub.run(&args).stdout).unwrap();
    assert_eq!(well["ok"], true, "{well}");
    let model = well["checks"].as_array().unwrap().iter().find(|check| check["what"] == "model").unwrap();
    assert!(model["state"] == "note" && model["why"].as_str().unwrap().contains("demo script"), "{well}");
    let output = hub.command(&args).env("BUILDSCALE_URL", "http://127.0.0.1:1").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let ill: Value = serde_json::from_slice(&output.stdout).unwrap();
    let states = |of: &str| {
        let checks = ill["checks"].as_array().unwrap().iter().filter(|check| check["what"] == of);
        checks.map(|check| check["state"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((&ill["ok"], states("hub").as_slice()), (&Value::Bool(false), ["wrong"].as_slice()), "{ill}");
    assert_eq!(states("commands").len(), 1, "{ill}");
}

#[test]
fn manual_pages_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let page = command(&["man"]).output().unwrap();
    assert!(text(&page.stdout).to_lowercase().contains(".th buildscale"), "{}", text(&page.stdout));
    assert!(command(&["man", folder.path().to_str().unwrap()]).status().unwrap().success());
    assert!(folder.path().join("buildscale-chat.1").exists());
}

#[test]
fn a_guarded_hub_says_how_it_is_called() {
    use std::io::{BufRead, BufReader};
    let data = tempfile::tempdir().unwrap();
    let args = ["serve", "--listen", ANYWHERE, "--data-dir", data.path().to_str().unwrap()];
    let mut serve = command(&args);
    serve.env("BUILDSCALE__SERVER__AUTH_TOKEN", "the token of this test").stdout(std::process::Stdio::piped());
    let mut process = serve.stderr(std::process::Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said = announced(lines);
    let _ = process.kill();
    let _ = process.wait();
    let said = said.join("\n");
    assert!(
        said.contains("export BUILDSCALE_TOKEN=") && said.contains("authorization: Bearer $BUILDSCALE_TOKEN"),
        "{said}"
    );
    assert!(!said.contains("the token of this test"), "{said}");
}

/// Lines up to the one with `curl`, which is the last.
fn announced(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut told = Vec::new();
    for line in lines {
        let last = line.contains("curl");
        told.push(line);
        if last {
            break;
        }
    }
    told
}

#[test]
fn logs_are_json_unless_text_is_wanted() {
    let data = tempfile::tempdir().unwrap();
    for (format, expected) in [("json", "{\"timestamp\""), ("text", " WARN ")] {
        let args = ["serve", "--listen", "0.0.0.0:0", "--data-dir", data.path().to_str().unwrap()];
        let output = command(&args).env("BUILDSCALE_LOG_FORMAT", format).env("BUILDSCALE_LOGS", "x").output().unwrap();
        let said = text(&output.stderr);
        let line = said.lines().find(|line| line.contains("BUILDSCALE_LOGS means nothing")).unwrap_or_default();
        assert!(line.contains(expected), "{format}: {said}");
    }
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().to_str().unwrap();
    std::fs::write(data.path().join("buildscale.toml"), "[ai]\ncontext_tokens = 7\n").unwrap();
    let keys = ["BUILDSCALE__SERVER__LISTEN", "BUILDSCALE__AI__CONTEXT_TOKENS", "BUILDSCALE__OBSERVE__ALLOW_PRIVATE"];
    let empty = |args: &[&str]| command(args).envs(keys.map(|key| (key, ""))).output().unwrap();
    let checked = empty(&["config", "check", "--data-dir", folder]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stderr));
    let shown = empty(&["config", "show", "--json", "--data-dir", folder]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let settings = shown["settings"].as_array().unwrap();
    assert_eq!(settings.len(), 1, "{shown}");
    assert_eq!((&settings[0]["key"], &settings[0]["value"]), (&"ai.context_tokens".into(), &"7".into()), "{shown}");

    let (folder, hub) = hub();
    let own = ["BUILDSCALE_WORKSPACE", "BUILDSCALE_TOKEN", "BUILDSCALE_DATA_DIR"].map(|name| (name, ""));
    let ran = |args: &[&str]| {
        let output = hub.command(args).current_dir(folder.path()).envs(own).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    };
    ran(&["workspaces", "create", "one"]);
    ran(&["chats"]);
    ran(&["files", "ls", "/"]);
    // The data folder is then the one that has its name by default.
    ran(&["config", "show"]);
}
