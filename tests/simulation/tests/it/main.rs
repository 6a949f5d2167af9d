//! Scenarios of people and chats, under every crash and under thousands of schedules.
#![expect(clippy::unwrap_used, reason = "tests")]

mod calm;
mod crashes;
mod seeds;

/// Says nothing of the panics that scenarios ask for.
fn quiet() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload().downcast_ref::<&str>() != Some(&"poison") {
                usual(panic);
            }
        }));
    });
}
