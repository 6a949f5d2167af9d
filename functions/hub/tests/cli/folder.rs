//! A chat that works on a folder of the person's machine, through a hub that has no way to that folder.

use crate::support::{ANYWHERE, Hub, text};
use std::fs;

const SCRIPT: &str = "\
rules:
- when: {user: '^fix'}
  steps:
  - {calls: [{tool: client__search_files, args: {pattern: 'te[h]'}}]}
  - {calls: [{tool: client__read_file, args: {path: notes/a.txt}}]}
  - {text: 'I mend it.', calls: [{tool: client__edit_file, args: {path: notes/a.txt, old: teh, new: the}}]}
  - {when: {success: true}, text: 'Mended.', else: {text: 'It stays.'}}
- when: {user: '^count'}
  steps:
  - {calls: [{tool: client__run_command, args: {command: 'wc -l < notes/a.txt; env'}}]}
  - {text: 'Counted.'}
- steps:
  - {calls: [{tool: client__read_file, args: {path: ../secret}}]}
  - {when: {success: true}, text: 'I have read it.', else: {text: 'It is out of reach.'}}
";

#[test]
fn a_chat_changes_a_folder_of_this_machine_as_a_person_accepts_it() {
    let (data, outer) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let project = outer.path().join("project");
    fs::write(outer.path().join("secret"), "s").unwrap();
    let script = data.path().join("script.yaml");
    fs::write(&script, SCRIPT).unwrap();
    let settings = [("BUILDSCALE__AI__SCRIPT", script.to_str().unwrap()), ("BUILDSCALE__AI__MODEL", "scripted/script")];
    let hub = Hub::start(data.path(), ANYWHERE, &settings);
    let notes = project.join("notes/a.txt");
    fs::create_dir_all(project.join("notes")).unwrap();
    fs::write(&notes, "one\nteh word\n").unwrap();
    let chat = |goal: &str, answers: &str| {
        let output = hub.run_with_input(&["chat", "--folder", project.to_str().unwrap(), goal], answers);
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };

    let (code, answer, beside) = chat("fix it", "n\n");
    assert_eq!((code, answer.trim()), (Some(0), "It stays."), "{beside}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "one\nteh word\n");
    let (code, answer, beside) = chat("fix it", "y\n");
    assert_eq!((code, answer.trim()), (Some(0), "Mended."), "{beside}");
    assert!(beside.contains("The agent asks to change notes/a.txt:"), "{beside}");
    assert!(beside.contains("\n-teh word\n+the word\n"), "the change is shown: {beside}");
    assert_eq!(fs::read_to_string(&notes).unwrap(), "one\nthe word\n");

    let (code, _, beside) = chat("count", "y\n");
    assert_eq!(code, Some(0), "{beside}");
    let told = text(&hub.run(&["tail", "-", "--after", "0", "--until-idle", "--json"]).stdout);
    assert!(told.contains(r"2\n"), "{told}");
    assert!(!told.contains("BUILDSCALE_URL"), "the settings of the program are none of the agent's");
    assert!(told.contains(r#""category":"command""#), "{told}");

    let (_, answer, _) = chat("look outside", "");
    assert_eq!(answer.trim(), "It is out of reach.");
    let absent = hub.run(&["chat", "--folder", "/nonexistent", "fix it"]);
    assert_eq!(absent.status.code(), Some(2), "{}", text(&absent.stderr));
}
