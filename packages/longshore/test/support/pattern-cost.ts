// Checks whether one of our regular expressions can need more than linear time for some text. Node's engine backtracks: when two paths
// through an expression match the same repeated text, it tries all combinations. So one request can block the server.
//
// An expression is converted to the machine of linear-pattern.ts. Two different states are suspicious when one text leads from each of them
// back to itself, and also from the first to the second. Such a text can be divided between them in many ways. For each suspicion, the
// check makes a text and counts the steps of backtracking, for one length and for twice this length. It reports growth that is faster than
// the text. An expression that is not anchored is tried from every position, which is also a loop.

import { type Place, parsePattern } from "../../src/core/pattern/pattern-parser.ts";

export interface Slow {
  /** A text to read before, one to repeat, and one to read at the end. */
  readonly attack: { readonly prefix: string; readonly pump: string; readonly suffix: string };
  /** The steps for this number of repeats, and for twice as many. */
  readonly steps: readonly [number, number];
}

/** How often the text is repeated at first. */
const pumps = 60;
/** A linear expression takes twice the steps for twice the text, and some more for the ends. */
const growthMax = 2.6;
/** Enough to see growth. Exponential expressions stop here. */
const stepsMax = 300_000;
/** The maximum number of tested suspicions. The same loop is suspected many times. */
const suspicionsMax = 400;
/** Walks for one suspicion; the machines of most expressions have fewer. */
const walksMax = 20_000;
/** Characters at the end that few expressions want. */
const suffixes = ["", "\u0000", "!", "\n", "\u00e9", "x!"];

/** Null when it takes linear time. Throws a PatternError for what the machine does not know, such as lookahead. */
export function findSlowness(source: string, flags: string): Slow | null {
  const places = parsePattern(source, { javascript: true, ignoreCase: flags.includes("i"), dotAll: flags.includes("s") });
  const graph = graphOf(places, samplesOf(source), flags.includes("y"));
  let tried = 0;
  for (const { at, pump } of suspicionsOf(graph)) {
    if (++tried > suspicionsMax) break;
    const prefix = wayTo(graph, at);
    if (prefix === null) continue;
    for (const suffix of suffixes) {
      const text = (times: number) => prefix + pump.repeat(times) + suffix;
      const steps = [stepsFor(places, text(pumps), flags), stepsFor(places, text(2 * pumps), flags)] as const;
      const grows = steps[1] > growthMax * steps[0] && steps[1] > 20 * pumps;
      if (grows || steps[0] > stepsMax) return { attack: { prefix, pump, suffix }, steps };
    }
  }
  return null;
}

/** Places that take a character, each with the places after it. A place is twice in the list when two ways lead there. */
interface Graph {
  readonly accepts: ((code: number) => boolean)[];
  readonly next: (readonly number[])[];
  readonly starts: readonly number[];
  readonly samples: readonly number[];
}

/** Characters that distinguish the places of an expression: those that it names, their neighbours, and some of each common class. */
function samplesOf(source: string): number[] {
  const named = [...source].map((char) => char.codePointAt(0) as number);
  const common = [..."aAzZ09_ -\n\t.,:;/@{}[]()\"'\\$%+=!é"].map((char) => char.codePointAt(0) as number);
  return [...new Set([...common, ...named.flatMap((code) => [code, code + 1, code - 1])])].filter((code) => code >= 0);
}

function graphOf(places: readonly Place[], samples: readonly number[], sticky: boolean): Graph {
  const chars = places.flatMap((place, at) => (place.kind === "char" ? [at] : []));
  const index = new Map(chars.map((at, number) => [at, number]));
  const inside = (from: number) => closure(places, from, false).flatMap((at) => index.get(at) ?? []);
  const accepts = chars.map((at) => (places[at] as Place & { kind: "char" }).accepts);
  const next: (readonly number[])[] = chars.map((at) => inside((places[at] as Place & { kind: "char" }).next));
  const begin = closure(places, 0, true).flatMap((at) => index.get(at) ?? []);
  const later = inside(0);
  if (sticky || later.length === 0) return { accepts, next, starts: begin, samples };
  // The search that begins again at every position: one more place, which takes any character.
  const search = accepts.push(() => true) - 1;
  next.push([...later, search]);
  return { accepts, next, starts: [...begin, search], samples };
}

/** Places that can be entered without taking a character, each at most twice, by different ways. `begin` is before the first character. */
function closure(places: readonly Place[], from: number, begin: boolean): number[] {
  const times = new Map<number, number>();
  const sides = begin ? [-1] : [0x61, 0x20];
  const visit = (at: number, way: ReadonlySet<number>): void => {
    // A turn of a loop without a character is not a way of its own: the engine leaves the loop.
    if (way.has(at) || (times.get(at) ?? 0) >= 2) return;
    times.set(at, (times.get(at) ?? 0) + 1);
    const place = places[at] as Place;
    const further = new Set(way).add(at);
    if (place.kind === "fork") for (const next of place.ways) visit(next, further);
    else if (place.kind === "edge" && sides.some((before) => [0x61, 0x20].some((after) => place.holds(before, after))))
      visit(place.next, further);
  };
  visit(from, new Set());
  return [...times].flatMap(([at, count]) => Array<number>(count).fill(at));
}

/** Pairs of places with a text that leads from the first to itself and to the second, and from the second to itself. */
function* suspicionsOf(graph: Graph): Generator<{ at: number; pump: string }> {
  const loops = graph.accepts.flatMap((_, at) => (reaches(graph, at).has(at) ? [at] : []));
  for (const first of loops) {
    const reached = reaches(graph, first);
    for (const second of loops) {
      if (!reached.has(second)) continue;
      const pump = pumpOf(graph, first, second);
      if (pump !== null) yield { at: first, pump };
    }
  }
}

function reaches(graph: Graph, from: number): Set<number> {
  const seen = new Set(graph.next[from]);
  for (const at of seen) for (const to of graph.next[at] ?? []) seen.add(to);
  return seen;
}

/** Three walks at once: first to first, first to second, second to second. For one and the same place: by two different ways. */
function pumpOf(graph: Graph, first: number, second: number): string | null {
  type Walk = { at: readonly [number, number, number]; split: boolean; text: string };
  const open: Walk[] = [{ at: [first, first, second], split: false, text: "" }];
  const seen = new Set<string>();
  for (let done = 0; done < open.length && done < walksMax; done++) {
    const { at, split, text } = open[done] as Walk;
    for (const code of graph.samples) {
      if (!at.every((place) => graph.accepts[place]?.(code))) continue;
      for (const [way, a] of (graph.next[at[0]] ?? []).entries()) {
        for (const [other, b] of (graph.next[at[1]] ?? []).entries()) {
          for (const c of graph.next[at[2]] ?? []) {
            const apart = split || first !== second || a !== b || (at[0] === at[1] && way !== other);
            const key = `${a},${b},${c},${apart}`;
            if (seen.has(key)) continue;
            seen.add(key);
            const walked = text + String.fromCodePoint(code);
            if (a === first && b === second && c === second && apart) return walked;
            open.push({ at: [a, b, c], split: apart, text: walked });
          }
        }
      }
    }
  }
  return null;
}

/** A text that leads from the beginning to a place; null when none of the samples does. */
function wayTo(graph: Graph, place: number): string | null {
  const open = graph.starts.map((at) => ({ at, text: "" }));
  const seen = new Set(graph.starts);
  for (const { at, text } of open) {
    if (at === place) return text;
    const code = graph.samples.find((sample) => graph.accepts[at]?.(sample));
    if (code === undefined) continue;
    for (const to of graph.next[at] ?? []) {
      if (seen.has(to)) continue;
      seen.add(to);
      open.push({ at: to, text: text + String.fromCodePoint(code) });
    }
  }
  return null;
}

/** How many places backtracking visits before it has found a match, or none. Like the engine, it remembers nothing. */
function stepsFor(places: readonly Place[], text: string, flags: string): number {
  const codes = [...text].map((char) => char.codePointAt(0) as number);
  let steps = 0;
  const lastStart = flags.includes("y") ? 0 : codes.length;
  for (let start = 0; start <= lastStart; start++) {
    const open: [place: number, at: number, idle: number][] = [[0, start, 0]];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (++steps > stepsMax) return steps;
      const [index, at, idle] = next;
      const place = places[index] as Place;
      if (place.kind === "end") return steps;
      if (place.kind === "char") {
        if (at < codes.length && place.accepts(codes[at] as number)) open.push([place.next, at + 1, 0]);
      } else if (place.kind === "edge") {
        if (place.holds(codes[at - 1] ?? -1, codes[at] ?? -1)) open.push([place.next, at, idle + 1]);
      } else if (idle < places.length) {
        // When its body has taken nothing, a loop is left, as the engine leaves it.
        for (const way of place.ways) open.push([way, at, idle + 1]);
      }
    }
  }
  return steps;
}
