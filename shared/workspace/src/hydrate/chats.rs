//! The files of chats on a disk that is only a cache: brought in line with their logs before they are walked.
//!
//! On such a disk no process appends to them as a chat goes on. To bring one in line costs a query for the end of its log. So that a
//! thousand unchanged chats do not cost a thousand queries, one query comes first: which of them have another
//! [mark](crate::Projector::marks) than when they were last brought in line.

use crate::{
    Result, Workspace,
    cache::{Hydrated, State},
    snapshot::Seen,
};
use domain::{Code, FilePath};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::HashMap;

/// How many are brought in line at once.
const AT_ONCE: usize = 16;

impl Workspace {
    /// Brings these projections in line, as far as the disk is a cache; elsewhere they always are. They stay so, or get newer, for as
    /// long as the answer is held.
    pub(crate) async fn hydrate_chats(&self, paths: Vec<FilePath>) -> Result<Hydrated> {
        let Some(shared) = self.0.shared.upgrade() else { return Ok(Hydrated::default()) };
        let Some(cache) = shared.cache.get() else { return Ok(Hydrated::default()) };
        let kept = cache.of(self.0.id);
        let held = Hydrated::holding(&kept).await;
        let mut state = kept.state.lock().await;
        let look = self.disk("to look at files", move |mirror| {
            let seen = paths.into_iter().map(|path| Ok((path.clone(), mirror.seen(&path)?)));
            seen.collect::<std::io::Result<Vec<_>>>()
        });
        self.project(look.await?, &mut state).await?;
        Ok(held)
    }

    /// Brings those projections in line that are not known to be so; each comes with its state on disk.
    pub(super) async fn project(&self, files: Vec<(FilePath, Option<Seen>)>, state: &mut State) -> Result<()> {
        let Some(projector) = self.0.shared.upgrade().and_then(|shared| shared.projector.get().cloned()) else {
            return Ok(());
        };
        // The marks are read first: an event that comes meanwhile changes the mark. For one file, a refresh costs no more than the query
        // for marks.
        let marks = if files.len() > 1 { projector.marks(self.0.id).await? } else { HashMap::new() };
        let is_in_line = |(path, seen): &(FilePath, Option<Seen>)| {
            let now = marks.get(path).copied().zip(seen.and_then(|seen| seen.stamp));
            now.is_some() && now == state.projected.get(path).copied()
        };
        let behind: Vec<FilePath> = files.into_iter().filter(|file| !is_in_line(file)).map(|(path, _)| path).collect();
        let projector = &projector;
        let mut refreshed = stream::iter(behind)
            .map(|path| async move {
                match projector.refresh(self.0.id, &path).await {
                    // It went away meanwhile.
                    Err(error) if error.code == Code::NotFound => {}
                    done => done?,
                }
                let at = path.clone();
                let seen = self.disk("to look at a file", move |mirror| mirror.seen(&at)).await?;
                Ok::<_, domain::Error>((path, seen.and_then(|seen| seen.stamp)))
            })
            .buffer_unordered(AT_ONCE);
        while let Some((path, stamp)) = refreshed.try_next().await? {
            if let Some(now) = marks.get(&path).copied().zip(stamp) {
                state.projected.insert(path, now);
            }
        }
        Ok(())
    }
}
