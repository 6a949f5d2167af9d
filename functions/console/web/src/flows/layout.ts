/** Places of the nodes of a graph without cycles: each in the rank after the last of those before it, and near to these. */
import type {Schemas} from '../hub.ts';

const [ACROSS, DOWN] = [230, 104];

export function layout(flow: Pick<Schemas['Flow'], 'nodes' | 'edges'>): Map<string, {x: number; y: number}> {
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
  const rows: string[][] = [];
  flow.nodes.forEach(({id}) => (rows[ranks.get(id) ?? 0] ??= []).push(id));
  const xs = new Map<string, number>();
  for (const row of rows) {
    const wish = (id: string) => {
      const places = (before.get(id) ?? []).map(from => xs.get(from)).filter(x => x !== undefined);
      return places.length === 0 ? 0 : places.reduce((sum, x) => sum + x, 0) / places.length;
    };
    const sorted = [...(row ?? [])].sort((one, other) => wish(one) - wish(other));
    const middle = sorted.reduce((sum, id) => sum + wish(id), 0) / Math.max(sorted.length, 1);
    sorted.forEach((id, at) => xs.set(id, middle + (at - (sorted.length - 1) / 2) * ACROSS));
  }
  return new Map(flow.nodes.map(({id}) => [id, {x: xs.get(id) ?? 0, y: (ranks.get(id) ?? 0) * DOWN}]));
}
