//! The files of chats where the disk is only a cache: brought in line with what was said before they are walked.
//!
//! Nobody appends to them there as something is said. To bring one in line is to ask for the end of its log; so that a thousand
//! chats of which nothing was said since do not cost a thousand questions, one question is asked first: which have another
//! [mark](crate::Projector::marks) than they had when they were last brought in line.

use super::{Hydrated, State};
use crate::{Result, Workspace, snapshot::Seen};
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

    /// Brings projections in line, those of which it is not known that they are; with what the disk had of each.
    pub(super) async fn project(&self, files: Vec<(FilePath, Option<Seen>)>, state: &mut State) -> Result<()> {
        let Some(projector) = self.0.shared.upgrade().and_then(|shared| shared.projector.get().cloned()) else {
            return Ok(());
        };
        // Before anything is brought in line: what is said meanwhile changes the mark. To refresh one takes no more than to ask.
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
