//! The flow as a picture.

use super::{
    RunVisits, class, did, does,
    layout::{Layout, Route, Spot, place},
    title,
};
use crate::{flow::Flow, graph::Role};
use domain::text::shortened;
use std::fmt::Write as _;

/// Space around everything, and for the headline.
const MARGIN: f64 = 28.0;
const HEADLINE: f64 = 44.0;
/// The approximate width of a letter at the sizes of the text.
const LETTER: f64 = 7.4;
const SMALL_LETTER: f64 = 6.2;
/// Longer texts are cut.
const LONGEST: usize = 32;

const STYLE: &str = "
  .bg{fill:#ffffff} text{font-family:system-ui,-apple-system,'Segoe UI','Helvetica Neue',Arial,sans-serif;fill:#1f2328}
  .head{font-size:16px;font-weight:600} .sub{font-size:11px;fill:#656d76} .name{font-size:13px;font-weight:600}
  .label{font-size:11px;fill:#424a53;stroke:#ffffff;stroke-width:5px;stroke-linejoin:round;paint-order:stroke}
  .edge{fill:none;stroke:#8c959f;stroke-width:1.5px} .edge.went{stroke:#424a53;stroke-width:2.2px}
  .tip{fill:#8c959f} .tip.went{fill:#424a53} .shape{stroke-width:1.6px} .inner{fill:none;stroke-width:1.2px} .dim{opacity:.5}
  .start{fill:#e6f6ef;stroke:#1a7f5a} .linear{fill:#f6f8fa;stroke:#57606a} .decision{fill:#fff8e1;stroke:#b08800}
  .branch{fill:#f6efff;stroke:#8250df} .split{fill:#e9f2ff;stroke:#0969da} .merge{fill:#e5f7fa;stroke:#1b7c83}
  .exit{fill:#eef0f3;stroke:#424a53}
  .success{fill:#d3f0dc;stroke:#1f883d} .failure{fill:#fddcd9;stroke:#cf222e} .partial{fill:#fbe9bf;stroke:#9a6700}
  .running{fill:#d6e7ff;stroke:#0969da;stroke-width:2.6px}
  @media (prefers-color-scheme:dark){
  .bg{fill:#0d1117} text{fill:#e6edf3} .sub{fill:#9198a1} .label{fill:#c9d1d9;stroke:#0d1117}
  .edge{stroke:#6e7681} .edge.went{stroke:#c9d1d9} .tip{fill:#6e7681} .tip.went{fill:#c9d1d9}
  .start{fill:#0f2a20;stroke:#3fb98a} .linear{fill:#161b22;stroke:#8b949e} .decision{fill:#2b2310;stroke:#d8b13a}
  .branch{fill:#231a33;stroke:#b18cf2} .split{fill:#10233d;stroke:#58a6ff} .merge{fill:#0f2a2d;stroke:#4fc3cc}
  .exit{fill:#1c2128;stroke:#adbac7}
  .success{fill:#12351f;stroke:#3fb950} .failure{fill:#431a1a;stroke:#f85149} .partial{fill:#3a2c0b;stroke:#d29922}
  .running{fill:#122b4d;stroke:#58a6ff}}
";

/// The flow as SVG, light or dark as its viewer is.
pub fn svg(flow: &Flow, run_visits: &RunVisits) -> String {
    let cards: Vec<Card> = flow
        .graph
        .nodes()
        .iter()
        .map(|node| {
            let small =
                [does(flow, &node.id), did(run_visits, &node.id)].into_iter().flatten().collect::<Vec<_>>().join(" · ");
            Card::new(node.role, title(flow, &node.id), &small)
        })
        .collect();
    let sizes: Vec<(f64, f64)> = cards.iter().map(|card| (card.width, card.height)).collect();
    let layout = place(&flow.graph, &sizes);
    let legend = Legend::of(flow, run_visits);
    let headline = flow.reference.name.chars().count() as f64 * 9.5;
    let width = layout.width.max(legend.width()).max(headline) + 2.0 * MARGIN;
    let height = layout.height + HEADLINE + MARGIN + legend.height() + 2.0 * MARGIN;
    // In the middle, when the legend is wider.
    let left = (width - layout.width) / 2.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n",
        escape(&flow.reference.name)
    );
    for (id, look) in [("tip", "tip"), ("went", "tip went")] {
        let _ = writeln!(
            out,
            "<defs><marker id=\"{id}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerUnits=\"userSpaceOnUse\" markerWidth=\"10\" markerHeight=\"10\" orient=\"auto\"><path class=\"{look}\" d=\"M0 0 10 5 0 10z\"/></marker></defs>"
        );
    }
    let _ = writeln!(out, "<rect class=\"bg\" width=\"{width:.0}\" height=\"{height:.0}\"/>");
    let _ = writeln!(
        out,
        "<text class=\"head\" x=\"{MARGIN}\" y=\"{:.0}\">{}</text>",
        MARGIN + 12.0,
        escape(&flow.reference.name)
    );
    let _ = writeln!(out, "<g transform=\"translate({left:.1} {:.1})\">", MARGIN + HEADLINE);
    edges(&mut out, flow, run_visits, &layout);
    for ((node, card), spot) in flow.graph.nodes().iter().zip(&cards).zip(&layout.spots) {
        let painted = class(run_visits, &node.id);
        let look = painted.map_or_else(|| node.role.to_string(), Into::into);
        let dim = if !run_visits.is_empty() && painted.is_none() { " dim" } else { "" };
        let _ =
            writeln!(out, "<g class=\"node{dim}\"><title>{}</title>", escape(&format!("{} ({})", node.id, node.role)));
        shape(&mut out, node.role, &look, *spot);
        card.write(&mut out, *spot);
        out.push_str("</g>\n");
    }
    out.push_str("</g>\n");
    legend.write(&mut out, MARGIN, height - MARGIN - legend.height());
    out.push_str("</svg>\n");
    out
}

/// The texts in a node, and the room that they take.
struct Card {
    name: String,
    small: String,
    width: f64,
    height: f64,
}

impl Card {
    fn new(role: Role, name: &str, small: &str) -> Self {
        let (name, small) = (cut(name), cut(small));
        let text = (name.chars().count() as f64 * LETTER).max(small.chars().count() as f64 * SMALL_LETTER);
        let lines = if small.is_empty() { 1.0 } else { 2.0 };
        let (width, height) = match role {
            // Texts stand in the middle of a rhombus, where it is wide.
            Role::Decision => (text * 1.35 + 72.0, 40.0 + lines * 17.0),
            Role::Branch | Role::Split | Role::Merge => (text + 64.0, 24.0 + lines * 15.0),
            Role::Start | Role::Exit => (text + 44.0, 22.0 + lines * 15.0),
            Role::Linear => (text + 32.0, 24.0 + lines * 15.0),
        };
        Self { name, small, width: width.max(96.0), height }
    }

    fn write(&self, out: &mut String, spot: Spot) {
        let (x, y) = (spot.x, spot.y + 4.5);
        let (name, small) = (escape(&self.name), escape(&self.small));
        if self.small.is_empty() {
            let _ =
                writeln!(out, "<text class=\"name\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{name}</text>");
        } else {
            let _ = writeln!(
                out,
                "<text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
                y - 7.5
            );
            let _ = writeln!(
                out,
                "<text class=\"sub\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{small}</text>",
                y + 8.5
            );
        }
    }
}

/// The outline of a role: pills begin and end, a rhombus chooses, a hexagon goes all ways, a split widens, a merge narrows.
fn shape(out: &mut String, role: Role, look: &str, spot: Spot) {
    let Spot { x, y, width, height } = spot;
    let (left, right, top, bottom) = (x - width / 2.0, x + width / 2.0, y - height / 2.0, y + height / 2.0);
    let mut polygon = |points: &[(f64, f64)]| {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            out,
            "<polygon class=\"shape {look}\" stroke-linejoin=\"round\" points=\"{}\"/>",
            points.join(" ")
        );
    };
    let slant = 16.0_f64.min(width / 4.0);
    match role {
        Role::Decision => polygon(&[(x, top), (right, y), (x, bottom), (left, y)]),
        Role::Branch => polygon(&[
            (left + slant, top),
            (right - slant, top),
            (right, y),
            (right - slant, bottom),
            (left + slant, bottom),
            (left, y),
        ]),
        Role::Split => polygon(&[(left + slant, top), (right - slant, top), (right, bottom), (left, bottom)]),
        Role::Merge => polygon(&[(left, top), (right, top), (right - slant, bottom), (left + slant, bottom)]),
        Role::Linear => rect(out, &format!("shape {look}"), spot, 7.0_f64.min(height / 4.0)),
        Role::Start => rect(out, &format!("shape {look}"), spot, height / 2.0),
        Role::Exit => {
            rect(out, &format!("shape {look}"), spot, height / 2.0);
            let inner = Spot { width: width - 7.0, height: height - 7.0, ..spot };
            rect(out, &format!("{look} inner\" style=\"fill:none"), inner, inner.height / 2.0);
        }
    }
}

fn rect(out: &mut String, class: &str, spot: Spot, round: f64) {
    let (left, top) = (spot.x - spot.width / 2.0, spot.y - spot.height / 2.0);
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{round:.1}\"/>",
        spot.width, spot.height
    );
}

fn edges(out: &mut String, flow: &Flow, run_visits: &RunVisits, layout: &Layout) {
    let nodes = flow.graph.nodes();
    let went = |place: usize| {
        nodes.get(place).and_then(|node| run_visits.get(&node.id)).is_some_and(|node| node.visits > 0 || node.running)
    };
    for route in &layout.routes {
        let (look, tip) = if went(route.from) && went(route.to) { ("edge went", "went") } else { ("edge", "tip") };
        let _ = writeln!(out, "<path class=\"{look}\" marker-end=\"url(#{tip})\" d=\"{}\"/>", curve(&route.points));
    }
    // Over all edges, so that none crosses a text.
    for route in &layout.routes {
        if let (Some(label), Some((x, y))) = (&route.label, label_place(route)) {
            let _ = writeln!(
                out,
                "<text class=\"label\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>",
                escape(&cut(label))
            );
        }
    }
}

/// A line that leaves and arrives straight down, and bends between.
fn curve(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    let mut before: Option<(f64, f64)> = None;
    for (x, y) in points.iter().copied() {
        match before {
            None => drop(write!(path, "M{x:.1} {y:.1}")),
            Some((from_x, _)) if (from_x - x).abs() < 0.5 => drop(write!(path, " L{x:.1} {y:.1}")),
            Some((from_x, from_y)) => {
                let middle = f64::midpoint(from_y, y);
                let _ = write!(path, " C{from_x:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}");
            }
        }
        before = Some((x, y));
    }
    path
}

/// On the first part of the edge, nearer to its end, where edges of one node are apart.
fn label_place(route: &Route) -> Option<(f64, f64)> {
    let [(from_x, from_y), (to_x, to_y), ..] = route.points.as_slice() else { return None };
    // The point of the curve at this part of the way.
    let (part, rest): (f64, f64) = (0.62, 0.38);
    let (near, far) = (rest.powi(3) + 3.0 * rest.powi(2) * part, 3.0 * rest * part.powi(2) + part.powi(3));
    let middle = f64::midpoint(*from_y, *to_y);
    let y = rest.powi(3) * from_y + 3.0 * rest * part * middle + part.powi(3) * to_y;
    Some((near * from_x + far * to_x, y + 4.0))
}

/// The legend: the shapes and colours that occur.
struct Legend {
    /// Roles, then statuses: a shape, the class of its colour, and its name.
    lines: Vec<Vec<(Role, String)>>,
}

impl Legend {
    /// From one line to the next.
    const LINE: f64 = 24.0;

    fn of(flow: &Flow, run_visits: &RunVisits) -> Self {
        const ROLES: [Role; 7] =
            [Role::Start, Role::Linear, Role::Decision, Role::Branch, Role::Split, Role::Merge, Role::Exit];
        let nodes = flow.graph.nodes();
        let roles = ROLES.into_iter().filter(|role| nodes.iter().any(|node| node.role == *role));
        let painted = |name: &&str| nodes.iter().any(|node| class(run_visits, &node.id) == Some(*name));
        let statuses = ["success", "failure", "partial", "running"].into_iter().filter(painted);
        let lines = [
            roles.map(|role| (role, role.to_string())).collect::<Vec<_>>(),
            statuses.map(|status| (Role::Linear, status.to_string())).collect(),
        ];
        Self { lines: lines.into_iter().filter(|line| !line.is_empty()).collect() }
    }

    fn width(&self) -> f64 {
        self.lines.iter().map(|line| line.iter().map(|(_, name)| Self::step(name)).sum()).fold(0.0, f64::max)
    }

    fn height(&self) -> f64 {
        self.lines.len() as f64 * Self::LINE
    }

    fn step(name: &str) -> f64 {
        name.chars().count() as f64 * SMALL_LETTER + 46.0
    }

    fn write(&self, out: &mut String, left: f64, top: f64) {
        for (place, line) in self.lines.iter().enumerate() {
            let (mut x, y) = (left, top + (place as f64 + 0.5) * Self::LINE);
            for (role, name) in line {
                shape(out, *role, name, Spot { x: x + 12.0, y, width: 24.0, height: 14.0 });
                let _ = writeln!(out, "<text class=\"sub\" x=\"{:.1}\" y=\"{:.1}\">{name}</text>", x + 30.0, y + 4.0);
                x += Self::step(name);
            }
        }
    }
}

fn cut(text: &str) -> String {
    shortened(text, LONGEST)
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Control characters are not allowed in XML.
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}
