//! The field's usual names for tools and their arguments, as our built-in tools have them (spec 002 §5).

use serde_json::{Map, Value, json};

/// A built-in tool, and its names elsewhere.
const NAMES: [(&str, &[&str]); 39] = [
    ("ls", &["list_dir", "list_directory", "list_files", "listdir", "dir"]),
    ("glob", &["glob_files", "glob_search", "file_search", "find_files"]),
    ("read", &["read_file", "file_read", "open_file", "view_file", "get_file", "load_file", "view"]),
    ("grep", &["search", "search_files", "search_text", "grep_search", "search_content", "ripgrep", "rg"]),
    ("edit", &["edit_file", "file_edit", "str_replace", "replace_in_file", "apply_edit", "search_replace"]),
    ("write", &["write_file", "file_write", "create_file", "save_file", "write_to_file"]),
    ("mkdir", &["make_dir", "make_directory", "create_dir", "create_directory", "create_folder", "makedirs"]),
    ("mv", &["move_file", "rename_file", "move", "rename"]),
    ("rm", &["delete_file", "remove_file", "delete", "remove", "unlink"]),
    ("cat", &["show_files", "concat_files"]),
    ("find", &["find_by_name", "search_by_name"]),
    ("file_info", &["stat", "stat_file", "get_file_info"]),
    ("read_many", &["read_files", "read_multiple_files", "read_many_files"]),
    ("ask_user", &["ask", "ask_human", "human_input", "ask_question"]),
    ("plan_write", &["write_plan", "create_plan"]),
    ("plan_update_step", &["update_plan", "update_plan_step"]),
    ("tag", &["add_tag", "tag_file"]),
    ("link", &["add_link", "link_files"]),
    ("related", &["related_files", "backlinks"]),
    ("list_tasks", &["get_tasks"]),
    ("get_task_details", &["get_task"]),
    ("search_projects", &["list_projects"]),
    ("get_project_details", &["get_project"]),
    ("search_notes", &["list_notes"]),
    ("get_note_details", &["get_note"]),
    ("get_calendar_events", &["list_events", "get_events"]),
    ("find_available_slots", &["find_free_slots"]),
    ("search_brain_dumps", &["list_brain_dumps"]),
    ("get_brain_dump_details", &["get_brain_dump"]),
    ("get_field_info", &["describe_fields"]),
    ("create_project", &["add_project"]),
    ("update_project", &["edit_project"]),
    ("create_task", &["add_task"]),
    ("update_task", &["edit_task"]),
    ("schedule_task", &["plan_task"]),
    ("create_note", &["add_note"]),
    ("create_brain_dump", &["add_brain_dump"]),
    ("import_calendar", &["import_ics"]),
    ("export_calendar", &["export_ics"]),
];

/// An argument, and its names elsewhere.
type Names = (&'static str, &'static [&'static str]);

const PATH: Names = ("path", &["file_path", "filepath", "filename", "file_name", "file", "target_file"]);
const FOLDER: Names = ("path", &["directory", "dir", "dir_path", "folder", "root", "target_directory", "cwd"]);
const CONTENT: Names = ("content", &["contents", "text", "data", "body", "file_text", "code"]);
const PATTERN: Names = ("pattern", &["query", "regex", "text", "term", "search", "glob_pattern"]);
const FROM: Names = ("from", &["source", "src", "old_path", "path"]);
const TO: Names = ("to", &["destination", "dest", "dst", "target", "new_path"]);

/// The built-in tool that an entry point means, such as `read` for `filesystem:read_file`; none when it means none. The
/// module does not count: the modules of other systems are one set of tools here. A registered function of this
/// name goes first; that is for the caller to look up.
pub fn alias(entrypoint: &str) -> Option<&'static str> {
    let name = entrypoint.rsplit([':', '.', '/']).next()?;
    NAMES.iter().find(|(ours, theirs)| *ours == name || theirs.contains(&name)).map(|(ours, _)| *ours)
}

/// The names of the built-in tools.
pub fn builtin() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(ours, _)| *ours)
}

/// Every name that [`alias`] knows, for faults that list the choices.
pub fn known() -> impl Iterator<Item = &'static str> {
    NAMES.iter().flat_map(|(ours, theirs)| std::iter::once(*ours).chain(theirs.iter().copied()))
}

/// Arguments by their usual names as our tool has them. An argument that has our name already stays, and so does an
/// unknown one: the tool reports it.
pub fn arguments(tool: &str, mut args: Map<String, Value>) -> Map<String, Value> {
    let names: &[Names] = match tool {
        "read" | "edit" | "rm" | "file_info" | "tag" | "related" => &[PATH],
        "plan_write" | "plan_update_step" => &[PATH],
        "ls" | "mkdir" => &[FOLDER, PATH],
        "write" => &[PATH, CONTENT],
        "glob" => &[PATTERN, FOLDER],
        "grep" => &[PATTERN, FOLDER, PATH],
        "find" => &[("name", &["pattern", "query", "glob"]), FOLDER],
        "mv" | "link" => &[FROM, TO],
        "cat" => &[("paths", &["files", "file_paths"])],
        _ => &[],
    };
    for (ours, theirs) in names {
        if args.contains_key(*ours) {
            continue;
        }
        if let Some(name) = theirs.iter().find(|name| args.contains_key(**name))
            && let Some(value) = args.shift_remove(*name)
        {
            args.insert((*ours).into(), value);
        }
    }
    match tool {
        "edit" => block(&mut args),
        "read_many" => files(&mut args),
        _ => {}
    }
    args
}

/// One replacement, written flat, as a list of one.
fn block(args: &mut Map<String, Value>) {
    if args.contains_key("edits") {
        return;
    }
    let mut take = |names: [&str; 4]| names.into_iter().find_map(|name| args.shift_remove(name));
    let old = take(["old_string", "old_str", "old", "search"]);
    let new = take(["new_string", "new_str", "new", "replace"]);
    if let (Some(old), Some(new)) = (old, new) {
        let mut block = json!({ "old": old, "new": new });
        if let Some(all) = args.shift_remove("replace_all") {
            block["replace_all"] = all;
        }
        args.insert("edits".into(), json!([block]));
    }
}

/// Paths alone, as files to read from their beginning.
fn files(args: &mut Map<String, Value>) {
    if !args.contains_key("files")
        && let Some(paths) = ["paths", "file_paths"].into_iter().find_map(|name| args.shift_remove(name))
    {
        args.insert("files".into(), paths);
    }
    if let Some(Value::Array(files)) = args.get_mut("files") {
        for file in files.iter_mut().filter(|file| file.is_string()) {
            *file = json!({ "path": file.take() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_usual_names_are_bound_to_our_tools() {
        for (entrypoint, expected) in [
            ("read_file", Some("read")),
            ("agent_engine.tools.filesystem:write_file", Some("write")),
            ("fs:list_dir", Some("ls")),
            ("tools.search", Some("grep")),
            ("glob", Some("glob")),
            ("plan_update_step", Some("plan_update_step")),
            ("my:launch_missiles", None),
            ("", None),
        ] {
            assert_eq!(alias(entrypoint), expected, "{entrypoint}");
        }
        let mut names: Vec<&str> = known().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a name means one tool");
    }

    #[test]
    fn s5_every_alias_leads_to_a_tool_that_there_is() {
        let registry = tools::Registry::builtin();
        for (ours, _) in NAMES {
            assert!(registry.kind(ours).is_some(), "{ours}");
        }
        assert_eq!(registry.specs().len() + registry.optional().len(), NAMES.len(), "every tool has its line");
    }

    #[test]
    fn s5_arguments_have_our_names_afterwards() {
        let check = |tool: &str, args: Value, expected: Value| {
            let Value::Object(args) = args else { panic!("an object") };
            assert_eq!(Value::Object(arguments(tool, args)), expected, "{tool}");
        };
        check("read", json!({"file_path": "/a", "limit": 3}), json!({"limit": 3, "path": "/a"}));
        check("read", json!({"path": "/a", "file": "/b"}), json!({"path": "/a", "file": "/b"}));
        check("write", json!({"filename": "/a", "text": "x"}), json!({"path": "/a", "content": "x"}));
        check("ls", json!({"directory": "/d"}), json!({"path": "/d"}));
        check("grep", json!({"query": "x", "dir": "/d"}), json!({"pattern": "x", "path": "/d"}));
        check("mv", json!({"src": "/a", "dst": "/b"}), json!({"from": "/a", "to": "/b"}));
        check(
            "edit",
            json!({"file": "/a", "old_string": "x", "new_string": "y", "replace_all": true}),
            json!({"path": "/a", "edits": [{"old": "x", "new": "y", "replace_all": true}]}),
        );
        check("read_many", json!({"paths": ["/a", "/b"]}), json!({"files": [{"path": "/a"}, {"path": "/b"}]}));
        check("ask_user", json!({"questions": []}), json!({"questions": []}));
    }
}
