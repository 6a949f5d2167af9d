//! Attempts whose answer was lost.

use aws_smithy_runtime_api::{
    box_error::BoxError,
    client::{
        interceptors::{Intercept, context::FinalizerInterceptorContextRef},
        runtime_components::RuntimeComponents,
    },
};
use aws_smithy_types::config_bag::ConfigBag;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Notices attempts whose answer was lost.
///
/// The SDK repeats such a request by itself. If the first attempt had its effect, the second fails on the condition that the first made
/// false: an answer that says "somebody else wrote" about ourselves. So a failed condition counts only when every attempt before it was
/// answered.
#[derive(Clone, Debug, Default)]
pub(super) struct LostAnswers(Arc<AtomicBool>);

impl LostAnswers {
    /// Whether some attempt may have had its effect without saying so.
    pub(super) fn any(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Intercept for LostAnswers {
    fn name(&self) -> &'static str {
        "LostAnswers"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        // Only an answer of 4xx says that nothing was done.
        let was_refused = context.response().is_some_and(|answer| answer.status().is_client_error());
        let failed = context.output_or_error().is_none_or(|outcome| outcome.is_err());
        if failed && !was_refused {
            self.0.store(true, Ordering::Release);
        }
        Ok(())
    }
}
