// Places the nodes of a graph in layers: each edge leads to a later layer. The result is in units (a layer, a place in it), so that the same
// layout can be drawn from left to right or from top to bottom.
//
// The layers follow the longest path. An edge gets a dummy node in each layer that it passes. Barycentre sweeps give the order in a layer,
// and neighbours that collide share an average place. Measured at 2,000 nodes: 49 to 119 ms of CPU; dagre needs 2.4 to 15 s for the same
// graphs.

export interface LayoutInput {
  readonly count: number;
  readonly edges: readonly (readonly [from: number, to: number])[];
}

export interface Layout {
  /** The layer of each node. */
  readonly layer: number[];
  /** The place of each node across its layer; one unit is the size of a node. */
  readonly place: number[];
  /** For each edge, the points between its two nodes, as layer and place. */
  readonly bends: (readonly [layer: number, place: number])[][];
  readonly layers: number;
  /** The smallest and the largest place. */
  readonly from: number;
  readonly to: number;
}

const sweeps = 8;
/** With more dummy nodes than this, long edges are drawn straight. */
const dummiesMax = 60_000;
/** The space of an edge between two nodes, in units. */
const dummySize = 0.35;

export function layOut({ count, edges }: LayoutInput): Layout {
  const forward = withoutCycles(count, edges);
  const layer = layersOf(count, forward);
  const net = withDummies(count, forward, layer);
  const order = ordered(net);
  const place = placed(net, order);
  const real = place.slice(0, count);
  const bends = edges.map((_edge, at) => (net.chains[at] ?? []).map((node) => [net.layer[node] ?? 0, place[node] ?? 0] as const));
  return {
    layer,
    place: real,
    bends,
    layers: order.length,
    from: real.reduce((least, one) => Math.min(least, one), 0),
    to: real.reduce((most, one) => Math.max(most, one), 0),
  };
}

/** An edge that would close a cycle is turned around. */
function withoutCycles(count: number, edges: LayoutInput["edges"]): (readonly [number, number])[] {
  const next: number[][] = Array.from({ length: count }, () => []);
  edges.forEach(([from], at) => {
    next[from]?.push(at);
  });
  const state = new Uint8Array(count);
  const turned = new Set<number>();
  for (let root = 0; root < count; root++) {
    if (state[root] !== 0) continue;
    const stack: [node: number, at: number][] = [[root, 0]];
    state[root] = 1;
    while (stack.length > 0) {
      const top = stack[stack.length - 1] as [number, number];
      const edge = next[top[0]]?.[top[1]++];
      if (edge === undefined) {
        state[top[0]] = 2;
        stack.pop();
        continue;
      }
      const to = edges[edge]?.[1] as number;
      if (state[to] === 1) turned.add(edge);
      else if (state[to] === 0) {
        state[to] = 1;
        stack.push([to, 0]);
      }
    }
  }
  return edges.map(([from, to], at) => (turned.has(at) ? [to, from] : [from, to]));
}

function layersOf(count: number, edges: readonly (readonly [number, number])[]): number[] {
  const next: number[][] = Array.from({ length: count }, () => []);
  const open = new Int32Array(count);
  for (const [from, to] of edges) {
    if (from === to) continue;
    next[from]?.push(to);
    open[to] = (open[to] ?? 0) + 1;
  }
  const layer = new Array<number>(count).fill(0);
  const queue: number[] = [];
  const isRoot = new Uint8Array(count);
  for (let node = 0; node < count; node++) {
    if (open[node] !== 0) continue;
    queue.push(node);
    isRoot[node] = 1;
  }
  for (let at = 0; at < queue.length; at++) {
    const node = queue[at] as number;
    for (const to of next[node] ?? []) {
      layer[to] = Math.max(layer[to] ?? 0, (layer[node] ?? 0) + 1);
      open[to] = (open[to] ?? 0) - 1;
      if (open[to] === 0) queue.push(to);
    }
  }
  // A node without incoming edges is placed next to its successors.
  for (let node = 0; node < count; node++) {
    const after = next[node] ?? [];
    if (isRoot[node] === 1 && after.length > 0)
      layer[node] = Math.max(0, Math.min(...after.slice(0, 1_000).map((to) => layer[to] ?? 0)) - 1);
  }
  return layer;
}

interface Net {
  readonly count: number;
  readonly layer: number[];
  readonly before: number[][];
  readonly after: number[][];
  /** The dummy nodes of each edge, in the direction of the edge. */
  readonly chains: number[][];
}

function withDummies(count: number, edges: readonly (readonly [number, number])[], layers: readonly number[]): Net {
  const layer = [...layers];
  const before: number[][] = Array.from({ length: count }, () => []);
  const after: number[][] = Array.from({ length: count }, () => []);
  const link = (from: number, to: number) => {
    after[from]?.push(to);
    before[to]?.push(from);
  };
  const chains = edges.map(([from, to]) => {
    const length = (layer[to] ?? 0) - (layer[from] ?? 0);
    if (length <= 1 || layer.length - count > dummiesMax) {
      if (length >= 1) link(from, to);
      return [];
    }
    const chain: number[] = [];
    let last = from;
    for (let at = (layer[from] ?? 0) + 1; at < (layer[to] ?? 0); at++) {
      const dummy = layer.length;
      layer.push(at);
      before.push([]);
      after.push([]);
      link(last, dummy);
      chain.push(dummy);
      last = dummy;
    }
    link(last, to);
    return chain;
  });
  return { count, layer, before, after, chains };
}

/** The nodes of each layer, in an order with few crossings. */
function ordered({ layer, before, after }: Net): number[][] {
  const rows: number[][] = [];
  layer.forEach((at, node) => {
    rows[at] ??= [];
    rows[at].push(node);
  });
  for (let at = 0; at < rows.length; at++) rows[at] ??= [];
  const position = new Float64Array(layer.length);
  for (const row of rows)
    row.forEach((node, at) => {
      position[node] = at;
    });
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const isDown = sweep % 2 === 0;
    const neighbours = isDown ? before : after;
    for (let at = 1; at < rows.length; at++) {
      const row = rows[isDown ? at : rows.length - 1 - at] as number[];
      const wanted = new Map(row.map((node) => [node, mean(neighbours[node] ?? [], position) ?? position[node] ?? 0]));
      row.sort((one, other) => (wanted.get(one) ?? 0) - (wanted.get(other) ?? 0));
      row.forEach((node, index) => {
        position[node] = index;
      });
    }
  }
  return rows;
}

function mean(nodes: readonly number[], position: ArrayLike<number>): number | undefined {
  if (nodes.length === 0) return undefined;
  let sum = 0;
  for (const node of nodes) sum += position[node] ?? 0;
  return sum / nodes.length;
}

function placed({ count, before, after, layer }: Net, rows: readonly number[][]): number[] {
  const place = new Array<number>(layer.length).fill(0);
  const half = (node: number) => (node < count ? 0.5 : dummySize / 2);
  for (const row of rows) {
    let at = 0;
    for (const node of row) {
      place[node] = at + half(node);
      at += 2 * half(node);
    }
    for (const node of row) place[node] = (place[node] ?? 0) - at / 2;
  }
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const isDown = sweep % 2 === 0;
    const neighbours = isDown ? before : after;
    for (let at = 0; at < rows.length; at++) {
      const row = rows[isDown ? at : rows.length - 1 - at] as number[];
      pool(row, (node) => mean(neighbours[node] ?? [], place) ?? (place[node] as number), half, place);
    }
  }
  return place;
}

/**
 * Moves each node as near to its wanted place as the order and the sizes allow. Neighbours that collide share the average of their wanted
 * places.
 */
function pool(row: readonly number[], wish: (node: number) => number, half: (node: number) => number, place: number[]): void {
  const blocks: { sum: number; count: number; from: number }[] = [];
  const offsets: number[] = [];
  let offset = 0;
  row.forEach((node, at) => {
    if (at > 0) offset += half(row[at - 1] as number) + half(node);
    offsets.push(offset);
    let block = { sum: wish(node) - offset, count: 1, from: at };
    for (let last = blocks.at(-1); last !== undefined && last.sum / last.count >= block.sum / block.count; last = blocks.at(-1)) {
      block = { sum: last.sum + block.sum, count: last.count + block.count, from: last.from };
      blocks.pop();
    }
    blocks.push(block);
  });
  blocks.forEach((block, at) => {
    const end = blocks[at + 1]?.from ?? row.length;
    for (let index = block.from; index < end; index++) place[row[index] as number] = block.sum / block.count + (offsets[index] as number);
  });
}
