/** The files around a file: each on the ring of its distance, with the links between them. */
import {Background, Controls, Handle, Position, ReactFlow, type Edge, type Node, type NodeProps} from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import {memo, useMemo} from 'react';
import type {Schemas} from '../hub.ts';
import {counted, nameOf} from '../ui.tsx';

type Network = Schemas['Network'];
type Shown = Node<{node: Schemas['NetworkNode']}, 'file'>;

const File = memo(function File({data: {node}}: NodeProps<Shown>) {
  return (
    <div className={`node ${node.distance === 0 ? 'running' : ''}`}>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <strong>{nameOf(node.path)}</strong>
      <span className="faint"><span className="grow">{node.path.replace(/\/[^/]*$/, '') || '/'}</span></span>
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
});
const TYPES = {file: File};
/** All nodes have one size, so that nothing is measured. The handles are in the middle: links come from all sides. */
const SIZE = {width: 190, height: 56};
const HANDLES = (['target', 'source'] as const).map(type => ({type, position: Position.Top, x: SIZE.width / 2, y: SIZE.height / 2, width: 1, height: 1}));

/** The place of each file: the rings grow with the number of files on them, so that none covers another. */
export function places(nodes: readonly Pick<Schemas['NetworkNode'], 'file_id' | 'distance'>[]): Map<string, {x: number; y: number}> {
  const rings = new Map<number, string[]>();
  nodes.forEach(({file_id, distance}) => rings.set(distance, [...(rings.get(distance) ?? []), file_id]));
  const found = new Map<string, {x: number; y: number}>();
  let radius = 0;
  for (const [distance, ids] of [...rings].sort(([one], [other]) => one - other)) {
    radius = distance === 0 ? 0 : Math.max(radius + 190, ids.length * (SIZE.width + 30) / (2 * Math.PI));
    ids.forEach((id, at) => {
      const angle = -Math.PI / 2 + 2 * Math.PI * (at + (distance % 2 === 0 ? 0.5 : 0)) / ids.length;
      found.set(id, {x: Math.round(radius * Math.cos(angle) * 1.25), y: Math.round(radius * Math.sin(angle))});
    });
  }
  return found;
}

export default function NetworkGraph({network, onChoose}: {network: Network; onChoose: (path: string) => void}) {
  const at = useMemo(() => places(network.nodes), [network]);
  const pathOf = new Map(network.nodes.map(node => [node.file_id, node.path]));
  const nodes: Shown[] = network.nodes.map(node => ({
    id: node.file_id, type: 'file', position: at.get(node.file_id) ?? {x: 0, y: 0}, data: {node}, ...SIZE, measured: SIZE, handles: HANDLES, zIndex: 1,
    ariaLabel: `${node.path}, ${node.distance === 0 ? 'this file' : `${counted(node.distance, 'link')} away`}`,
  }));
  const edges: Edge[] = network.edges.map((edge, key) => ({
    id: `${key}`, source: edge.from, target: edge.to, type: 'straight', label: edge.kind, focusable: false, style: {stroke: 'var(--line-strong)'},
  }));
  const choose = (id: string) => {
    const path = pathOf.get(id);
    if (path !== undefined && network.nodes[0]?.file_id !== id) onChoose(path);
  };
  return (
    <div className="graph" onKeyDown={event => event.key === 'Enter' && choose((event.target as HTMLElement).dataset.id ?? '')}>
      <ReactFlow
        key={network.nodes[0]?.file_id} nodes={nodes} edges={edges} nodeTypes={TYPES} fitView fitViewOptions={{padding: 0.15, maxZoom: 1}} minZoom={0.1}
        nodesDraggable={false} nodesConnectable={false} edgesFocusable={false} onNodeClick={(_, node) => choose(node.id)}
      >
        <Background gap={22} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}
