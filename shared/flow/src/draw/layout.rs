//! The positions of a graph's nodes: layers from top to bottom, by Sugiyama's method.
//!
//! 1. The layer of a node is the longest way to it, so every edge leads down.
//! 2. An edge over several layers gets a bend in each of those between, and bends are placed like nodes.
//! 3. In each layer every node moves to the middle of its neighbours, up and down in turn; the order with the
//!    fewest crossings stays.
//! 4. Then everything is put as near as it can to that middle without changing the order, and long edges are made straight.

use crate::graph::Graph;
use std::collections::HashMap;

/// Between two boxes of a layer, and between two layers.
const GAP_X: f64 = 36.0;
const GAP_Y: f64 = 58.0;
/// How often the order and the places are improved.
const SWEEPS: usize = 12;

/// A box of this size, and the place of its middle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Spot {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// An edge: the points that it passes, from the lower side of a box to the upper side of another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Route {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) points: Vec<(f64, f64)>,
    pub(super) label: Option<String>,
}

/// The positions of all nodes and bends.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Layout {
    /// In the order of the graph's nodes.
    pub(super) spots: Vec<Spot>,
    pub(super) routes: Vec<Route>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// An edge with the bends between its ends.
struct Chain {
    from: usize,
    to: usize,
    bends: Vec<usize>,
    label: Option<String>,
}

/// Boxes and bends while they are placed. The first ones are the nodes of the graph.
#[derive(Default)]
struct Draft {
    spots: Vec<Spot>,
    layer: Vec<usize>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    layers: Vec<Vec<usize>>,
    chains: Vec<Chain>,
}

/// Lays out a graph whose nodes have these sizes.
pub(super) fn place(graph: &Graph, sizes: &[(f64, f64)]) -> Layout {
    let mut draft = Draft::of(graph, sizes);
    draft.order();
    draft.spread();
    draft.straighten();
    draft.layout(graph.nodes().len())
}

impl Draft {
    fn of(graph: &Graph, sizes: &[(f64, f64)]) -> Self {
        let places: HashMap<&str, usize> =
            graph.nodes().iter().enumerate().map(|(place, node)| (node.id.as_str(), place)).collect();
        let edges: Vec<Vec<(usize, Option<String>)>> = graph
            .nodes()
            .iter()
            .map(|node| {
                let out = node.out.iter();
                out.filter_map(|edge| Some((*places.get(edge.to.as_str())?, edge.label.clone()))).collect()
            })
            .collect();
        let ranks = ranks(&edges);
        let mut draft = Self::default();
        for (node, (width, height)) in sizes.iter().enumerate() {
            draft.add(ranks[node], *width, *height);
        }
        for (from, out) in edges.into_iter().enumerate() {
            for (to, label) in out {
                let bends: Vec<usize> = (ranks[from] + 1..ranks[to]).map(|rank| draft.add(rank, 8.0, 0.0)).collect();
                let way: Vec<usize> = [from].into_iter().chain(bends.iter().copied()).chain([to]).collect();
                for pair in way.windows(2) {
                    if let [upper, lower] = pair {
                        draft.below[*upper].push(*lower);
                        draft.above[*lower].push(*upper);
                    }
                }
                draft.chains.push(Chain { from, to, bends, label });
            }
        }
        draft
    }

    fn add(&mut self, layer: usize, width: f64, height: f64) -> usize {
        let item = self.spots.len();
        self.spots.push(Spot { x: 0.0, y: 0.0, width, height });
        self.layer.push(layer);
        self.above.push(Vec::new());
        self.below.push(Vec::new());
        if self.layers.len() <= layer {
            self.layers.resize(layer + 1, Vec::new());
        }
        self.layers[layer].push(item);
        item
    }

    /// Orders the layers so that few edges cross.
    fn order(&mut self) {
        let mut best = self.layers.clone();
        let mut fewest = self.crossings();
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let count = self.layers.len();
            let mut place = vec![0.0; self.spots.len()];
            for layer in &self.layers {
                layer.iter().enumerate().for_each(|(at, item)| place[*item] = at as f64);
            }
            for step in 0..count {
                let layer = if down { step } else { count - 1 - step };
                let near = if down { &self.above } else { &self.below };
                let mut keyed: Vec<(f64, usize)> = self.layers[layer]
                    .iter()
                    .map(|item| (mean(near[*item].iter().map(|other| place[*other])).unwrap_or(place[*item]), *item))
                    .collect();
                // Stable, so that equal ones keep the order of the manifest.
                keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
                for (at, (_, item)) in keyed.iter().enumerate() {
                    place[*item] = at as f64;
                }
                self.layers[layer] = keyed.into_iter().map(|(_, item)| item).collect();
            }
            let crossings = self.crossings();
            if crossings < fewest {
                (fewest, best) = (crossings, self.layers.clone());
            }
        }
        self.layers = best;
    }

    fn crossings(&self) -> usize {
        let mut place = vec![0; self.spots.len()];
        for layer in &self.layers {
            layer.iter().enumerate().for_each(|(at, item)| place[*item] = at);
        }
        let crossed = |layer: &Vec<usize>| {
            let ways: Vec<(usize, usize)> =
                layer.iter().flat_map(|item| self.below[*item].iter().map(|to| (place[*item], place[*to]))).collect();
            let pairs =
                ways.iter().enumerate().flat_map(|(at, one)| ways[at + 1..].iter().map(move |other| (one, other)));
            pairs
                .filter(|(one, other)| (one.0 < other.0 && one.1 > other.1) || (one.0 > other.0 && one.1 < other.1))
                .count()
        };
        self.layers.iter().map(crossed).sum()
    }

    /// Places everything: layers below each other, and in each as near as possible to its neighbours.
    fn spread(&mut self) {
        let mut y = 0.0;
        for layer in &self.layers {
            let height = layer.iter().map(|item| self.spots[*item].height).fold(0.0, f64::max);
            for item in layer {
                self.spots[*item].y = y + height / 2.0;
            }
            y += height + GAP_Y;
        }
        let count = self.layers.len();
        for sweep in 0..=SWEEPS {
            for step in 0..count {
                let layer = if sweep % 2 == 0 { step } else { count - 1 - step };
                let items = self.layers[layer].clone();
                let wanted: Vec<f64> = items
                    .iter()
                    .map(|item| {
                        let (above, below) = (self.above[*item].iter(), self.below[*item].iter());
                        let near = |others: std::slice::Iter<'_, usize>| mean(others.map(|other| self.spots[*other].x));
                        let middle = match (sweep % 2 == 0, sweep == SWEEPS) {
                            (_, true) => mean([near(above), near(below)].into_iter().flatten()),
                            (true, _) => near(above),
                            (false, _) => near(below),
                        };
                        middle.unwrap_or(self.spots[*item].x)
                    })
                    .collect();
                let apart: Vec<f64> = items
                    .windows(2)
                    .map(|pair| pair.iter().map(|item| self.spots[*item].width / 2.0).sum::<f64>() + GAP_X)
                    .collect();
                for (item, x) in items.iter().zip(settle(&wanted, &apart)) {
                    self.spots[*item].x = x;
                }
            }
        }
    }

    /// Makes long edges straight where there is room: all bends of one get one place.
    fn straighten(&mut self) {
        let mut at = vec![0; self.spots.len()];
        for layer in &self.layers {
            layer.iter().enumerate().for_each(|(place, item)| at[*item] = place);
        }
        for chain in self.chains.iter().filter(|chain| chain.bends.len() > 1) {
            let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
            for bend in &chain.bends {
                let layer = &self.layers[self.layer[*bend]];
                let apart = |other: usize| (self.spots[*bend].width + self.spots[other].width) / 2.0 + GAP_X / 2.0;
                if let Some(left) = at[*bend].checked_sub(1).and_then(|place| layer.get(place)) {
                    least = least.max(self.spots[*left].x + apart(*left));
                }
                if let Some(right) = layer.get(at[*bend] + 1) {
                    most = most.min(self.spots[*right].x - apart(*right));
                }
            }
            let middle = mean(chain.bends.iter().map(|bend| self.spots[*bend].x)).unwrap_or_default();
            let ends = [self.spots[chain.from].x, self.spots[chain.to].x];
            let straight = ends.into_iter().find(|x| (least..=most).contains(x));
            if least <= most {
                let x = straight.unwrap_or(middle.clamp(least, most));
                chain.bends.iter().for_each(|bend| self.spots[*bend].x = x);
            }
        }
    }

    fn layout(mut self, nodes: usize) -> Layout {
        let left = self.spots.iter().map(|spot| spot.x - spot.width / 2.0).fold(f64::INFINITY, f64::min);
        for spot in &mut self.spots {
            spot.x -= if left.is_finite() { left } else { 0.0 };
        }
        let heights: Vec<f64> = self
            .layers
            .iter()
            .map(|layer| layer.iter().map(|item| self.spots[*item].height).fold(0.0, f64::max))
            .collect();
        let routes = self.chains.iter().map(|chain| {
            let (from, to) = (self.spots[chain.from], self.spots[chain.to]);
            let mut points = vec![(from.x, from.y + from.height / 2.0)];
            for bend in &chain.bends {
                // Straight down past the boxes of the layer.
                let (spot, half) = (self.spots[*bend], heights[self.layer[*bend]] / 2.0);
                points.extend([(spot.x, spot.y - half), (spot.x, spot.y + half)]);
            }
            points.push((to.x, to.y - to.height / 2.0));
            Route { from: chain.from, to: chain.to, points, label: chain.label.clone() }
        });
        let routes = routes.collect();
        let right = self.spots.iter().map(|spot| spot.x + spot.width / 2.0).fold(0.0, f64::max);
        let bottom = self.spots.iter().map(|spot| spot.y + spot.height / 2.0).fold(0.0, f64::max);
        self.spots.truncate(nodes);
        Layout { spots: self.spots, routes, width: right, height: bottom }
    }
}

/// For each node the longest way to it.
fn ranks(edges: &[Vec<(usize, Option<String>)>]) -> Vec<usize> {
    let mut waits = vec![0_usize; edges.len()];
    edges.iter().flatten().for_each(|(to, _)| waits[*to] += 1);
    let mut ranks = vec![0; edges.len()];
    let mut open: Vec<usize> = (0..edges.len()).filter(|node| waits[*node] == 0).collect();
    while let Some(node) = open.pop() {
        for (to, _) in &edges[node] {
            ranks[*to] = ranks[*to].max(ranks[node] + 1);
            waits[*to] -= 1;
            if waits[*to] == 0 {
                open.push(*to);
            }
        }
    }
    ranks
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

/// The places nearest to the wanted ones (least squares) that keep the order and stay apart: neighbours that would come too
/// near become one block, which stands where its members want to be on average.
fn settle(wanted: &[f64], apart: &[f64]) -> Vec<f64> {
    let mut offset = 0.0;
    let mut offsets = vec![0.0];
    for gap in apart {
        offset += gap;
        offsets.push(offset);
    }
    // Blocks: the sum of what their members want, and how many they are.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (want, offset) in wanted.iter().zip(&offsets) {
        blocks.push((want - offset, 1));
        while let [.., (before, before_count), (last, count)] = blocks.as_slice() {
            if before / *before_count as f64 <= last / *count as f64 {
                break;
            }
            let merged = (before + last, before_count + count);
            blocks.truncate(blocks.len() - 2);
            blocks.push(merged);
        }
    }
    let starts = blocks.iter().flat_map(|(sum, count)| std::iter::repeat_n(sum / *count as f64, *count));
    starts.zip(&offsets).map(|(start, offset)| start + offset).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_with_the_same_place_stand_around_it() {
        assert_eq!(settle(&[0.0, 0.0, 0.0], &[10.0, 10.0]), [-10.0, 0.0, 10.0]);
        assert_eq!(settle(&[0.0, 50.0], &[10.0]), [0.0, 50.0]);
        assert_eq!(settle(&[5.0, 0.0, 100.0], &[10.0, 10.0]), [-2.5, 7.5, 100.0]);
    }
}
