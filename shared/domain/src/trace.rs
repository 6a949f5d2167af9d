//! A place in a distributed trace, in the form of W3C Trace Context (`traceparent`), and the ids that spans of ours have.
//!
//! Ids of spans are derived from the names of their subjects, so that all makers of a span give it the same id, each time.

use crate::{NodeId, Sha256, TaskId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr};

/// The trace that something belongs to, and the span that it is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace; never 0.
    pub trace_id: u128,
    /// The span above; never 0.
    pub span_id: u64,
    /// Whether the caller records the trace. A trace that its caller does not record is not sent to a collector.
    pub sampled: bool,
}

/// A text that is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no traceparent of W3C Trace Context")]
pub struct NoTraceContext;

impl TraceContext {
    /// The same trace, one span further down.
    #[must_use]
    pub fn below(self, span_id: u64) -> Self {
        Self { span_id, ..self }
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

impl FromStr for TraceContext {
    type Err = NoTraceContext;

    fn from_str(text: &str) -> Result<Self, NoTraceContext> {
        let mut parts = text.split('-');
        let mut hex = |length: usize| {
            let part = parts.next().filter(|part| part.len() == length)?;
            let is_hex = part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
            u128::from_str_radix(part, 16).ok().filter(|_| is_hex)
        };
        let read = (hex(2), hex(32), hex(16), hex(2));
        let (Some(version), Some(trace_id), Some(span_id), Some(flags)) = read else { return Err(NoTraceContext) };
        // Later versions may have more parts; the first one has not, and ff is none.
        let has_more = parts.next().is_some();
        if version == 0xff || (version == 0 && has_more) || trace_id == 0 || span_id == 0 {
            return Err(NoTraceContext);
        }
        let span_id = u64::try_from(span_id).map_err(|_| NoTraceContext)?;
        Ok(Self { trace_id, span_id, sampled: flags & 1 == 1 })
    }
}

impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// The id of the span that is about what has this name.
pub fn span_id(name: &str) -> u64 {
    let digest = Sha256::of(name.as_bytes()).to_string();
    let id = digest.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok()).unwrap_or_default();
    id.max(1)
}

/// The id of the span of a node of a task.
pub fn node_span(task: TaskId, node: &NodeId) -> u64 {
    span_id(&format!("{task}/{node}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_as_the_recommendation_says() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context: TraceContext = text.parse().expect("the example of the recommendation");
        let expected = TraceContext {
            trace_id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            span_id: 0x00f0_67aa_0ba9_02b7,
            sampled: true,
        };
        assert_eq!((context, context.to_string().as_str()), (expected, text));
        let unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-02".parse::<TraceContext>();
        assert_eq!(unsampled.map(|context| context.sampled), Ok(false));
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more".parse::<TraceContext>();
        assert_eq!(later, Ok(expected));
        for wrong in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47+6-00f067aa0ba902b7-01",
        ] {
            assert_eq!(wrong.parse::<TraceContext>(), Err(NoTraceContext), "{wrong}");
        }
    }
}
