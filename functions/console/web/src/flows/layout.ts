/**
 * The picture of a graph without cycles: each node is in the rank after the last of those before it, and near to these. An edge that passes ranks
 * has a lane in each of them, beside the nodes, so no edge runs behind one.
 */
import type {Schemas} from '../hub.ts';

/** The size of a node, the room beside a node and beside a lane, and the distance of two ranks: in pixels. */
export const SIZE = {width: 190, height: 56};
const [GAP, LANE, DOWN] = [40, 24, 104];

export interface Point {x: number; y: number}
export interface Picture {
  /** The upper left corner of each node, by id. */
  places: Map<string, Point>;
  /** Of each edge, in their order: the points between its nodes at which it goes along the nodes of a rank, two per rank. */
  lanes: Point[][];
}
interface Item {
  /** Items of a rank are in the order of `order`, then of `tie`; `wish` is the middle that the item would have if it were alone. */
  order: number; tie: number; wish: number; weight: number;
  /** Half of the room that it takes, with that to its neighbour. */
  half: number;
  put: (x: number) => void;
}

export function layout(flow: Pick<Schemas['Flow'], 'nodes' | 'edges'>): Picture {
  const before = new Map<string, string[]>(flow.nodes.map(node => [node.id, []]));
  flow.edges.forEach(edge => before.get(edge.to)?.push(edge.from));
  const ranks = new Map<string, number>();
  const rankOf = (id: string, seen: Set<string>): number => {
    const known = ranks.get(id);
    if (known !== undefined || seen.has(id)) return known ?? 0;
    seen.add(id);
    const rank = Math.max(-1, ...(before.get(id) ?? []).map(from => rankOf(from, seen))) + 1;
    ranks.set(id, rank);
    return rank;
  };
  flow.nodes.forEach(node => rankOf(node.id, new Set()));
  const rank = (id: string): number => ranks.get(id) ?? 0;
  const middles = new Map<string, number>();
  const lanes: Point[][] = flow.edges.map(() => []);
  /** Where an edge comes from, seen from the rank below: its last lane, or the node itself. */
  const above = (at: number): number => lanes[at]?.at(-1)?.x ?? middles.get(flow.edges[at]?.from ?? '') ?? 0;
  for (let row = 0; row <= Math.max(0, ...ranks.values()); row++) {
    const items: Item[] = flow.nodes.filter(({id}) => rank(id) === row).map(({id}) => {
      const all = [...flow.edges.keys()].filter(at => flow.edges[at]?.to === id && rank(flow.edges[at]?.from ?? '') < row);
      // Lanes only decide between neighbours: a node that others are passed for stays below the node before it.
      const direct = all.filter(at => lanes[at]?.length === 0);
      const put = (x: number) => { middles.set(id, x); };
      return {order: mean(all.map(above)), tie: 0, wish: mean(direct.map(above)), weight: 1, half: (SIZE.width + GAP) / 2, put};
    });
    flow.edges.forEach((edge, at) => {
      if (rank(edge.from) >= row || rank(edge.to) <= row) return;
      const put = (x: number) => { lanes[at]?.push({x, y: row * DOWN}, {x, y: row * DOWN + SIZE.height}); };
      // The lane that ends first is the nearest one. A lane weighs nothing, so nodes below each other stay so.
      items.push({order: above(at), tie: rank(edge.to), wish: above(at), weight: 1e-6, half: LANE / 2, put});
    });
    items.sort((one, other) => one.order - other.order || one.tie - other.tie);
    spread(items);
  }
  const places = flow.nodes.map(({id}) => [id, {x: (middles.get(id) ?? 0) - SIZE.width / 2, y: rank(id) * DOWN}] as const);
  return {places: new Map(places), lanes};
}

/** Puts the items of a rank beside each other in their order, each as near to its wish as the others let it (least squares). */
function spread(items: Item[]): void {
  // Items that touch are one block. In it all are as far from its first one as their sizes say: `offset`.
  const blocks: {items: {item: Item; offset: number}[]; x: number; weight: number; end: number}[] = [];
  for (const item of items) {
    let block = {items: [{item, offset: 0}], x: item.wish, weight: item.weight, end: 0};
    for (let last = blocks.at(-1); last !== undefined; last = blocks.at(-1)) {
      const [one, other] = [last.items.at(-1), block.items[0]];
      const apart = last.end + (one?.item.half ?? 0) + (other?.item.half ?? 0);
      if (last.x + apart <= block.x) break;
      blocks.pop();
      const weight = last.weight + block.weight;
      const x = (last.x * last.weight + (block.x - apart) * block.weight) / weight;
      block = {items: [...last.items, ...block.items.map(({item, offset}) => ({item, offset: offset + apart}))], x, weight, end: apart + block.end};
    }
    blocks.push(block);
  }
  for (const {items, x} of blocks) items.forEach(({item, offset}) => item.put(Math.round(x + offset)));
}

/** The path of an edge: straight beside nodes, and in curves between two ranks. */
export function path(points: readonly Point[]): string {
  return points.map(({x, y}, at) => {
    const from = points[at - 1];
    if (from === undefined) return `M${x},${y}`;
    const turn = (from.y + y) / 2;
    return `C${from.x},${turn} ${x},${turn} ${x},${y}`;
  }).join(' ');
}

const mean = (all: number[]): number => (all.length === 0 ? 0 : all.reduce((sum, one) => sum + one, 0) / all.length);
