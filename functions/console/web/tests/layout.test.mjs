// Where the nodes and the edges of a flow's graph are: pure, without a hub and without a browser.
import assert from 'node:assert/strict';
import {readFile} from 'node:fs/promises';
import {test} from 'node:test';
import ts from 'typescript';

const source = await readFile(new URL('../src/flows/layout.ts', import.meta.url), 'utf8');
const {outputText} = ts.transpileModule(source, {compilerOptions: {target: 'ES2022', module: 'ESNext', verbatimModuleSyntax: true}});
const {layout, path, SIZE} = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);

/** A graph of the edges `from>to`. */
function graph(...edges) {
  const pairs = edges.map(edge => edge.split('>'));
  return {nodes: [...new Set(pairs.flat())].map(id => ({id})), edges: pairs.map(([from, to]) => ({from, to}))};
}

/** The points of an edge as it is drawn, close to each other. */
function drawn(flow, {places, lanes}, at) {
  const [from, to] = [places.get(flow.edges[at].from), places.get(flow.edges[at].to)];
  const half = SIZE.width / 2;
  const numbers = path([{x: from.x + half, y: from.y + SIZE.height}, ...lanes[at], {x: to.x + half, y: to.y}]).match(/-?[\d.]+/g).map(Number);
  const points = [];
  for (let begin = 0; begin + 8 <= numbers.length; begin += 6) {
    const [ax, ay, bx, by, cx, cy, dx, dy] = numbers.slice(begin, begin + 8);
    for (let step = 0; step <= 40; step++) {
      const [t, u] = [step / 40, 1 - step / 40];
      const on = (a, b, c, d) => u ** 3 * a + 3 * u * u * t * b + 3 * u * t * t * c + t ** 3 * d;
      points.push({x: on(ax, bx, cx, dx), y: on(ay, by, cy, dy)});
    }
  }
  return points;
}

/** The nodes that an edge runs behind, and nodes that lie on each other. */
function faults(flow) {
  const picture = layout(flow);
  const boxes = [...picture.places];
  const found = [];
  flow.edges.forEach(({from, to}, at) => {
    for (const {x, y} of drawn(flow, picture, at)) {
      const behind = boxes.find(([, box]) => x > box.x && x < box.x + SIZE.width && y > box.y && y < box.y + SIZE.height);
      if (behind) found.push(`${from}>${to} is behind ${behind[0]}`);
    }
  });
  boxes.forEach(([id, box], at) => boxes.slice(at + 1).forEach(([other, {x, y}]) => {
    if (Math.abs(x - box.x) < SIZE.width && y === box.y) found.push(`${id} is on ${other}`);
  }));
  return [...new Set(found)];
}

const PLAN = graph('receive>plan', 'plan>gate', 'gate>approval', 'gate>ready', 'approval>ready', 'approval>rejected', 'ready>steps', 'steps>do');

test('an edge that passes a node goes beside it', () => {
  assert.deepEqual(faults(PLAN), []);
  const {places, lanes} = layout(PLAN);
  assert.deepEqual(lanes.map(points => points.length), [0, 0, 0, 2, 0, 0, 0, 0]);
  // The nodes before the branch stay below each other.
  assert.deepEqual(['receive', 'plan', 'gate', 'approval'].map(id => places.get(id).x), Array(4).fill(-SIZE.width / 2));
  // The lane comes to its node without a crossing.
  assert.ok(lanes[3][0].x > places.get('approval').x + SIZE.width && places.get('ready').x > places.get('rejected').x);
});

test('nodes of a chain are below each other, and branches on both sides', () => {
  const {places, lanes} = layout(graph('a>b', 'b>c', 'c>d', 'c>e', 'd>f', 'e>f'));
  const middle = -SIZE.width / 2;
  assert.deepEqual([...places], [
    ['a', {x: middle, y: 0}], ['b', {x: middle, y: 104}], ['c', {x: middle, y: 208}],
    ['d', {x: middle - 115, y: 312}], ['e', {x: middle + 115, y: 312}], ['f', {x: middle, y: 416}],
  ]);
  assert.ok(lanes.every(points => points.length === 0));
});

test('no edge runs behind a node, whatever the graph', () => {
  // A generator of numbers whose sequence is always the same.
  let state = 1;
  const below = limit => { state = (state * 48271) % 2147483647; return state % limit; };
  for (let round = 0; round < 300; round++) {
    const size = 2 + below(24);
    const edges = [];
    for (let to = 1; to < size; to++) {
      const ways = 1 + below(3);
      for (let way = 0; way < ways; way++) edges.push(`n${below(to)}>n${to}`);
    }
    assert.deepEqual(faults(graph(...edges)), [], edges.join(' '));
  }
});

test('a graph with a circle, of a flow with faults, has places', () => {
  const {places} = layout(graph('a>b', 'b>a', 'b>c', 'c>c'));
  assert.ok([...places.values()].every(({x, y}) => Number.isFinite(x) && Number.isFinite(y)));
});
