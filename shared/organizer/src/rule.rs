//! Rules by which something comes again (RFC 5545 §3.3.10).

use crate::clock::{self, Moment, Tz, local};
use domain::Error;
use rrule::RRuleSet;

/// The longest rule, in bytes.
const MAX_RULE: usize = 300;

/// A rule as it is kept: in capitals, without its name.
///
/// # Errors
/// `INVALID_ARGUMENT` about `field` for a rule that is none, is too long, or comes more often than once a day.
pub fn check_rule(field: &str, rule: &str) -> Result<String, Error> {
    let wrong = |why: String| {
        Err(Error::invalid(field, format!("this is no rule of a calendar: {why}"))
            .hint("a rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO,WE or FREQ=MONTHLY;BYMONTHDAY=1;COUNT=12"))
    };
    let rule = rule.trim().to_uppercase();
    let rule = rule.strip_prefix("RRULE:").unwrap_or(&rule);
    if rule.is_empty() || rule.len() > MAX_RULE {
        return wrong(format!("it has 1 to {MAX_RULE} characters"));
    }
    // No other line of a calendar can stand in it.
    if !rule.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '=' | ';' | ',' | '+' | '-')) {
        return wrong("it has letters, digits and =;,+- alone".into());
    }
    let often = rule.split(';').find_map(|part| part.strip_prefix("FREQ="));
    if !matches!(often, Some("DAILY" | "WEEKLY" | "MONTHLY" | "YEARLY")) {
        return wrong("FREQ is DAILY, WEEKLY, MONTHLY or YEARLY".into());
    }
    // Times of the day come from the start, and a search day by day for a day of the year takes seconds.
    let rare: &[&str] = match often {
        Some("DAILY" | "WEEKLY") => &["BYHOUR", "BYMINUTE", "BYSECOND", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO"],
        _ => &["BYHOUR", "BYMINUTE", "BYSECOND"],
    };
    if let Some(part) = rule.split(';').find(|part| rare.iter().any(|name| part.split('=').next() == Some(name))) {
        return wrong(format!("{part} is not taken here"));
    }
    // The library takes it, and never comes to an end.
    if rule
        .split(';')
        .any(|part| part.strip_prefix("INTERVAL=").is_some_and(|every| every.trim_matches('0').is_empty()))
    {
        return wrong("INTERVAL is 1 at least".into());
    }
    let first = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).unwrap_or_default().and_time(chrono::NaiveTime::MIN);
    match set_of(rule, Tz::UTC, first, &[]) {
        Ok(_) => Ok(rule.to_owned()),
        // An end that is before the day of this check is for the start to be compared with.
        Err(error) if rule.contains("UNTIL=") && error.to_lowercase().contains("until") => Ok(rule.to_owned()),
        Err(error) => wrong(error.chars().take(200).collect()),
    }
}

/// The times of a rule from a first one on.
pub(crate) fn set_of(
    rule: &str,
    zone: Tz,
    first: chrono::NaiveDateTime,
    except: &[Moment],
) -> Result<RRuleSet, String> {
    let form = "%Y%m%dT%H%M%S";
    // A rule in a zone ends at a moment in UTC (RFC 5545 §3.3.10); one with a day or a time on the clock means that of its zone.
    let rule = until_in_utc(rule, zone);
    let mut text = format!("DTSTART;TZID={}:{}\nRRULE:{rule}", zone.name(), first.format(form));
    for moment in except {
        let at = match moment {
            // A day takes away the occurrence of that day.
            Moment::Day(day) => day.and_time(first.time()),
            other => other.local(zone),
        };
        text.push_str(&format!("\nEXDATE;TZID={}:{}", zone.name(), at.format(form)));
    }
    text.parse::<RRuleSet>().map_err(|error| error.to_string())
}

/// A rule whose end is a moment in UTC.
fn until_in_utc(rule: &str, zone: Tz) -> String {
    let part = |part: &str| {
        let Some(until) = part.strip_prefix("UNTIL=").filter(|until| !until.ends_with('Z')) else {
            return part.to_owned();
        };
        let at = match chrono::NaiveDate::parse_from_str(until, "%Y%m%d") {
            // The whole day is in it.
            Ok(day) => day.and_hms_opt(23, 59, 59),
            Err(_) => chrono::NaiveDateTime::parse_from_str(until, "%Y%m%dT%H%M%S").ok(),
        };
        match at {
            Some(at) => {
                let utc = local(clock::on_the_clock(zone, at), Tz::UTC);
                format!("UNTIL={}Z", utc.format("%Y%m%dT%H%M%S"))
            }
            None => part.to_owned(),
        }
    };
    rule.split(';').map(part).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn rules_that_are_none_are_refused() {
        assert_eq!(check_rule("rrule", "rrule:freq=weekly;byday=mo").unwrap(), "FREQ=WEEKLY;BYDAY=MO");
        assert!(check_rule("rrule", "FREQ=DAILY;UNTIL=20200101").is_ok());
        for wrong in [
            "",
            "FREQ=SECONDLY",
            "FREQ=HOURLY",
            "FREQ=DAILY;BYDAY=XX",
            "FREQ=DAILY;INTERVAL=0",
            "BYDAY=MO",
            "FREQ=DAILY;BYHOUR=1",
            "FREQ=WEEKLY;BYMONTHDAY=3",
            "FREQ=DAILY\nEXDATE:20261201T080000",
            "FREQ=DAILY;EVER=1",
        ] {
            assert!(check_rule("rrule", wrong).is_err(), "{wrong:?}");
        }
    }
}
