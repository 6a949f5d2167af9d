//! Free slots: the time within working hours that no calendar has taken. Pure.

use crate::clock::{Span, Tz, local, on_the_clock};
use chrono::{Datelike as _, Duration, NaiveDate, NaiveTime, Weekday};
use domain::{Error, Timestamp};

/// The most days that are looked through.
pub const MAX_DAYS: i64 = 366;

/// The hours at which somebody works, on the clock of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hours {
    /// The zone.
    pub zone: Tz,
    /// The days of the week.
    pub days: Vec<Weekday>,
    /// From then on.
    pub from: NaiveTime,
    /// Until then; midnight is the end of the day.
    pub until: NaiveTime,
}

impl Hours {
    /// Monday to Friday, 9 to 17.
    pub fn usual(zone: Tz) -> Self {
        let time = |hour| NaiveTime::from_hms_opt(hour, 0, 0).unwrap_or_default();
        let days = vec![Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri];
        Self { zone, days, from: time(9), until: time(17) }
    }

    /// Other times of the day, such as `08:30` and `16:00`, and other days of the week, such as `mon`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a text that is no time or no day, and for hours that end before they begin.
    pub fn with(mut self, from: Option<&str>, until: Option<&str>, days: Option<&[String]>) -> Result<Self, Error> {
        let time = |field: &str, text: &str| match text {
            "24:00" => Ok(NaiveTime::MIN),
            _ => NaiveTime::parse_from_str(text, "%H:%M").map_err(|_| {
                Error::invalid(field, format!("{:?} is no time of the day", text.chars().take(20).collect::<String>()))
                    .hint("such as 08:30")
            }),
        };
        if let Some(text) = from {
            self.from = time("work_start", text)?;
        }
        if let Some(text) = until {
            self.until = time("work_end", text)?;
        }
        if let Some(days) = days {
            let day = |text: &String| {
                text.parse::<Weekday>().map_err(|_| {
                    Error::invalid("work_days", format!("{:?} is no day", text.chars().take(20).collect::<String>()))
                        .hint("mon, tue, wed, thu, fri, sat or sun")
                })
            };
            self.days = days.iter().map(day).collect::<Result<_, _>>()?;
        }
        match self.until != NaiveTime::MIN && self.until <= self.from {
            true => Err(Error::invalid("work_end", "the working hours end before they begin")
                .hint("give times of one day, such as 09:00 and 17:00")),
            false => Ok(self),
        }
    }

    /// The working time of a day.
    fn of(&self, day: NaiveDate) -> Option<Span> {
        if !self.days.contains(&day.weekday()) {
            return None;
        }
        let last = if self.until == NaiveTime::MIN { day.succ_opt()? } else { day };
        let start = on_the_clock(self.zone, day.and_time(self.from));
        Some(Span { start, end: on_the_clock(self.zone, last.and_time(self.until)) })
    }
}

/// The slots of `window` within working hours in which nothing of `busy` is, each `minutes` long at least, in order. Days after the first 366 are not
/// looked at.
pub fn slots(busy: &[Span], window: Span, hours: &Hours, minutes: u32) -> Vec<Span> {
    let mut busy: Vec<Span> = busy.iter().copied().filter(|span| span.end > span.start).collect();
    busy.sort_unstable();
    let least = i64::from(minutes.max(1)) * 60_000;
    let mut day = local(window.start, hours.zone).date() - Duration::days(1);
    let last = (local(window.end, hours.zone).date() + Duration::days(1)).min(day + Duration::days(MAX_DAYS + 2));
    let mut open: Vec<Span> = Vec::new();
    while day <= last {
        if let Some(hours) = hours.of(day) {
            let hours = Span { start: hours.start.max(window.start), end: hours.end.min(window.end) };
            match open.last_mut() {
                // Hours until midnight, and on.
                Some(before) if before.end == hours.start => before.end = hours.end,
                _ => open.push(hours),
            }
        }
        let Some(next) = day.succ_opt() else { break };
        day = next;
    }
    let mut found = Vec::new();
    for hours in open {
        free_in(&busy, hours, least, &mut found);
    }
    found
}

/// The parts of a span that nothing takes.
fn free_in(busy: &[Span], open: Span, least: i64, found: &mut Vec<Span>) {
    let mut from = open.start;
    let mut add = |start: Timestamp, end: Timestamp| {
        if end.as_millis() - start.as_millis() >= least {
            found.push(Span { start, end });
        }
    };
    for taken in busy.iter().filter(|taken| taken.end > open.start) {
        if taken.start >= open.end {
            break;
        }
        add(from, taken.start);
        from = from.max(taken.end);
    }
    add(from, open.end);
}
