// Reports calls in the code of a durable function whose result differs in each replay: the clock, random numbers, timers and the network.
// `longshore dev` starts this before it loads the code. It replaces globals of the process, so it is not for production.

import { AsyncLocalStorage } from "node:async_hooks";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { LongshoreError } from "../../core/errors.ts";
import type { FunctionCode } from "./driver.ts";
import type { FunctionScope } from "./scope.ts";

/** The code that runs now: a function, or a side effect of it. */
type Running = { readonly name: string; readonly local?: string };

/** Maximum number of mistakes that are reported, each once: more would fill the screen. */
const mistakesMax = 100;
/** Frames of a stack that are searched for the user's file: libraries may be between it and the mistake. */
const framesMax = 50;

const clock = "use w.now()";
const elsewhere = "put it into a task, or into w.local(name, fn)";
const timer = "use w.sleep()";

/** A function of the process, by its holder and its name, and what to use instead. */
type Watched = readonly [holder: object, key: string, called: string, instead: string];

/** The parts of `globalThis` that are watched. */
export type Globals = Pick<
  typeof globalThis,
  "Date" | "Math" | "crypto" | "fetch" | "performance" | "setImmediate" | "setInterval" | "setTimeout"
>;

function watchedOf(globals: Globals): Watched[] {
  const crypto = Object.getPrototypeOf(globals.crypto) as object;
  return [
    [globals.Date, "now", "Date.now()", clock],
    [globals.Math, "random", "Math.random()", "use w.random()"],
    [crypto, "randomUUID", "crypto.randomUUID()", "use w.uuid()"],
    [crypto, "getRandomValues", "crypto.getRandomValues()", "use w.random()"],
    [Object.getPrototypeOf(globals.performance) as object, "now", "performance.now()", clock],
    [globals, "setTimeout", "setTimeout()", timer],
    [globals, "setInterval", "setInterval()", timer],
    [globals, "setImmediate", "setImmediate()", timer],
    [globals, "fetch", "fetch()", elsewhere],
  ];
}

/** The parts of `w` that a side effect may use. */
const usableInside: ReadonlySet<string> = new Set(["cancelled", "log", "now", "runId", "set"]);

/** Replaces the globals, and returns the object that watches the code of a function. */
export function watchMistakes(tell: (text: string) => void, globals: Globals = globalThis): (code: FunctionCode) => FunctionCode {
  const running = new AsyncLocalStorage<Running | undefined>();
  const told = new Set<string>();
  const say = (text: string) => {
    if (told.size >= mistakesMax || told.has(text)) return;
    told.add(text);
    tell(text);
  };
  const mistake = (called: string, instead: string) => {
    const now = running.getStore();
    if (now === undefined || now.local !== undefined) return;
    say(`The function ${now.name} calls ${called}${placeOf()}: it is different in each replay. Instead, ${instead}.`);
  };
  for (const [holder, key, called, instead] of watchedOf(globals))
    replace(holder, key, {
      apply(target, self, args) {
        mistake(called, instead);
        return running.run(undefined, () => Reflect.apply(target, self, args));
      },
    });
  replace(globals, "Date", {
    construct(target, args, newTarget) {
      if (args.length === 0) mistake("new Date()", clock);
      return Reflect.construct(target, args, newTarget);
    },
    apply(target, self, args) {
      mistake("Date()", clock);
      return Reflect.apply(target, self, args);
    },
  });
  const inside = (called: string, { name, local }: Running) => {
    const what = `The side effect ${local} of the function ${name} calls w.${called}()${placeOf()}`;
    say(`${what}: a replay does not run it. Call w outside of w.local(), and pass its results in.`);
    throw new LongshoreError("LONGSHORE_BAD_DEFINITION", what);
  };
  return (code) => {
    const { name } = code;
    const back =
      <Args extends unknown[]>(run: (...args: Args) => unknown, state: Running) =>
      (...args: Args) =>
        running.run(state, () => run(...args));
    /** Longshore's own code is not watched. Functions that the user's code passes to `w` are. */
    const watchedScope = (w: FunctionScope): FunctionScope =>
      new Proxy(w, {
        get(target, key) {
          const method: unknown = Reflect.get(target, key);
          if (typeof method !== "function") return method;
          return (...args: unknown[]) => {
            const now = running.getStore();
            if (now?.local !== undefined && !usableInside.has(String(key))) inside(String(key), now);
            const state = key === "local" ? { name, local: String(args[0]) } : { name };
            const passed = args.map((arg) => (typeof arg === "function" ? back(arg as () => unknown, state) : arg));
            return running.run(undefined, () => Reflect.apply(method, target, passed));
          };
        },
      });
    return { name, call: (w, input) => running.run({ name }, () => code.call(watchedScope(w), input)) };
  };
}

/** Its other properties, such as those that `promisify` reads, stay. */
function replace(holder: object, key: string, handler: ProxyHandler<(...args: unknown[]) => unknown>): void {
  const original = Reflect.get(holder, key) as (...args: unknown[]) => unknown;
  Object.defineProperty(holder, key, { configurable: true, writable: true, value: new Proxy(original, handler) });
}

/** ` at order.ts:12:20`: the innermost frame in a file of the user, and not of Node or a package. */
function placeOf(): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = framesMax;
  const frames = (new Error().stack ?? "").split("\n").slice(1);
  Error.stackTraceLimit = stackTraceLimit;
  for (const frame of frames) {
    const found = addressOf(frame);
    if (found === undefined) continue;
    const { address, line, column } = found;
    const path = address.startsWith("file:") ? fileURLToPath(address) : address;
    if (path.includes("node_modules") || path.startsWith(ownFolder)) continue;
    return ` at ${relative(process.cwd(), path)}:${line}:${column}`;
  }
  return "";
}

/** The address, line and column at the end of `at name (file:///app/order.ts?1:12:20)`; without the query, which marks a reload. */
function addressOf(frame: string): { address: string; line: string; column: string } | undefined {
  let place = frame
    .slice(frame.lastIndexOf("(") + 1)
    .replace(")", "")
    .trim();
  for (const word of ["at ", "async "]) if (place.startsWith(word)) place = place.slice(word.length);
  const fields = place.split(":");
  const [line, column] = fields.splice(-2);
  const [address = ""] = fields.join(":").split("?");
  const isFile = address.startsWith("file://") || address.startsWith("/") || /^[A-Za-z]:\\/.test(address);
  return isFile && line !== undefined && column !== undefined ? { address, line, column } : undefined;
}

/** This file is two folders below the sources, or the built files, of Longshore. */
const ownFolder = fileURLToPath(new URL("../../", import.meta.url));
