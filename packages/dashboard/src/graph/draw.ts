// Draws the visible part of a graph on a canvas, in the colours of the page.

import { durationText } from "../core/format.ts";
import type { Layout } from "./layout.ts";
import { type GraphModel, type StepState, stateOf } from "./model.ts";

export const nodeWidth = 184;
export const nodeHeight = 44;

export interface View {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

/** The middle of each node and the points of each edge, in pixels at scale 1. */
export interface Drawing {
  readonly model: GraphModel;
  readonly isAcross: boolean;
  readonly nodes: readonly (readonly [x: number, y: number])[];
  readonly edges: readonly (readonly (readonly [number, number])[])[];
  readonly width: number;
  readonly height: number;
}

const gapAlong = 64;
const gapAcross = 14;

/** Chooses the direction in which the graph is larger in view. */
export function drawingOf(model: GraphModel, layout: Layout, view: { width: number; height: number }): Drawing {
  const span = layout.to - layout.from + 1;
  const across = { width: layout.layers * (nodeWidth + gapAlong) - gapAlong, height: span * (nodeHeight + gapAcross) };
  const down = { width: span * (nodeWidth + 20), height: layout.layers * (nodeHeight + 40) - 40 };
  const fit = (size: { width: number; height: number }) => Math.min(view.width / size.width, view.height / size.height);
  // From left to right, unless the graph is much larger from top to bottom.
  const isAcross = fit(across) * 1.4 >= Math.min(1, fit(down));
  const { width, height } = isAcross ? across : down;
  const pixel = (layer: number, place: number): [number, number] =>
    isAcross
      ? [layer * (nodeWidth + gapAlong) + nodeWidth / 2, (place - layout.from + 0.5) * (nodeHeight + gapAcross)]
      : [(place - layout.from + 0.5) * (nodeWidth + 20), layer * (nodeHeight + 40) + nodeHeight / 2];
  const nodes = layout.layer.map((layer, at) => pixel(layer, layout.place[at] ?? 0));
  const edges = model.edges.map(({ from, to }, at) => {
    const start = nodes[from] as [number, number];
    const end = nodes[to] as [number, number];
    // An edge is straight within each layer that it passes, and bends only between layers, where there are no nodes.
    const half = (isAcross ? nodeWidth : nodeHeight) / 2;
    const bends = (layout.bends[at] ?? []).flatMap(([layer, place]): [number, number][] => {
      const [x, y] = pixel(layer, place);
      return isAcross
        ? [
            [x - half, y],
            [x + half, y],
          ]
        : [
            [x, y - half],
            [x, y + half],
          ];
    });
    return [start, ...((layout.layer[from] ?? 0) > (layout.layer[to] ?? 0) ? bends.reverse() : bends), end];
  });
  return { model, isAcross, nodes, edges, width, height };
}

export interface Paint {
  readonly drawing: Drawing;
  readonly view: View;
  readonly size: { readonly width: number; readonly height: number };
  readonly states: ReadonlyMap<number, StepState>;
  /** The numbers of the steps in their run. */
  readonly numbers: readonly number[];
  readonly selected: number | null;
  readonly matches: ReadonlySet<number> | null;
  readonly colors: Colors;
}

export interface Colors {
  readonly surface: string;
  readonly line: string;
  readonly text: string;
  readonly dim: string;
  readonly accent: string;
  readonly tones: Readonly<Record<string, string>>;
}

const toneOf: Readonly<Record<string, string>> = {
  ...{ done: "good", failed: "bad", held: "busy", queued: "warn", offered: "warn", awaiting: "warn", sleeping: "calm", cancelling: "warn" },
  ...{ cancelled: "calm", skipped: "calm", waiting: "idle", plan: "calm" },
};

export function paint(context: CanvasRenderingContext2D, given: Paint): void {
  const { drawing, view, size } = given;
  const ratio = devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
  context.setTransform(ratio * view.scale, 0, 0, ratio * view.scale, ratio * view.x, ratio * view.y);
  if (view.scale < farScale) return paintFar(context, given);
  const seen = {
    left: -view.x / view.scale - nodeWidth,
    right: (size.width - view.x) / view.scale + nodeWidth,
    top: -view.y / view.scale - nodeHeight,
    bottom: (size.height - view.y) / view.scale + nodeHeight,
  };
  drawing.edges.forEach((points, at) => {
    if (isOutside(points, seen)) return;
    paintEdge(context, given, at, points);
  });
  drawing.nodes.forEach(([x, y], at) => {
    if (x > seen.left && x < seen.right && y > seen.top && y < seen.bottom) paintNode(context, given, at, x, y);
  });
}

/** Below this scale no text can be read. */
const farScale = 0.22;

/** From afar: straight edges in one path, and a filled box for each node, with one path for each colour. 10,000 nodes take a few milliseconds. */
function paintFar(context: CanvasRenderingContext2D, { drawing, view, states, numbers, selected, matches, colors }: Paint): void {
  context.strokeStyle = colors.line;
  context.lineWidth = 1 / view.scale;
  context.globalAlpha = 0.5;
  context.beginPath();
  for (const [first, ...rest] of drawing.edges) {
    if (first !== undefined) context.moveTo(first[0], first[1]);
    for (const [x, y] of rest) context.lineTo(x, y);
  }
  context.stroke();
  const groups = new Map<string, [number, number][]>();
  drawing.nodes.forEach(([x, y], at) => {
    const node = drawing.model.nodes[at];
    if (node === undefined) return;
    const tone = matches !== null && !matches.has(at) ? "faint" : (toneOf[stateOf(node, states, numbers).state] ?? "idle");
    const group = groups.get(tone);
    if (group === undefined) groups.set(tone, [[x, y]]);
    else group.push([x, y]);
  });
  context.globalAlpha = 1;
  for (const [tone, nodes] of groups) {
    context.fillStyle = tone === "faint" ? colors.line : (colors.tones[tone] ?? colors.dim);
    context.beginPath();
    for (const [x, y] of nodes) context.rect(x - nodeWidth / 2 + 8, y - nodeHeight / 2 + 6, nodeWidth - 16, nodeHeight - 12);
    context.fill();
  }
  const chosen = selected === null ? undefined : drawing.nodes[selected];
  if (chosen === undefined) return;
  context.strokeStyle = colors.accent;
  context.lineWidth = 3 / view.scale;
  context.strokeRect(chosen[0] - nodeWidth / 2, chosen[1] - nodeHeight / 2, nodeWidth, nodeHeight);
}

interface Area {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

function isOutside(points: readonly (readonly [number, number])[], { left, right, top, bottom }: Area): boolean {
  return (
    points.every(([x]) => x < left) ||
    points.every(([x]) => x > right) ||
    points.every(([, y]) => y < top) ||
    points.every(([, y]) => y > bottom)
  );
}

function paintEdge(
  context: CanvasRenderingContext2D,
  { drawing, view, colors, states, numbers }: Paint,
  at: number,
  points: readonly (readonly [number, number])[],
): void {
  const edge = drawing.model.edges[at];
  if (edge === undefined) return;
  const { isAcross } = drawing;
  const from = drawing.model.nodes[edge.from];
  const to = drawing.model.nodes[edge.to];
  const isTaken =
    from !== undefined &&
    to !== undefined &&
    stateOf(to, states, numbers).state !== "waiting" &&
    stateOf(from, states, numbers).state !== "waiting";
  context.strokeStyle = isTaken ? colors.dim : colors.line;
  context.fillStyle = context.strokeStyle;
  context.lineWidth = isTaken ? 1.5 : 1.2;
  context.setLineDash(edge.kind === "after" ? [] : [5, 4]);
  const ends = points.map(([x, y], index): [number, number] => {
    const shift = index === 0 ? 1 : index === points.length - 1 ? -1 : 0;
    return isAcross ? [x + (shift * nodeWidth) / 2 - (shift < 0 ? 6 : 0), y] : [x, y + (shift * nodeHeight) / 2 - (shift < 0 ? 6 : 0)];
  });
  context.beginPath();
  let [lastX, lastY] = ends[0] as [number, number];
  context.moveTo(lastX, lastY);
  for (const [x, y] of ends.slice(1)) {
    const half = isAcross ? (x - lastX) / 2 : (y - lastY) / 2;
    if (isAcross) context.bezierCurveTo(lastX + half, lastY, x - half, y, x, y);
    else context.bezierCurveTo(lastX, lastY + half, x, y - half, x, y);
    [lastX, lastY] = [x, y];
  }
  context.stroke();
  context.setLineDash([]);
  context.beginPath();
  context.moveTo(lastX + (isAcross ? 6 : 0), lastY + (isAcross ? 0 : 6));
  context.lineTo(lastX - (isAcross ? 1 : 4), lastY - (isAcross ? 4 : 1));
  context.lineTo(lastX - (isAcross ? 1 : -4), lastY + (isAcross ? 4 : -1));
  context.fill();
  if (edge.label === null || view.scale < 0.45) return;
  const [startX, startY] = ends[0] as [number, number];
  const [nextX, nextY] = ends[1] as [number, number];
  const [x, y] = [startX + (nextX - startX) * 0.5, startY + (nextY - startY) * 0.5];
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  const text = shortened(context, edge.label, 90);
  const width = context.measureText(text).width + 8;
  context.fillStyle = colors.surface;
  context.fillRect(x - width / 2, y - 8, width, 16);
  context.fillStyle = colors.dim;
  context.fillText(text, x, y + 4);
}

function paintNode(context: CanvasRenderingContext2D, given: Paint, at: number, x: number, y: number): void {
  const { drawing, states, numbers, selected, matches, colors } = given;
  const node = drawing.model.nodes[at];
  if (node === undefined) return;
  const found = stateOf(node, states, numbers);
  const tone = colors.tones[toneOf[found.state] ?? "idle"] ?? colors.dim;
  const [left, top] = [x - nodeWidth / 2, y - nodeHeight / 2];
  const isFaint = found.state === "waiting" || (matches !== null && !matches.has(at));
  context.globalAlpha = matches !== null && !matches.has(at) ? 0.35 : 1;
  context.beginPath();
  context.roundRect(left, top, nodeWidth, nodeHeight, node.kind === "task" || node.kind === "group" ? 6 : nodeHeight / 2);
  context.fillStyle = colors.surface;
  context.fill();
  context.lineWidth = at === selected ? 2.5 : 1.2;
  context.strokeStyle = at === selected ? colors.accent : isFaint ? colors.line : tone;
  context.setLineDash(found.state === "waiting" && at !== selected ? [4, 3] : []);
  context.stroke();
  context.setLineDash([]);
  if (node.kind === "group") {
    context.beginPath();
    context.roundRect(left + 4, top + nodeHeight, nodeWidth - 8, 4, [0, 0, 4, 4]);
    context.stroke();
  }
  paintMark(context, found.state, tone, left + 18, y);
  context.textAlign = "left";
  context.fillStyle = found.state === "waiting" ? colors.dim : colors.text;
  context.font = "600 12px system-ui, sans-serif";
  const note = noteOf(node, found);
  const textY = note === "" ? y + 4 : y - 3;
  const label = node.kind === "group" ? `${node.label} (${node.steps.length} steps)` : node.label;
  context.fillText(shortened(context, label, nodeWidth - 46), left + 34, textY);
  if (note !== "") {
    context.fillStyle = colors.dim;
    context.font = "11px system-ui, sans-serif";
    context.fillText(shortened(context, note, nodeWidth - 46), left + 34, y + 13);
  }
  context.globalAlpha = 1;
}

function noteOf(node: { readonly note: string }, { attempts, durationMs, state }: StepState): string {
  const parts = [
    ...(node.note === "" ? [] : [node.note]),
    ...(attempts > 1 ? [`attempt ${attempts}`] : []),
    ...(durationMs === null || state === "waiting" ? [] : [durationText(durationMs)]),
  ];
  return parts.join(" · ");
}

/** The same marks as in lists: a tick, a cross, a triangle, a clock. */
function paintMark(context: CanvasRenderingContext2D, state: string, tone: string, x: number, y: number): void {
  context.beginPath();
  context.arc(x, y, 8, 0, 2 * Math.PI);
  context.strokeStyle = tone;
  context.lineWidth = 1.5;
  if (state === "waiting" || state === "plan") {
    context.stroke();
    return;
  }
  context.fillStyle = tone;
  context.fill();
  context.strokeStyle = context.fillStyle = "#fff";
  context.beginPath();
  const line = (...points: number[]) => {
    for (let at = 0; at < points.length; at += 2)
      context[at === 0 ? "moveTo" : "lineTo"](x + (points[at] as number), y + (points[at + 1] as number));
  };
  if (state === "done") line(-3.5, 0, -1, 2.8, 3.8, -2.8);
  else if (state === "failed") {
    line(-3, -3, 3, 3);
    line(3, -3, -3, 3);
  } else if (state === "held") line(-2, -3.5, 3.5, 0, -2, 3.5, -2, -3.5);
  else if (["queued", "offered", "sleeping", "awaiting"].includes(state)) line(0, -4, 0, 0.5, 3, 2.5);
  else line(-3, 0, 3, 0);
  context.stroke();
  if (state === "held") context.fill();
}

const measured = new Map<string, string>();

/** A text that fits, with an ellipsis in its middle. */
function shortened(context: CanvasRenderingContext2D, text: string, width: number): string {
  const key = `${context.font} ${width} ${text}`;
  const known = measured.get(key);
  if (known !== undefined) return known;
  let short = text.length > 200 ? text.slice(0, 200) : text;
  while (short.length > 4 && context.measureText(short).width > width) {
    const half = Math.floor((short.length - 2) / 2);
    short = `${short.slice(0, half)}…${short.slice(short.length - half)}`;
  }
  if (measured.size > 20_000) measured.clear();
  measured.set(key, short);
  return short;
}
