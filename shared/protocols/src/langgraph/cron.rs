//! Cron expressions as rules of iCalendar (RFC 5545 §3.3.10), which schedules have.

use domain::{Error, Timestamp};
use std::fmt::Write;

/// A field of a cron expression: its name, its least and greatest value, and the names of its values, if they have any.
struct Field {
    name: &'static str,
    least: u32,
    greatest: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, greatest: 59, names: &[] },
    Field { name: "hour", least: 0, greatest: 23, names: &[] },
    Field { name: "day of the month", least: 1, greatest: 31, names: &[] },
    Field {
        name: "month",
        least: 1,
        greatest: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    // 7 is Sunday, too.
    Field { name: "day of the week", least: 0, greatest: 7, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

const UNTIL: &str = ";UNTIL=";

const DAYS: [&str; 7] = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];

/// The rule of a cron expression of five fields.
///
/// # Errors
/// `INVALID_ARGUMENT` for what is no such expression, and for one with a day of the month and a day of the week: cron takes either of them, and a rule
/// takes both at once.
pub fn rule(expression: &str) -> Result<String, Error> {
    let parts: Vec<&str> = expression.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = parts[..] else {
        return Err(wrong("a cron expression has five fields: minute, hour, day of the month, month, day of the week"));
    };
    let mut values = Vec::new();
    for (field, text) in FIELDS.iter().zip([minute, hour, day, month, weekday]) {
        values.push(field.values(text)?);
    }
    if values[2].is_some() && values[4].is_some() {
        return Err(wrong("a day of the month and a day of the week cannot stand together here"));
    }
    // A schedule takes days of the month with FREQ=MONTHLY, and months not with FREQ=HOURLY or FREQ=MINUTELY: hours and minutes then stand in full.
    if values[2].is_some() || values[3].is_some() {
        for (field, of_day) in FIELDS.iter().zip(&mut values).take(2) {
            of_day.get_or_insert_with(|| (field.least..=field.greatest).collect());
        }
    }
    let frequency = match (&values[0], &values[1], &values[2]) {
        (_, _, Some(_)) => "MONTHLY",
        (None, _, None) => "MINUTELY",
        (Some(_), None, None) => "HOURLY",
        (Some(_), Some(_), None) => "DAILY",
    };
    let mut rule = format!("FREQ={frequency}");
    for (name, values) in ["BYMONTH", "BYMONTHDAY", "BYDAY", "BYHOUR", "BYMINUTE"]
        .iter()
        .zip([&values[3], &values[2], &values[4], &values[1], &values[0]])
    {
        let Some(values) = values else { continue };
        let text = |value: &u32| match *name {
            "BYDAY" => DAYS[*value as usize % 7].to_owned(),
            _ => value.to_string(),
        };
        let list: Vec<String> = values.iter().map(text).collect();
        // Writing to a text does not fail.
        let _ = write!(rule, ";{name}={}", list.join(","));
    }
    Ok(rule)
}

/// The cron expression that a schedule with this name and rule was made of, if it was.
pub fn expression(name: &str, rrule: &str) -> Option<String> {
    let times = rrule.split_once(UNTIL).map_or(rrule, |(times, _)| times);
    rule(name).ok().filter(|rule| rule == times).map(|_| name.to_owned())
}

/// The last part of a rule that ends at this moment.
pub fn until(end: Timestamp) -> String {
    let text = end.to_string();
    let (second, _) = text.split_once('.').unwrap_or((&text, ""));
    format!("{UNTIL}{}Z", second.replace(['-', ':'], ""))
}

/// The moment at which a rule ends, if it ends at one.
pub fn end_time(rrule: &str) -> Option<String> {
    let (_, end) = rrule.split_once(UNTIL)?;
    let end = end.split(';').next().filter(|end| end.ends_with('Z'))?;
    let part = |from: usize, to: usize| end.get(from..to);
    let (date, time) = ((part(0, 4)?, part(4, 6)?, part(6, 8)?), (part(9, 11)?, part(11, 13)?, part(13, 15)?));
    Some(format!("{}-{}-{}T{}:{}:{}Z", date.0, date.1, date.2, time.0, time.1, time.2))
}

fn wrong(message: impl Into<String>) -> Error {
    Error::invalid("schedule", message).hint("for other rules POST …/schedules takes an RRULE")
}

impl Field {
    /// Its values in order; none for all of them.
    fn values(&self, text: &str) -> Result<Option<Vec<u32>>, Error> {
        if ["*", "*/1", "?"].contains(&text) {
            return Ok(None);
        }
        let unfit = || wrong(format!("{:?} is no {}", text.chars().take(32).collect::<String>(), self.name));
        let mut values = Vec::new();
        for part in text.split(',') {
            let (range, step) =
                part.split_once('/').map_or((part, Some(1)), |(range, step)| (range, step.parse().ok()));
            let step: u32 = step.filter(|step| *step > 0).ok_or_else(unfit)?;
            let (first, last) = match range.split_once('-') {
                _ if range == "*" => (self.least, self.greatest),
                Some((first, last)) => (self.value(first).ok_or_else(unfit)?, self.value(last).ok_or_else(unfit)?),
                None => {
                    let value = self.value(range).ok_or_else(unfit)?;
                    (value, if part.contains('/') { self.greatest } else { value })
                }
            };
            if first > last {
                return Err(unfit());
            }
            values.extend((first..=last).step_by(step as usize));
        }
        if self.greatest == 7 {
            values.iter_mut().for_each(|day| *day %= 7);
        }
        values.sort_unstable();
        values.dedup();
        Ok(Some(values))
    }

    fn value(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let value = match named {
            Some(place) => u32::try_from(place).ok()? + self.least,
            None => text.parse().ok()?,
        };
        (self.least..=self.greatest).contains(&value).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn cron_expressions_are_rules() {
        for (cron, wanted) in [
            ("* * * * *", "FREQ=MINUTELY"),
            ("*/15 * * * *", "FREQ=HOURLY;BYMINUTE=0,15,30,45"),
            ("0 9 * * *", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0"),
            ("30 8-10 * * mon-fri", "FREQ=DAILY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=8,9,10;BYMINUTE=30"),
            ("0 0 1 jan,jul *", "FREQ=MONTHLY;BYMONTH=1,7;BYMONTHDAY=1;BYHOUR=0;BYMINUTE=0"),
            ("0 0 * * 7", "FREQ=DAILY;BYDAY=SU;BYHOUR=0;BYMINUTE=0"),
            ("0 9 1,15 * *", "FREQ=MONTHLY;BYMONTHDAY=1,15;BYHOUR=9;BYMINUTE=0"),
            (
                "30 * * dec *",
                "FREQ=DAILY;BYMONTH=12;BYHOUR=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23;BYMINUTE=30",
            ),
        ] {
            assert_eq!(rule(cron).unwrap(), wanted, "{cron}");
            assert_eq!(expression(cron, wanted).as_deref(), Some(cron));
        }
        for wrong in ["", "* * * *", "60 * * * *", "*/0 * * * *", "5-1 * * * *", "0 0 1 * 1", "0 0 0 * *", "x * * * *"]
        {
            assert_eq!(rule(wrong).unwrap_err().details["field"], "schedule", "{wrong}");
        }
        assert_eq!(expression("Daily brief", "FREQ=DAILY"), None);
        let (cron, end) = ("0 9 * * *", "2026-12-24T08:00:00.000+01:00".parse().unwrap());
        let ends = rule(cron).unwrap() + &until(end);
        assert_eq!(ends, "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;UNTIL=20261224T070000Z");
        assert_eq!(expression(cron, &ends).as_deref(), Some(cron));
        assert_eq!(end_time(&ends).as_deref(), Some("2026-12-24T07:00:00Z"));
        assert_eq!((end_time("FREQ=DAILY"), end_time("FREQ=DAILY;UNTIL=20261224")), (None, None));
    }
}
