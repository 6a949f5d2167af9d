//! The context assembler (spec 002 §4): candidates from the layers, put in an order, cut to a budget of tokens.

use super::{
    GLOBAL_TOKENS, Memory, Scope,
    store::{Newest, StoredItem},
};
use domain::{
    Code, Error, WorkspaceId,
    task::{AssembledContext, ContextItem},
};
use flow::flow::{ContextUse, Profile, Retrieval, Source, StoreKind};
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeSet};

/// How much of a store is considered, newest first.
const CONSIDERED: usize = 1000;
const CONSIDERED_BYTES: usize = 8 * 1024 * 1024;
/// The constant of reciprocal rank fusion: how little the very first places count more than those after them.
const FUSION: f64 = 60.0;

struct Candidate {
    store: StoreKind,
    kept: StoredItem,
}

impl Memory {
    /// The context of a node. `query` is the text that `semantic` and `hybrid` rank by.
    ///
    /// Items are whole or left out; the nearest come first; of the same order the same items come every time. `left_out` counts
    /// items that matched and did not fit, and one more for each store that was not looked at to its end.
    ///
    /// # Errors
    /// `NOT_FOUND` for a profile that there is not; the store's and the ranker's own.
    pub async fn assemble(
        &self,
        scope: &Scope,
        memory: &flow::flow::Memory,
        context: &ContextUse,
        query: &str,
    ) -> Result<AssembledContext, Error> {
        let profile: Cow<'_, Profile> = match context {
            ContextUse::None => return Ok(AssembledContext::default()),
            ContextUse::Global => Cow::Owned(everything()),
            ContextUse::Profile(name) => {
                let profile = memory.profiles.get(name);
                Cow::Borrowed(profile.ok_or_else(|| Error::not_found("context profile", name))?)
            }
        };
        let (candidates, cut) = self.candidates(scope, memory, &profile.sources).await?;
        let order = self.order(scope.workspace, profile.policy, &candidates, query).await?;
        let mut context = AssembledContext { profile: profile.id.clone(), ..AssembledContext::default() };
        context.left_out = cut;
        let mut slots: Vec<Option<Candidate>> = candidates.into_iter().map(Some).collect();
        for position in order {
            let Some(candidate) = slots.get_mut(position).and_then(Option::take) else { continue };
            let item: ContextItem = candidate.kept.into_item(candidate.store);
            if context.tokens + item.tokens <= profile.max_tokens {
                context.tokens += item.tokens;
                context.items.push(item);
            } else {
                context.left_out += 1;
            }
        }
        Ok(context)
    }

    /// The items of the sources, newest first; of one moment the nearer layer first, then by key. And the number of stores that have more.
    async fn candidates(
        &self,
        scope: &Scope,
        memory: &flow::flow::Memory,
        sources: &[Source],
    ) -> Result<(Vec<Candidate>, u32), Error> {
        let (mut candidates, mut cut) = (Vec::new(), 0);
        for store in StoreKind::ALL {
            let of_store: Vec<&Source> = sources.iter().filter(|source| source.store == store).collect();
            if of_store.is_empty() {
                continue;
            }
            let kept = memory.stores.get(&store).and_then(|bounds| bounds.max_items);
            let most = kept.map_or(CONSIDERED, |kept| kept.min(CONSIDERED));
            let Newest { items, more } = self.newest(scope, store, most, CONSIDERED_BYTES).await?;
            // No item beyond the bounds of a store counts, also if it is still to be deleted.
            cut += u32::from(more && kept.is_none_or(|kept| items.len() < kept));
            let wanted = |kept: &StoredItem| {
                let matches =
                    |source: &&Source| source.tags.is_empty() || source.tags.iter().any(|tag| kept.tags.contains(tag));
                of_store.iter().any(matches)
            };
            candidates.extend(items.into_iter().filter(wanted).map(|kept| Candidate { store, kept }));
        }
        // Stable: stores came in the order of the layers, their items in order.
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.kept.at));
        Ok((candidates, cut))
    }

    /// The positions of the candidates, the best first.
    async fn order(
        &self,
        workspace: WorkspaceId,
        policy: Retrieval,
        candidates: &[Candidate],
        query: &str,
    ) -> Result<Vec<usize>, Error> {
        let newest: Vec<usize> = (0..candidates.len()).collect();
        if policy == Retrieval::Recency || candidates.is_empty() {
            return Ok(newest);
        }
        let texts: Vec<String> = candidates.iter().map(text).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let scores = self.ranker.rank(workspace, query, &texts).await?;
        if scores.len() != candidates.len() {
            return Err(Error::new(Code::Internal, "the ranking does not fit what was to be ranked"));
        }
        let mut nearest = newest.clone();
        let score = |position: &usize| scores.get(*position).copied().unwrap_or_default();
        nearest.sort_by(|one, other| score(other).total_cmp(&score(one)));
        if policy == Retrieval::Semantic {
            return Ok(nearest);
        }
        let mut fused = vec![0.0; candidates.len()];
        for (place, (by_time, by_meaning)) in newest.iter().zip(&nearest).enumerate() {
            for position in [by_time, by_meaning] {
                if let Some(sum) = fused.get_mut(*position) {
                    *sum += 1.0 / (FUSION + place as f64 + 1.0);
                }
            }
        }
        let mut order = newest;
        let fused = |position: &usize| fused.get(*position).copied().unwrap_or_default();
        order.sort_by(|one, other| fused(other).total_cmp(&fused(one)));
        Ok(order)
    }
}

/// The profile of `context: global`.
fn everything() -> Profile {
    let sources = StoreKind::ALL.map(|store| Source { store, tags: Vec::new() }).into();
    Profile { id: "global".into(), max_tokens: GLOBAL_TOKENS, policy: Retrieval::Recency, sources }
}

/// The words of an item, for ranking: its key, content and tags.
fn text(candidate: &Candidate) -> String {
    let StoredItem { key, content, tags, .. } = &candidate.kept;
    let content = match content {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let tags: BTreeSet<&String> = tags.iter().collect();
    let tags: Vec<&str> = tags.into_iter().map(String::as_str).collect();
    format!("{key} {} {content}", tags.join(" "))
}
