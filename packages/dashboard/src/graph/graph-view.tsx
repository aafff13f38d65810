// The graph of a run on one canvas. Only the selected node is an HTML element: it has the name, the state and the focus. The list of steps
// is the accessible form of the whole graph.

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { theme } from "../core/prefs.ts";
import type { RunGraph } from "../core/shapes.ts";
import { Button } from "../ui/parts.tsx";
import { lookOf } from "../ui/states.tsx";
import { type Colors, type Drawing, drawingOf, nodeHeight, nodeWidth, paint, type View } from "./draw.ts";
import { groupsOf, modelOf, type StepState, stateOf } from "./model.ts";
import { requestLayout } from "./request-layout.ts";

interface GraphViewProps {
  readonly graph: RunGraph;
  /** By the number of the step in its run. */
  readonly states: ReadonlyMap<number, StepState>;
  /** The selected step, as a place in the columns of the graph. */
  readonly selected: number | null;
  readonly onSelect: (at: number | null) => void;
}

const directions: Readonly<Record<string, readonly [number, number]>> = {
  ...{ ArrowRight: [1, 0], ArrowLeft: [-1, 0] },
  ...{ ArrowDown: [0, 1], ArrowUp: [0, -1] },
};
const scaleMin = 0.03;
const scaleMax = 2;
const margin = 24;

export function GraphView({ graph, states, selected, onSelect }: GraphViewProps) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawing = useSignal<Drawing | null>(null);
  const view = useSignal<View>({ x: 0, y: 0, scale: 1 });
  const size = useSignal({ width: 0, height: 0 });
  const text = useSignal("");
  const unfolded = useSignal<ReadonlySet<number>>(new Set());
  const isMoved = useRef(false);
  const folded = useMemo(() => new Set([...groupsOf(graph)].filter((group) => !unfolded.value.has(group))), [graph, unfolded.value]);
  const model = useMemo(() => modelOf(graph, folded), [graph, folded]);
  const colors = useColors(box);

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      size.value = { width: element.clientWidth, height: element.clientHeight };
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [size]);

  useEffect(() => {
    let isOver = false;
    void requestLayout({ count: model.nodes.length, edges: model.edges.map(({ from, to }) => [from, to]) }).then((layout) => {
      if (isOver) return;
      const element = box.current;
      drawing.value = drawingOf(model, layout, { width: element?.clientWidth ?? 800, height: element?.clientHeight ?? 400 });
      performance.mark("longshore:graph");
      if (!isMoved.current) fit();
    });
    return () => {
      isOver = true;
    };
  }, [model]);

  const fit = () => {
    const made = drawing.peek();
    const { width, height } = size.peek();
    if (made === null || width === 0) return;
    const scale = Math.min(1, Math.max(scaleMin, Math.min((width - 2 * margin) / made.width, (height - 2 * margin) / made.height)));
    view.value = { scale, x: (width - made.width * scale) / 2, y: (height - made.height * scale) / 2 };
  };
  useEffect(() => {
    if (!isMoved.current) fit();
  }, [size.value]);

  const node = selected === null ? null : (model.nodeOf[selected] ?? null);
  const matches = useMemo(() => matching(model, text.value), [model, text.value]);
  useEffect(() => {
    const frame = requestAnimationFrame(() => {
      const context = canvas.current?.getContext("2d");
      if (!context || drawing.value === null || colors.value === null || drawing.value.model !== model) return;
      const element = canvas.current as HTMLCanvasElement;
      const ratio = devicePixelRatio || 1;
      const [width, height] = [Math.round(size.value.width * ratio), Math.round(size.value.height * ratio)];
      if (element.width !== width || element.height !== height) Object.assign(element, { width, height });
      paint(context, {
        ...{ drawing: drawing.value, view: view.value, size: size.value, states, numbers: graph.nodes, selected: node, matches },
        colors: colors.value,
      });
    });
    return () => cancelAnimationFrame(frame);
  }, [drawing.value, view.value, size.value, states, node, matches, colors.value, graph, model]);

  // A node that was selected elsewhere is moved into view.
  useEffect(() => {
    const made = drawing.value;
    const middle = node === null ? undefined : made?.nodes[node];
    if (middle === undefined || made?.model !== model) return;
    const { x, y, scale } = view.peek();
    const [left, top] = [x + middle[0] * scale, y + middle[1] * scale];
    const { width, height } = size.peek();
    const room = (nodeWidth / 2) * scale;
    if (left > room && left < width - room && top > 20 && top < height - 20) return;
    view.value = { scale, x: width / 2 - middle[0] * scale, y: height / 2 - middle[1] * scale };
  }, [node, drawing.value]);

  const zoom = (factor: number, at = { x: size.value.width / 2, y: size.value.height / 2 }) => {
    isMoved.current = true;
    const { x, y, scale } = view.value;
    const next = Math.min(scaleMax, Math.max(scaleMin, scale * factor));
    view.value = { scale: next, x: at.x - ((at.x - x) * next) / scale, y: at.y - ((at.y - y) * next) / scale };
  };

  const pick = (x: number, y: number) => {
    const made = drawing.value;
    if (made === null) return;
    const point = { x: (x - view.value.x) / view.value.scale, y: (y - view.value.y) / view.value.scale };
    const found = made.nodes.findIndex(
      ([left, top]) => Math.abs(left - point.x) <= nodeWidth / 2 && Math.abs(top - point.y) <= nodeHeight / 2,
    );
    choose(found < 0 ? null : found);
  };

  const choose = (found: number | null) => {
    const chosen = found === null ? undefined : model.nodes[found];
    if (chosen?.group !== undefined && chosen.group !== null) unfolded.value = new Set([...unfolded.value, chosen.group]);
    else onSelect(chosen?.steps[0] ?? null);
  };

  /** An arrow key selects the next node along an edge, or the nearest node beside it. */
  const step = (key: string) => {
    const made = drawing.value;
    if (made === null) return;
    const [x, y] = made.nodes[node ?? 0] ?? [0, 0];
    const [dx, dy] = directions[key] ?? [0, 0];
    if (node === null) return choose(0);
    let best = -1;
    let least = Number.POSITIVE_INFINITY;
    made.nodes.forEach(([left, top], at) => {
      const along = (left - x) * dx + (top - y) * dy;
      const aside = Math.abs((left - x) * dy) + Math.abs((top - y) * dx);
      if (along <= 1 || at === node) return;
      const cost = along + aside * 2;
      if (cost < least) [least, best] = [cost, at];
    });
    if (best >= 0) choose(best);
  };

  return (
    <div
      class="graph"
      ref={box}
      onKeyDown={(event) => {
        if ((event.target as Element).closest("input") !== null) return;
        if (event.key.startsWith("Arrow")) step(event.key);
        else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1.25 : 0.8);
        else if (event.key === "0") fit();
        else return;
        event.preventDefault();
        event.stopPropagation();
      }}
    >
      <canvas
        ref={canvas}
        aria-hidden="true"
        style={{ width: `${size.value.width}px`, height: `${size.value.height}px` }}
        onPointerDown={(event) => drag(event, view, isMoved, pick)}
        onWheel={(event) => {
          event.preventDefault();
          const rect = event.currentTarget.getBoundingClientRect();
          const at = { x: event.clientX - rect.left, y: event.clientY - rect.top };
          if (event.ctrlKey || !event.shiftKey) zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), at);
          else view.value = { ...view.value, x: view.value.x - event.deltaY };
        }}
      />
      <SelectedNode drawing={drawing.value} view={view.value} at={node} states={states} graph={graph} />
      <div class="graph-tools">
        <input
          type="search"
          placeholder="Find a step"
          aria-label="Find a step in the graph"
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
          onKeyDown={(event) => {
            const first = matches === null ? undefined : [...matches][0];
            if (event.key === "Enter" && first !== undefined) choose(first);
          }}
        />
        {unfolded.value.size > 0 && (
          <Button
            label="Fold groups"
            onClick={() => {
              unfolded.value = new Set();
            }}
          />
        )}
        <Button kind="icon" icon="minus" label="Smaller" onClick={() => zoom(0.8)} />
        <Button kind="icon" icon="plus" label="Larger" onClick={() => zoom(1.25)} />
        <Button
          kind="icon"
          icon="fit"
          label="Show all"
          onClick={() => {
            isMoved.current = false;
            fit();
          }}
        />
      </div>
      {graph.isCut && <p class="graph-note">This run has too many edges: some are left out.</p>}
    </div>
  );
}

interface SelectedNodeProps extends Pick<GraphViewProps, "states" | "graph"> {
  readonly drawing: Drawing | null;
  readonly view: View;
  readonly at: number | null;
}

/** Without a selection, the graph itself can have the focus, and the arrow keys select the first node. */
function SelectedNode({ drawing, view, at, states, graph }: SelectedNodeProps) {
  const middle = at === null ? undefined : drawing?.nodes[at];
  const node = at === null ? undefined : drawing?.model.nodes[at];
  if (middle === undefined || node === undefined) {
    return (
      <button type="button" class="graph-entry">
        Graph with {drawing?.model.nodes.length ?? 0} nodes. The arrow keys lead from node to node.
      </button>
    );
  }
  const { word } = lookOf(stateOf(node, states, graph.nodes).state);
  return (
    <button
      type="button"
      class="graph-node"
      aria-label={`${node.label}, ${word}`}
      style={{
        width: `${nodeWidth * view.scale}px`,
        height: `${nodeHeight * view.scale}px`,
        transform: `translate(${view.x + (middle[0] - nodeWidth / 2) * view.scale}px, ${view.y + (middle[1] - nodeHeight / 2) * view.scale}px)`,
      }}
    />
  );
}

function matching(model: ReturnType<typeof modelOf>, text: string): ReadonlySet<number> | null {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return null;
  return new Set(model.nodes.flatMap(({ label }, at) => (label.toLowerCase().includes(wanted) ? [at] : [])));
}

function drag(event: PointerEvent, view: { value: View }, isMoved: { current: boolean }, pick: (x: number, y: number) => void): void {
  if (event.button !== 0) return;
  const canvas = event.currentTarget as HTMLCanvasElement;
  const { x, y } = view.value;
  const start = { x: event.clientX, y: event.clientY };
  let isDrag = false;
  canvas.setPointerCapture(event.pointerId);
  const move = (next: PointerEvent) => {
    const [dx, dy] = [next.clientX - start.x, next.clientY - start.y];
    isDrag ||= Math.hypot(dx, dy) > 4;
    if (!isDrag) return;
    isMoved.current = true;
    view.value = { ...view.value, x: x + dx, y: y + dy };
  };
  const end = (last: PointerEvent) => {
    canvas.removeEventListener("pointermove", move);
    const rect = canvas.getBoundingClientRect();
    if (!isDrag) pick(last.clientX - rect.left, last.clientY - rect.top);
  };
  canvas.addEventListener("pointermove", move);
  canvas.addEventListener("pointerup", end, { once: true });
  canvas.addEventListener("pointercancel", () => canvas.removeEventListener("pointermove", move), { once: true });
}

const tones = ["good", "bad", "busy", "warn", "calm", "idle"];

/** The colours of the page for the canvas. They are read again after a change of theme. */
function useColors(box: { current: HTMLElement | null }) {
  const colors = useSignal<Colors | null>(null);
  useEffect(() => {
    const read = () => {
      const element = box.current;
      if (element === null) return;
      const probe = document.createElement("span");
      element.append(probe);
      const of = (name: string) => {
        probe.className = name;
        return getComputedStyle(probe).color;
      };
      colors.value = {
        ...{ surface: of("ink-surface"), line: of("ink-line"), text: of("ink-text"), dim: of("ink-dim"), accent: of("ink-accent") },
        tones: Object.fromEntries(tones.map((tone) => [tone, of(`tone-${tone}`)])),
      };
      probe.remove();
    };
    // After the theme has been applied to the document.
    const frame = requestAnimationFrame(read);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", read);
    return () => {
      cancelAnimationFrame(frame);
      dark.removeEventListener("change", read);
    };
  }, [theme.value]);
  return colors;
}
