// Random durable functions for the simulation. A program is data that runs as a function, and its result is known without running it. Every
// race has one entry that never ends, so the result does not depend on time.

import type { FunctionScope } from "../../src/runner/function/scope.ts";
import { StepError } from "../../src/runner/function/step-error.ts";
import { type FunctionWorkflow, workflow } from "../../src/workflow.ts";
import type { Random } from "../faults/random.ts";

/** What a program does at one place. The `mark` is its name in the journal. */
type Part =
  | { readonly kind: "step" | "flaky" | "refused" | "local" | "locals" | "chance" | "version"; readonly mark: string }
  | { readonly kind: "sleep"; readonly mark: string; readonly ms: number }
  | { readonly kind: "inbox"; readonly mark: string; readonly count: number }
  | { readonly kind: "child"; readonly mark: string; readonly program: Program }
  | { readonly kind: "cancelled"; readonly mark: string; readonly program: Program }
  | { readonly kind: "sequence" | "parallel" | "map"; readonly mark: string; readonly parts: readonly Part[] }
  | { readonly kind: "race"; readonly mark: string; readonly winner: Part; readonly loser: "task" | "sleep" | "signal" };

export interface Program {
  readonly name: string;
  readonly body: Part;
  /** How often it begins again with an empty journal. */
  readonly passes: number;
  /** A task of the run cancels it, during its body or after it. */
  readonly cancelled?: "during" | "after";
}

/** What a program returns: its results, and for each step the number that its handler made in the attempt that counts. */
export interface Played {
  readonly results: unknown[];
  readonly serials: { [mark: string]: number };
}

/** The tasks of all programs. */
export const taskNames = ["echo", "flaky", "refused", "send", "cancel"] as const;

const leaves = ["step", "step", "flaky", "refused", "local", "locals", "locals", "chance", "sleep", "inbox", "version"] as const;
const groups = ["sequence", "sequence", "parallel", "parallel", "map", "race", "child", "cancelled"] as const;
const depthMax = 3;
/** Side effects one after the other, each of which uses the one before. */
const chainLength = 3;

export function makeProgram(random: Random, name = "main", depth = 0): Program {
  let marks = 0;
  const part = (level: number): Part => {
    const mark = `${name}-${++marks}`;
    if (level > 0 && (level >= depthMax || random.chance(0.5))) return leaf(random, mark);
    const kind = random.pick(groups) as (typeof groups)[number];
    if (kind === "race") return { kind, mark, winner: part(level + 1), loser: random.pick(["task", "sleep", "signal"] as const) ?? "task" };
    if (kind === "child" || kind === "cancelled") {
      if (depth >= 2) return leaf(random, mark);
      const program = makeProgram(random, `${name}.${marks}`, depth + 1);
      if (kind === "child") return { kind, mark, program };
      return { kind, mark, program: { ...program, cancelled: random.pick(["during", "after"] as const) ?? "after" } };
    }
    return { kind, mark, parts: Array.from({ length: random.between(1, 3) }, () => part(level + 1)) };
  };
  return { name, body: part(0), passes: depth === 0 && random.chance(0.25) ? 2 : 1 };
}

function leaf(random: Random, mark: string): Part {
  const kind = random.pick(leaves) as (typeof leaves)[number];
  if (kind === "sleep") return { kind, mark, ms: random.pick([1, 700, 5_000]) ?? 1 };
  if (kind === "inbox") return { kind, mark, count: random.between(1, 3) };
  return { kind, mark };
}

/** What the program returns, for any events meanwhile. */
export function resultsOf({ body, passes }: Program): unknown[] {
  return Array.from({ length: passes }, (_, pass) => resultOf(body, pass));
}

function resultOf(part: Part, pass: number): unknown {
  const mark = `${part.mark}/${pass}`;
  switch (part.kind) {
    case "step":
    case "flaky":
      return mark;
    case "refused":
      return `${mark} is refused`;
    case "local":
    case "locals":
    case "chance":
      return true;
    case "version":
      return 3;
    case "sleep":
      return null;
    case "inbox":
      return Array.from({ length: part.count }, (_, at) => `${mark}#${at}`);
    case "child":
      return resultsOf(part.program);
    case "cancelled":
      return "LONGSHORE_CANCELLED";
    case "race":
      return resultOf(part.winner, pass);
    default:
      return part.parts.map((each) => resultOf(each, pass));
  }
}

/** What side effects do. */
export interface Effects {
  /** Makes a new number in each call: side effects return it. */
  count(): number;
  /** A side effect begins that uses the result of an earlier one. */
  uses(runId: string, mark: string, result: number): void;
}

/** The program and its children as durable functions. */
export function functionsOf(program: Program, effects: Effects): FunctionWorkflow[] {
  const made = workflow(program.name, async (w, input: { pass: number; before: Played } | null) => {
    const { pass, before } = input ?? { pass: 0, before: { results: [], serials: {} } };
    const { serials } = before;
    const playing = { pass, serials, effects };
    if (program.cancelled !== undefined) return cancelled(w, program, playing);
    const results = [...before.results, await play(w, program.body, playing)];
    return pass + 1 < program.passes ? w.continueAs({ pass: pass + 1, before: { results, serials } }) : { results, serials };
  });
  return [made as FunctionWorkflow, ...childrenOf(program.body).flatMap((child) => functionsOf(child, effects))];
}

/** The programs that are cancelled before they end. */
export function cancelledNames(program: Program): string[] {
  return [...(program.cancelled === undefined ? [] : [program.name]), ...childrenOf(program.body).flatMap(cancelledNames)];
}

/** Whether a delay that ends too early changes the result. */
export function racesSleep({ body }: Program): boolean {
  const races = (part: Part): boolean => {
    if (part.kind === "race") return part.loser === "sleep" || races(part.winner);
    if (part.kind === "child" || part.kind === "cancelled") return races(part.program.body);
    return "parts" in part && part.parts.some(races);
  };
  return races(body);
}

function childrenOf(part: Part): Program[] {
  if (part.kind === "child" || part.kind === "cancelled") return [part.program];
  if (part.kind === "race") return childrenOf(part.winner);
  return "parts" in part ? part.parts.flatMap(childrenOf) : [];
}

interface Playing {
  readonly pass: number;
  readonly serials: { [mark: string]: number };
  readonly effects: Effects;
}

async function play(w: FunctionScope, part: Part, playing: Playing): Promise<unknown> {
  const mark = `${part.mark}/${playing.pass}`;
  const call = async (task: (typeof taskNames)[number], value: unknown, limit = 0) => {
    // The step is retried for any number of lost workers and servers.
    const options = { retry: { limit, lost: 1_000, backoff: { kind: "fixed" as const, delayMs: 10 } } };
    const answer = await w.call<{ value: unknown; serial: number }>(task, { mark, value }, options);
    playing.serials[`${w.runId} ${mark}`] = answer.serial;
    return answer.value;
  };
  switch (part.kind) {
    case "step":
      return call("echo", mark);
    case "flaky":
      return call("flaky", mark, 2);
    case "refused":
      return call("refused", mark).catch((error: StepError) => (error.cause as Error).message);
    case "local": {
      const made = await w.local(mark, playing.effects.count);
      return (await call("echo", made)) === made;
    }
    case "locals": {
      const made: number[] = [];
      for (let at = 0; at < chainLength; at++) {
        const before = made.at(-1);
        const use = () => {
          if (before !== undefined) playing.effects.uses(w.runId, `${mark}-${at - 1}`, before);
          return playing.effects.count();
        };
        // Two at once, of which the function uses one.
        const [own] = await Promise.all([w.local(`${mark}-${at}`, use), w.local(`${mark}-${at}-beside`, use)]);
        made.push(own);
      }
      return JSON.stringify(await call("echo", made)) === JSON.stringify(made);
    }
    case "chance": {
      const made = [w.random(), w.uuid(), w.now().getTime()];
      return JSON.stringify(await call("echo", made)) === JSON.stringify(made);
    }
    case "version":
      return w.version(mark, 3);
    case "sleep":
      return w.sleep(part.ms).then(() => null);
    case "inbox":
      return Promise.all([inbox(w, mark, part.count), call("send", part.count)]).then(([got]) => got);
    case "child": {
      const { results, serials } = await w.run<Played>(part.program.name, null);
      Object.assign(playing.serials, serials);
      return results;
    }
    case "cancelled":
      return w.run(part.program.name, null).catch((error) => (error instanceof StepError ? error.code : String(error)));
    case "race":
      return Promise.race([play(w, part.winner, playing), never(w, part.loser, mark)]);
    case "map":
      return w.map(part.parts, (each) => play(w, each, playing), { concurrency: 2 });
    case "parallel":
      return Promise.all(part.parts.map((each) => play(w, each, playing)));
    default: {
      const results: unknown[] = [];
      for (const each of part.parts) results.push(await play(w, each, playing));
      return results;
    }
  }
}

/** Receives what a task of the same run sends meanwhile. */
async function inbox(w: FunctionScope, mark: string, count: number): Promise<unknown[]> {
  const got: unknown[] = [];
  for await (const value of w.signals(mark)) if (got.push(value) === count) break;
  return got;
}

/** Never ends by itself. */
async function cancelled(w: FunctionScope, { name, body, cancelled: when }: Program, playing: Playing): Promise<never> {
  const played = play(w, body, playing);
  if (when === "after") await played;
  await w.call("cancel", { mark: `${name}-cancel/${playing.pass}`, value: null }, { retry: { limit: 0, lost: 1_000 } });
  await played;
  return never(w, "signal", name);
}

async function never(w: FunctionScope, loser: "task" | "sleep" | "signal", mark: string): Promise<never> {
  if (loser === "task") await w.call("nobody-has-this", mark);
  else if (loser === "sleep") await w.sleep("30d");
  else await w.signal(`${mark} never`);
  throw new Error("What never ends has ended.");
}
