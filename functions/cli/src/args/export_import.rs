//! The arguments of `export` and `import`.

use super::Connection;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The workspace, by name or id
    pub(crate) workspace: String,
    /// The file to write; - for standard output
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write a stream for `git fast-import` instead: a commit for each version of each file
    #[arg(long)]
    pub(crate) git: bool,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
    /// The archive, or what `git fast-export` wrote; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The name of the new workspace [default: that in the archive]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The file has the output of `git fast-export BRANCH`
    #[arg(long)]
    pub(crate) git: bool,
    /// The folder that gets the files of the repository [default: /]
    #[arg(long, requires = "git", value_name = "PATH")]
    pub(crate) folder: Option<String>,
}
