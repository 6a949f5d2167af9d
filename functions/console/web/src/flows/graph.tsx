/** The graph of a flow, painted with a run. */
import {Background, BaseEdge, Controls, Handle, Position, ReactFlow, type Edge, type EdgeProps, type Node, type NodeProps, type ReactFlowInstance} from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import {memo, useEffect, useMemo, useRef, type KeyboardEvent} from 'react';
import type {Schemas} from '../hub.ts';
import {duration} from '../ui.tsx';
import type {NodeState, Run} from './fold.ts';
import {layout, path, SIZE, type Point} from './layout.ts';

type Shown = Node<{node: Schemas['FlowNode']; state: NodeState | undefined; isMarked: boolean}, 'step'>;
type Routed = Edge<{lanes: Point[]}, 'routed'>;

const WORDS: Record<NodeState['status'], string> = {running: 'runs', waiting: 'waits', asks: 'asks', done: 'done', failed: 'failed', skipped: 'stopped'};

const Step = memo(function Step({data: {node, state, isMarked}}: NodeProps<Shown>) {
  const counted = state?.total !== undefined && state.total > 1 ? ` ${state.arrived ?? 0}/${state.total}` : '';
  const told = state ? `${WORDS[state.status]}${counted}` : node.role;
  return (
    <div className={`node ${state?.status ?? ''} ${node.role === 'merge' || node.role === 'exit' ? 'quiet' : ''} ${isMarked ? 'marked' : ''}`}>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      <strong>{node.name ?? node.id}</strong>
      <span className="faint"><span>{node.agent ?? node.op}</span><span>{told}{state?.ms !== undefined ? ` · ${duration(state.ms)}` : ''}</span></span>
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </div>
  );
});
const TYPES = {step: Step};

/** The label is where the edge has left its node: further on, those of other edges are. */
const Route = memo(function Route({sourceX, sourceY, targetX, targetY, data, label, style}: EdgeProps<Routed>) {
  const [from, to] = [{x: sourceX, y: sourceY}, {x: targetX, y: targetY}];
  const next = data?.lanes[0] ?? to;
  return <BaseEdge path={path([from, ...data?.lanes ?? [], to])} label={label} labelX={(from.x + next.x) / 2} labelY={(from.y + next.y) / 2} style={style} />;
});
const EDGES = {routed: Route};

const FIT = {padding: 0.12, maxZoom: 1};

/** All nodes have one size, so that nothing is measured: a node that is measured is hidden until then, after each change. */
const HANDLES = [
  {type: 'target' as const, position: Position.Top, x: SIZE.width / 2, y: 0, width: 1, height: 1},
  {type: 'source' as const, position: Position.Bottom, x: SIZE.width / 2, y: SIZE.height, width: 1, height: 1},
];

export default function Graph({flow, run, onChoose, marked, id}: {
  flow: Schemas['Flow']; run?: Run | undefined; onChoose?: (node: string) => void;
  /** Nodes that differ from those of another run. */
  marked?: ReadonlySet<string>;
  /** Of a graph that is not the only one of its page. */
  id?: string;
}) {
  const {places, lanes} = useMemo(() => layout(flow), [flow]);
  const nodes: Shown[] = flow.nodes.map(node => {
    const state = run?.nodes.get(node.id);
    return {
      id: node.id, type: 'step', position: places.get(node.id) ?? {x: 0, y: 0}, data: {node, state, isMarked: marked?.has(node.id) ?? false}, ...SIZE, measured: SIZE, handles: HANDLES,
      ariaLabel: `${node.name ?? node.id}, ${node.role}${state ? `, ${WORDS[state.status]}` : ''}${marked?.has(node.id) ? ', differs' : ''}`,
    };
  });
  const edges: Routed[] = flow.edges.map((edge, at) => {
    const isTaken = run?.taken.has(`${edge.from}>${edge.to}`) ?? false;
    return {
      id: `${at}`, type: 'routed', source: edge.from, target: edge.to, data: {lanes: lanes[at] ?? []}, ...(edge.label ? {label: edge.label} : {}), focusable: false,
      animated: isTaken && run?.nodes.get(edge.to)?.status === 'running',
      style: {stroke: isTaken ? 'var(--good)' : 'var(--line-strong)', strokeWidth: isTaken ? 2 : 1},
    };
  });
  // A page that becomes narrower, such as a phone that is turned, shows the whole graph again.
  const frame = useRef<HTMLDivElement>(null);
  const shown = useRef<ReactFlowInstance<Shown, Routed>>(undefined);
  useEffect(() => {
    const observer = new ResizeObserver(() => void shown.current?.fitView(FIT));
    if (frame.current) observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  // The library tells of clicks alone.
  const pressed = (event: KeyboardEvent) => {
    const node = (event.target as HTMLElement).closest<HTMLElement>('.react-flow__node')?.dataset.id;
    if (node === undefined || onChoose === undefined || (event.key !== 'Enter' && event.key !== ' ')) return;
    event.preventDefault();
    onChoose(node);
  };
  return (
    <div className="graph" ref={frame} onKeyDown={pressed}>
      <ReactFlow
        {...(id === undefined ? {} : {id})}
        nodes={nodes} edges={edges} nodeTypes={TYPES} edgeTypes={EDGES} fitView fitViewOptions={FIT} minZoom={0.15} onInit={instance => { shown.current = instance; }}
        nodesDraggable={false} nodesConnectable={false} edgesFocusable={false} onNodeClick={(_, node) => onChoose?.(node.id)}
      >
        <Background gap={22} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </div>
  );
}
