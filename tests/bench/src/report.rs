//! The form of a figure: a JSON line for programs, a row for people.

use crate::Result;
use serde_json::{Map, Value, json};
use std::io::Write;

/// The bound of a figure.
#[derive(Clone, Debug)]
enum Target {
    AtMost(f64, String),
    AtLeast(f64, String),
}

/// A measured value, and the values beside it.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    beside: Vec<(String, f64)>,
    target: Option<Target>,
    more: Map<String, Value>,
}

impl Figure {
    pub fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, beside: Vec::new(), target: None, more: Map::new() }
    }

    /// A floor or a peer, in the figure's own unit.
    pub fn beside(mut self, what: impl Into<String>, value: f64) -> Self {
        self.beside.push((what.into(), value));
        self
    }

    /// Held to at most `bound`, which `said` derives.
    pub fn at_most(mut self, bound: f64, said: impl Into<String>) -> Self {
        self.target = Some(Target::AtMost(bound, said.into()));
        self
    }

    /// Held to at least `bound`, which `said` derives.
    pub fn at_least(mut self, bound: f64, said: impl Into<String>) -> Self {
        self.target = Some(Target::AtLeast(bound, said.into()));
        self
    }

    /// Another observation, to explain the figure.
    pub fn more(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = match value.into() {
            Value::Number(number) => number.as_f64().map_or(Value::Null, |number| json!(rounded(number))),
            value => value,
        };
        self.more.insert(name.into(), value);
        self
    }

    fn met(&self) -> Option<bool> {
        match &self.target {
            None => None,
            Some(Target::AtMost(bound, _)) => Some(self.value <= *bound),
            Some(Target::AtLeast(bound, _)) => Some(self.value >= *bound),
        }
    }

    fn line(&self) -> Value {
        let mut line = json!({ "figure": self.name, "value": rounded(self.value), "unit": self.unit });
        let Some(fields) = line.as_object_mut() else { return line };
        if !self.beside.is_empty() {
            let beside: Map<_, _> =
                self.beside.iter().map(|(what, value)| (what.clone(), json!(rounded(*value)))).collect();
            fields.insert("beside".into(), Value::Object(beside));
        }
        if let Some(target) = &self.target {
            let (bound, said) = match target {
                Target::AtMost(bound, said) => (json!({ "at_most": rounded(*bound) }), said),
                Target::AtLeast(bound, said) => (json!({ "at_least": rounded(*bound) }), said),
            };
            fields.insert("target".into(), bound);
            fields.insert("target_is".into(), json!(said));
        }
        if let Some(met) = self.met() {
            fields.insert("met".into(), json!(met));
        }
        fields.extend(self.more.clone());
        line
    }

    fn row(&self) -> [String; 5] {
        let beside: Vec<_> = self.beside.iter().map(|(what, value)| format!("{what} {}", shown(*value))).collect();
        let target = match &self.target {
            None => String::new(),
            Some(Target::AtMost(bound, said)) => format!("<= {} ({said})", shown(*bound)),
            Some(Target::AtLeast(bound, said)) => format!(">= {} ({said})", shown(*bound)),
        };
        let met = self.met().map_or("", |met| if met { "yes" } else { "NO" });
        [self.name.clone(), format!("{} {}", shown(self.value), self.unit), beside.join(", "), target, met.into()]
    }
}

/// All figures of one run.
#[derive(Debug)]
pub(crate) struct Report {
    conditions: Value,
    figures: Vec<Figure>,
}

impl Report {
    /// Begins with the conditions, as the first line.
    pub fn begin(conditions: Value) -> Result<Self> {
        writeln!(std::io::stdout(), "{}", json!({ "conditions": conditions }))?;
        Ok(Self { conditions, figures: Vec::new() })
    }

    /// Adds a figure, and says it at once.
    pub fn add(&mut self, figure: Figure) -> Result<()> {
        writeln!(std::io::stdout(), "{}", figure.line())?;
        self.figures.push(figure);
        Ok(())
    }

    /// All figures for people, as a table in Markdown.
    pub fn table(&self, out: &mut dyn Write) -> Result<()> {
        let conditions = self.conditions.as_object().into_iter().flatten();
        let conditions: Vec<_> = conditions
            .map(|(name, value)| format!("{name}: {}", value.as_str().map_or_else(|| value.to_string(), Into::into)))
            .collect();
        writeln!(out, "\n{}\n", conditions.join(", "))?;
        let mut rows = vec![["figure", "value", "beside it", "target", "met"].map(String::from)];
        rows.extend(self.figures.iter().map(Figure::row));
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let widths: [usize; 5] = std::array::from_fn(width);
        for (number, row) in rows.iter().enumerate() {
            let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            writeln!(out, "| {} |", cells.join(" | "))?;
            if number == 0 {
                writeln!(out, "|{}|", widths.map(|width| "-".repeat(width + 2)).join("|"))?;
            }
        }
        Ok(())
    }
}

/// Three significant digits below a thousand, whole numbers above.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 6);
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

fn shown(value: f64) -> String {
    rounded(value).to_string()
}
