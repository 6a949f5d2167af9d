//! The arguments of `buildscale files`.

use super::Connection;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct FilesArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id [default: the first one]
    #[arg(long, short, global = true, env = "BUILDSCALE_WORKSPACE", value_name = "WORKSPACE")]
    pub(crate) workspace: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<FilesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FilesCommand {
    /// List a folder (`files` alone lists the uppermost one)
    Ls {
        /// The folder
        #[arg(default_value = "/")]
        path: String,
        /// List the trash instead
        #[arg(long, conflicts_with = "path")]
        trash: bool,
        /// Show versions, sizes, times, authors, and how far documents are converted
        #[arg(long, short)]
        long: bool,
        /// List the Markdown of documents, too
        #[arg(long, short, conflicts_with = "trash")]
        all: bool,
    },
    /// Print a file's content
    Cat {
        /// The path in the workspace
        path: String,
        /// A version before the current one
        #[arg(long, value_name = "N")]
        version: Option<u64>,
    },
    /// Write a file: a new one, or a new version
    Put {
        /// A file here, or - for standard input
        local: PathBuf,
        /// The path in the workspace; one that ends in / keeps the file's name
        path: String,
        /// Only when the current version is still this one; 0 when there must be none
        #[arg(long, value_name = "N")]
        if_version: Option<u64>,
    },
    /// Bring a file, or a folder with all in it, to this machine
    Get {
        /// The path in the workspace
        path: String,
        /// The destination: a file, a folder, or - for standard output [default: its name, here]
        local: Option<PathBuf>,
    },
    /// Show the changes between two versions of a file, or from the workspace to a file or folder here
    ///
    /// Of a folder here, files and folders whose names begin with a dot are left out where the workspace has none such, and links.
    Diff {
        /// The path in the workspace
        path: String,
        /// A file or folder here, which is compared with the current version
        #[arg(conflicts_with_all = ["from", "to"])]
        local: Option<PathBuf>,
        /// The older version [default: the one before the newer one]
        #[arg(long, value_name = "N")]
        from: Option<u64>,
        /// The newer version [default: the current one]
        #[arg(long, value_name = "N")]
        to: Option<u64>,
    },
    /// Make a folder of the workspace equal to one here: each file that differs gets a new version
    ///
    /// Files and folders whose names begin with a dot are left out, and links.
    Sync {
        /// A folder here
        local: PathBuf,
        /// The folder of the workspace [default: its name, below /projects]
        path: Option<String>,
        /// Put files of the workspace that are not here into the trash
        #[arg(long)]
        delete: bool,
        /// Only list the changes, and make none
        #[arg(long)]
        dry_run: bool,
    },
    /// List a file's versions, newest first
    History {
        /// The path in the workspace
        path: String,
    },
    /// List the changes of files by anybody, newest first; they are kept for 30 days
    Changes {
        /// Only at or below this path
        #[arg(default_value = "/")]
        path: String,
        /// Only by this author, such as agent:assistant
        #[arg(long, value_name = "AUTHOR")]
        author: Option<String>,
        /// Only of this kind: made, written, moved, removed, restored, purged, converted or marked
        #[arg(long, value_name = "KIND")]
        op: Option<String>,
        /// Only at this time or later, such as 2026-01-31T12:00:00Z
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only before this time
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
        /// At most this many
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// Make an old version the current one, or bring a file back from the trash
    Restore {
        /// The path in the workspace
        path: String,
        /// The version; without it, the file that was removed last from this path comes back from the trash
        #[arg(long, value_name = "N")]
        version: Option<u64>,
    },
    /// Move or rename; versions and links stay
    Mv {
        /// The current path
        from: String,
        /// The new path
        to: String,
    },
    /// Put files or folders into the trash
    Rm {
        /// The paths in the workspace
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Give a file or folder tags
    Tag {
        /// The path in the workspace
        path: String,
        /// The tags, such as status:open
        #[arg(required = true)]
        tags: Vec<String>,
    },
    /// Take tags off a file or folder
    Untag {
        /// The path in the workspace
        path: String,
        /// The tags
        #[arg(required = true)]
        tags: Vec<String>,
    },
    /// Link a file or folder to another one
    Link {
        /// The path at which the link begins
        from: String,
        /// The path to which it leads
        to: String,
        /// The kind: implements, answers, derived_from, or a word of your own
        #[arg(long, short, default_value = "relates_to")]
        kind: String,
        /// Remove the link instead
        #[arg(long)]
        remove: bool,
    },
    /// Show a file's tags, the links from it and the links to it
    Links {
        /// The path in the workspace
        path: String,
    },
}
