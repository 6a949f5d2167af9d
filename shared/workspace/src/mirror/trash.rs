//! The entries in the trash of the disk.

use super::{Area, Mirror};
use domain::FileId;
use std::{fs, io};

impl Mirror {
    /// The files and folders in the trash, by their ids. Other names are not of this crate.
    ///
    /// # Errors
    /// Those of [`Mirror`]; a trash that is not there is empty.
    pub(crate) fn in_trash(&self) -> io::Result<Vec<FileId>> {
        let entries = match fs::read_dir(self.home.join(Area::Trash.name())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries {
            found.extend(entry?.file_name().to_str().and_then(|name| name.parse::<FileId>().ok()));
        }
        Ok(found)
    }
}
