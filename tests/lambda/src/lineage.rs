//! How Lambda finds a function that calls itself: each message that a function sends carries the header of its trace, and in there how
//! often each function was entered on the way. <https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html>

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

/// How often a function may be entered in one chain where its `RecursiveLoop` is `Terminate`.
const LONGEST: u32 = 16;
const TRACE: &str = "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0";

/// Lambda's reaction to a chain that enters a function too often: the function's `RecursiveLoop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecursiveLoop {
    Allow,
    Terminate,
}

/// How often each function was entered, by a digest of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lineage(BTreeMap<String, u32>);

impl Lineage {
    /// Of the messages of a batch, by their trace headers: the longest of their chains.
    pub(crate) fn of<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        let mut entered = BTreeMap::new();
        let lists =
            headers.into_iter().flat_map(|header| header.split(';')).filter_map(|part| part.strip_prefix("Lineage="));
        for (function, count) in lists.flat_map(|list| list.split('|')).filter_map(|one| one.split_once(':')) {
            let longest: &mut u32 = entered.entry(function.to_owned()).or_default();
            *longest = count.parse().unwrap_or(0).max(*longest);
        }
        Self(entered)
    }

    /// After this function was entered once more.
    pub(crate) fn entering(mut self, function: &str) -> Self {
        *self.0.entry(short(function)).or_default() += 1;
        self
    }

    pub(crate) fn is_too_long(&self, function: &str) -> bool {
        self.0.get(&short(function)).is_some_and(|count| *count > LONGEST)
    }

    /// The header that an invocation is given.
    pub(crate) fn trace(&self) -> String {
        let mut trace = TRACE.to_owned();
        for (n, (function, count)) in self.0.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(trace, "{}{function}:{count}", if n == 0 { ";Lineage=" } else { "|" });
        }
        trace
    }
}

fn short(function: &str) -> String {
    let mut hasher = DefaultHasher::new();
    function.hash(&mut hasher);
    format!("{:08x}", hasher.finish() >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_counted_by_function_and_is_too_long_after_sixteen() {
        let mut trace = TRACE.to_owned();
        for hop in 1..=17 {
            let lineage = Lineage::of([trace.as_str()]).entering("worker");
            assert_eq!(lineage.is_too_long("worker"), hop > 16, "{trace}");
            assert!(!lineage.is_too_long("timer"), "{trace}");
            trace = lineage.entering("timer").trace();
        }
    }

    #[test]
    fn of_a_batch_the_longest_chain_counts() {
        let [short, long] = [2, 5].map(|hops| {
            let chain = (0..hops).fold(Lineage::default(), |chain, _| chain.entering("worker"));
            chain.trace()
        });
        assert_eq!(Lineage::of([long.as_str(), &short]), Lineage::of([short.as_str(), &long]));
        assert_eq!(Lineage::of([long.as_str(), &short]), Lineage::of([long.as_str()]));
        assert_eq!(Lineage::of([TRACE, "Lineage=odd", ""]), Lineage::default());
    }
}
