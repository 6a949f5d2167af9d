//! The contents of the archive, each compared once with its digest.

use super::{Check, FsckPart};
use crate::{Damage, Result, contents::is_large, damages::is_damage, error};
use domain::{Code, Sha256};

/// How much of a large content is compared at once, in bytes.
const PIECE: u64 = 64 << 20;

impl Check<'_> {
    /// Compares the content of the version at the present place with its digest.
    pub(super) async fn content(&mut self, digest: Sha256, size: u64) -> Result<()> {
        let mut repaired = false;
        let is_good = match self.compared.get(&digest) {
            Some(is_good) => *is_good,
            None => {
                self.done.contents += 1;
                self.done.bytes += size;
                let is_good = self.is_intact(digest, size).await?;
                if !is_good && self.repair {
                    repaired = match self.recover(digest, size).await? {
                        Some(repaired) => repaired,
                        None => match &mut self.later {
                            Some(later) => {
                                later.push((self.at.clone(), digest, size));
                                return Ok(());
                            }
                            None => false,
                        },
                    };
                }
                // A content that was repaired is told of once.
                self.compared.insert(digest, is_good || repaired);
                is_good
            }
        };
        if is_good {
            return Ok(());
        }
        let (code, message) = match self.damage(digest, size).await? {
            _ if repaired => ("content_damaged", "was missing or altered in the archive"),
            Damage::Missing => ("content_missing", "is missing in the archive"),
            Damage::Altered => ("content_damaged", "is not what was written"),
        };
        self.fault(FsckPart::Archive, code, format!("the content {digest} {message}"), repaired);
        Ok(())
    }

    async fn is_intact(&self, digest: Sha256, size: u64) -> Result<bool> {
        let archive = &self.workspace.0.archive;
        if !is_large(size) {
            return archive.is_intact(digest, size, None).await;
        }
        let mut from = 0;
        while from < size {
            let to = (from + PIECE).min(size);
            if !archive.is_intact(digest, size, Some(from..to)).await? {
                return Ok(false);
            }
            from = to;
        }
        Ok(true)
    }

    async fn damage(&self, digest: Sha256, size: u64) -> Result<Damage> {
        let archive = &self.workspace.0.archive;
        if is_large(size) {
            let space = self.workspace.0.id.to_string();
            return match archive.blobs.length(&space, digest).await {
                Ok(None) => Ok(Damage::Missing),
                Ok(Some(_)) | Err(ports::Error::Damaged(_)) => Ok(Damage::Altered),
                Err(error) => Err(error::port(error)),
            };
        }
        Ok(archive.stored(digest, size).await?.err().unwrap_or(Damage::Altered))
    }

    /// Looks at contents once more whose copies could not be looked for before the index was repaired.
    pub(super) async fn contents_left(&mut self) -> Result<()> {
        for (place, digest, size) in self.later.take().unwrap_or_default() {
            self.at = place;
            self.content(digest, size).await?;
        }
        Ok(())
    }

    /// To read it is to repair it. None when an entry that cannot be read was in the way of its copies.
    async fn recover(&self, digest: Sha256, size: u64) -> Result<Option<bool>> {
        let archive = &self.workspace.0.archive;
        let recovered = match is_large(size) {
            true => archive.recover_large(digest, size, Damage::Altered).await,
            false => archive.get(digest, size).await.map(drop),
        };
        match recovered {
            Ok(()) => Ok(Some(true)),
            Err(error) if is_damage(&error) => Ok(Some(false)),
            Err(error) if error.code == Code::Internal => Ok(None),
            Err(error) => Err(error),
        }
    }
}
