//! The reads behind event streams: a deployable that only watches has these, and no way to send a command.

use crate::{Base, Services};
use chat::ChatReader;
use engine::TaskReader;
use ports::{Bus, Clock, Table};
use std::sync::Arc;
use workspace::Workspaces;

/// The states of files, chats and tasks.
#[derive(Clone)]
pub struct Readers {
    /// The logs.
    pub table: Arc<dyn Table>,
    /// The bus.
    pub bus: Arc<dyn Bus>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The files.
    pub workspaces: Workspaces,
    /// The chats.
    pub chats: ChatReader,
    /// The tasks.
    pub tasks: TaskReader,
}

impl Readers {
    /// For a deployable that only watches.
    pub fn new(base: &Base) -> Self {
        Self::over(base, base.workspaces())
    }

    /// Those of a deployable that also sends commands.
    pub fn of(services: &Services) -> Self {
        Self::over(&services.base, services.workspaces.clone())
    }

    fn over(base: &Base, workspaces: Workspaces) -> Self {
        let Base { table, bus, clock, .. } = base.clone();
        let chats = ChatReader::new(table.clone(), workspaces.clone());
        Self { chats, tasks: TaskReader::new(table.clone()), table, bus, clock, workspaces }
    }
}
