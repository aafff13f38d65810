// The checker for streams. It compares the coordinator's output of every node with the expected output of the graph, and with the records
// that every worker wrote for each processed batch. A batch may be processed twice, by a worker that died and by the next one, but it must
// count once. Nothing may be lost, missed or counted twice, and no node may begin again and again without a reason. A pure function, like
// checker.ts.
import { expectedOf, madeOf, reads, type Shape, sumOf } from "./flowkit-shape.ts";
import type { Entry } from "./history.ts";
import { type Violation, violation } from "./violation.ts";

export interface FinalGraph {
  readonly id: string;
  readonly status: string;
  /** By node. */
  readonly parts: ReadonlyMap<string, readonly FinalPart[]>;
  /** The sum of s. */
  readonly sum: number | undefined;
}

export interface FinalPart {
  readonly uid: string;
  readonly epoch: number;
  readonly sequence: number;
  readonly items: readonly string[];
  readonly token: string;
}

export interface FinalGraphs {
  readonly shape: Shape;
  /** MongoDB cannot refuse its writers. So an earlier attempt's result of a batch may count there, but only once. */
  readonly fenced: boolean;
  readonly graphs: readonly FinalGraph[];
}

export function checkGraphs(history: readonly Entry[], { shape, fenced, graphs }: FinalGraphs): Violation[] {
  const processed = history.filter((entry) => entry.kind === "batch-processed");
  const begun = history.filter((entry) => entry.kind === "node-begun");
  const absences = history.filter(({ kind }) => kind === "process-killed" || kind === "process-ended" || kind === "process-stopped").length;
  const known = new Map(graphs.map((graph) => [graph.id, graph]));
  const forgotten = history
    .filter((entry) => entry.kind === "graph-acknowledged")
    .filter(({ task }) => !known.has(task))
    .map((entry) => violation("acknowledged-run-kept", entry.task, "its start was acknowledged and the server does not know it", [entry]));
  const told = graphs.flatMap((graph) => {
    const of = <T extends { task: string }>(entries: readonly T[]): T[] => entries.filter(({ task }) => task === graph.id);
    return [...checkGraph(graph, shape, of(processed), fenced ? of(begun) : []), ...progress(graph.id, of(begun), absences)];
  });
  return [...forgotten, ...told];
}

/** Each absence may end one attempt of a node, and one more that began instead before all programs had noticed. */
const BEGUN_MAX_AN_ABSENCE = 2;

/** A working attempt is not replaced: a node begins again only because a worker, the coordinator or the broker was down. */
function progress(graph: string, begun: readonly Entry<"node-begun">[], absences: number): Violation[] {
  const max = 1 + BEGUN_MAX_AN_ABSENCE * absences;
  return [...new Set(begun.map(({ node }) => node))].flatMap((node) => {
    const entries = begun.filter((entry) => entry.node === node);
    if (entries.length <= max) return [];
    const message = `it was begun ${entries.length} times, expected at most ${max} for ${absences} absences`;
    return [violation("progress", `${graph}/${node}`, message, entries.slice(0, max + 1))];
  });
}

function checkGraph(
  graph: FinalGraph,
  shape: Shape,
  processed: readonly Entry<"batch-processed">[],
  begun: readonly Entry<"node-begun">[],
): Violation[] {
  if (graph.status !== "finished") {
    return [violation("every-run-ends", graph.id, `it is ${graph.status}, and nobody cancelled it`, [])];
  }
  const found: Violation[] = [];
  for (const [node, expected] of expectedOf(shape)) {
    const subject = `${graph.id}/${node}`;
    const parts = graph.parts.get(node) ?? [];
    const ofNode = processed.filter((entry) => entry.node === node);
    found.push(...everyBatchOnce(subject, parts, expected, ofNode));
    found.push(
      ...eachWasProcessed(
        subject,
        parts,
        ofNode,
        begun.filter((entry) => entry.node === node),
      ),
    );
  }
  for (const [reader, source] of reads) found.push(...nothingMissed(graph, reader, source));
  if (graph.sum !== sumOf(shape)) {
    found.push(violation("sums-are-right", `${graph.id}/s`, `it came to ${graph.sum}, expected ${sumOf(shape)}`, []));
  }
  return found;
}

function everyBatchOnce(
  subject: string,
  parts: readonly FinalPart[],
  expected: ReadonlyMap<string, readonly string[]>,
  processed: readonly Entry<"batch-processed">[],
): Violation[] {
  const found: Violation[] = [];
  const about = (uid: string) => processed.filter((entry) => entry.uid === uid);
  const counted = new Map<string, FinalPart>();
  for (const part of parts) {
    if (counted.has(part.uid)) found.push(violation("no-batch-twice", subject, `${part.uid} is counted twice`, about(part.uid)));
    counted.set(part.uid, part);
    const items = expected.get(part.uid);
    if (items === undefined) found.push(violation("no-batch-twice", subject, `${part.uid} is no batch of it`, about(part.uid)));
    else if (items.join() !== part.items.join()) {
      found.push(violation("no-batch-lost", subject, `${part.uid} has ${part.items.join()}, expected ${items.join()}`, about(part.uid)));
    }
  }
  for (const uid of expected.keys()) {
    if (!counted.has(uid)) found.push(violation("no-batch-lost", subject, `${uid} is not counted`, about(uid)));
  }
  return found;
}

/** A finished reader has made batches from everything that its source has produced. */
function nothingMissed({ id, parts }: FinalGraph, reader: string, source: string): Violation[] {
  const made = new Set(parts.get(reader)?.map(({ uid }) => uid));
  const missed = (parts.get(source) ?? []).filter(({ uid, items }) =>
    [...madeOf(reader, source, uid, items).keys()].some((one) => !made.has(one)),
  );
  if (missed.length === 0) return [];
  const message = `it has missed ${missed.length} batches of ${source}, such as ${missed[0]?.uid}`;
  return [violation("nothing-missed", `${id}/${reader}`, message, [])];
}

/** Every counted result comes from a worker, and not from an attempt after the next one had begun. */
function eachWasProcessed(
  subject: string,
  parts: readonly FinalPart[],
  processed: readonly Entry<"batch-processed">[],
  begun: readonly Entry<"node-begun">[],
): Violation[] {
  const byToken = new Map(processed.map((entry) => [entry.token, entry]));
  return parts.flatMap(({ uid, token }) => {
    const made = byToken.get(token);
    if (made === undefined || made.uid !== uid) {
      return [violation("counted-was-processed", subject, `${uid} is counted with ${token}, which nobody made of it`, [made])];
    }
    const successor = begun.find((entry) => entry.epoch > made.epoch && entry.tick < made.tick);
    if (successor === undefined) return [];
    const message = `${uid} is counted as epoch ${made.epoch} made it, after epoch ${successor.epoch} had begun`;
    return [violation("counted-from-newest-attempt", subject, message, [successor, made])];
  });
}
