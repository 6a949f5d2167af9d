//! What a flow can refer to that is not in its folder.

use std::collections::BTreeSet;

/// Checks the syntax of an expression or a template, and says what is wrong with it.
pub type Syntax = fn(&str) -> Result<(), String>;

/// What there is outside of a flow's folder.
#[derive(Clone, Debug)]
pub struct Known {
    /// Built-in tools, by name.
    pub tools: BTreeSet<String>,
    /// Registered Rust functions, `module:function`.
    pub functions: BTreeSet<String>,
    /// Personas of `/system/agents`; none when they are not known here (then none is missed).
    pub personas: Option<BTreeSet<String>>,
    /// Models, `provider/model`, with `provider/*` for all of a provider; none when they are not known here.
    pub models: Option<BTreeSet<String>>,
    /// Whether a CEL expression is one.
    pub expression: Syntax,
    /// Whether a text with `{{expressions}}` is one.
    pub template: Syntax,
}

impl Default for Known {
    /// Nothing but the usual built-in tools; every expression passes.
    fn default() -> Self {
        Self {
            tools: TOOLS.iter().map(|name| (*name).into()).collect(),
            functions: BTreeSet::new(),
            personas: None,
            models: None,
            expression: |_| Ok(()),
            template: |_| Ok(()),
        }
    }
}

impl Known {
    /// The built-in tool that an entry point means: its last part, by its own or a usual name.
    pub(super) fn builtin(&self, entrypoint: &str) -> Option<&str> {
        let name = entrypoint.rsplit([':', '.', '/']).next().unwrap_or(entrypoint);
        let usual = USUAL_NAMES.iter().find(|(_, usual)| usual.contains(&name)).map_or(name, |(own, _)| *own);
        self.tools.get(usual).map(String::as_str)
    }

    /// Whether a model is known here, by `provider/model`.
    pub(super) fn has_model(&self, model: &str) -> bool {
        let Some(models) = &self.models else { return true };
        let any_of = model.split_once('/').map(|(provider, _)| format!("{provider}/*"));
        models.contains(model) || any_of.is_some_and(|any| models.contains(&any))
    }
}

/// The tools that BuildScale comes with.
const TOOLS: &[&str] = &[
    "ls",
    "glob",
    "read",
    "grep",
    "edit",
    "write",
    "mkdir",
    "mv",
    "rm",
    "cat",
    "find",
    "file_info",
    "read_many",
    "plan_write",
    "plan_update_step",
];

/// What others call our tools.
const USUAL_NAMES: &[(&str, &[&str])] = &[
    ("read", &["read_file", "file_read", "get_file"]),
    ("read_many", &["read_files", "read_multiple_files"]),
    ("cat", &["cat_file", "cat_files"]),
    ("write", &["write_file", "file_write", "create_file", "save_file"]),
    ("edit", &["edit_file", "file_edit", "replace_in_file", "str_replace"]),
    ("ls", &["list_dir", "list_directory", "list_files", "list_folder"]),
    ("grep", &["search", "search_files", "search_text", "grep_files", "search_content"]),
    ("glob", &["glob_files", "match_files"]),
    ("find", &["find_files", "find_file"]),
    ("mkdir", &["make_dir", "create_dir", "create_directory", "make_directory"]),
    ("mv", &["move_file", "rename_file", "move"]),
    ("rm", &["delete_file", "remove_file", "delete"]),
    ("file_info", &["stat", "get_file_info", "stat_file"]),
];
