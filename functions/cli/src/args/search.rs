//! The arguments of `buildscale search`.

use super::Connection;
use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub struct SearchArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(long, short, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    /// The words: parser "error recovery" lex* +needed; with an unwanted one in quotation marks: 'parser -draft'
    #[arg(required = true, value_name = "QUERY")]
    pub(crate) query: Vec<String>,
    /// Only at or below this path
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// How the query is understood; `regex` matches single lines, `semantic` needs an embedding model
    #[arg(long, value_enum, default_value_t = SearchModeArg::Text)]
    pub(crate) mode: SearchModeArg,
    /// Only this kind of files; can be repeated
    #[arg(long = "kind", value_enum, value_name = "KIND")]
    pub(crate) kinds: Vec<SearchKindArg>,
    /// Only versions by this author, such as user:ID
    #[arg(long, value_name = "AUTHOR")]
    pub(crate) author: Option<String>,
    /// Only files that have this tag
    #[arg(long)]
    pub(crate) tag: Option<String>,
    /// Only files that were written then or later, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,
    /// Only files that were written before
    #[arg(long, value_name = "TIME")]
    pub(crate) before: Option<String>,
    /// At most this many files
    #[arg(long, short = 'n', default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) limit: u8,
}

/// How a query is understood.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SearchModeArg {
    /// By its words, best matches first
    Text,
    /// As a regular expression, by path
    Regex,
    /// By its meaning; a hub without an embedding model refuses it
    Semantic,
    /// By words and meaning; without an embedding model by words alone
    Hybrid,
}

/// The kinds of files.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SearchKindArg {
    /// Files
    File,
    /// Documents under /data, by their text
    Document,
    /// Conversations
    Chat,
}
