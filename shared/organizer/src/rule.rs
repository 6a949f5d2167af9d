//! The rules of entities.

use domain::Error;
use recurrence::rule::{TakenRules, check};

/// A rule as it is kept: in capitals, without its name.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` for a rule that is none, is too long, or comes more often than once a day.
pub fn check_rule(field: &str, rule: &str) -> Result<String, Error> {
    check(rule, TakenRules::ByCalendars).map_err(|why| {
        Error::invalid(field, format!("this is no rule of a calendar: {why}"))
            .hint("a rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO,WE or FREQ=MONTHLY;BYMONTHDAY=1;COUNT=12")
    })
}
