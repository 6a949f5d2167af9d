//! Uploads in parts that nobody went on with: their parts are removed. A store that does this by itself, such as S3, has nothing to sweep.

use super::{Sweep, SweepStep};
use async_trait::async_trait;
use domain::Error;
use ports::{Blobs, Clock, UNFINISHED};
use std::sync::Arc;

/// Removes their parts.
pub struct Uploads {
    /// The contents.
    pub blobs: Arc<dyn Blobs>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl Sweep for Uploads {
    fn name(&self) -> &'static str {
        "uploads"
    }

    async fn sweep_page(&self, _from: Option<&str>) -> Result<SweepStep, Error> {
        let count = self.blobs.forget_unfinished(self.clock.now() - UNFINISHED).await.map_err(super::unreachable)?;
        Ok(SweepStep { count, ..SweepStep::default() })
    }
}
