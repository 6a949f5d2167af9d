//! A workspace as a tar archive with its history, and as a stream for Git.
//!
//! An archive has the [layout](layout) of version 2. It is written and read as a stream: memory holds one content of up to [`ports::LARGE`] bytes,
//! or a piece of a larger one, and for each file and each content some ten to a hundred bytes.
//!
//! An export has what exists for its party: the policies decide on each file. An import makes a new workspace, which appears when all of it is there.

mod blocks;
mod export;
mod git;
mod import;
mod layout;
mod relations;
mod rows;
mod workspace_builder;

pub use export::Format;
pub use import::Source;
pub use workspace_builder::Imported;
