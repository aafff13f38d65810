// Longshore's engine in this process on a store of choice, put together from the built package as `serve({ port: null })` does it. It counts
// the commits, and how often rows had to be loaded for an operation that missed them.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { graph, type Ref, task, work } from "longshore";
import type { Server } from "longshore/server";
import type { TransportSource } from "longshore/transport";
import type { Input, Output, Side } from "./closed-loop.ts";

/** The data of one side: a folder for SQLite, an address for PostgreSQL. */
export type Place = { readonly folder: string } | { readonly url: string };

export interface StoreCounts {
  commits: number;
  /** Round trips for rows that were not in memory. */
  loads: number;
}

export interface OpenStore extends Side {
  readonly counts: StoreCounts;
  close(): Promise<void>;
}

interface RowStore {
  commit(write: () => void): unknown;
  load(...args: unknown[]): Promise<void>;
}

interface Store {
  readonly rows: RowStore;
}

interface Engine {
  close(): Promise<void>;
}

export type Program = Pick<Server, "define" | "start" | "result" | "call"> & TransportSource;

export interface OpenEngine {
  readonly program: Program;
  readonly counts: StoreCounts;
  close(): Promise<void>;
}

const dist = join(dirname(createRequire(import.meta.url).resolve("longshore/package.json")), "dist");
const load = async <T>(module: string): Promise<T> => (await import(pathToFileURL(join(dist, module)).href)) as T;

interface Modules {
  openEngine(options: { directory: string | null; openStore(options: object): Promise<Store> }): Promise<Engine>;
  programSide(engine: Engine): Program;
  openStore(options: object): Promise<Store>;
}

/** Loads the modules of `openEngineOn`. A program that calls this first does not measure the time of loading. */
export async function modulesFor(place: Place): Promise<Modules> {
  const { openEngine } = await load<Pick<Modules, "openEngine">>("server/engine.js");
  const { programSide } = await load<Pick<Modules, "programSide">>("server/handle.js");
  if (!("url" in place)) {
    const { openSqlite } = await load<{ openSqlite: Modules["openStore"] }>("store/sqlite/store.js");
    return { openEngine, programSide, openStore: openSqlite };
  }
  const { openPostgres } = await load<{ openPostgres: Modules["openStore"] }>("store/postgres/store.js");
  return { openEngine, programSide, openStore: openPostgres };
}

export async function openEngineOn(place: Place): Promise<OpenEngine> {
  const { openEngine, programSide, openStore } = await modulesFor(place);
  const counts: StoreCounts = { commits: 0, loads: 0 };
  const engine = await openEngine({
    directory: "url" in place ? null : place.folder,
    openStore: async (options) => counted(await openStore({ ...options, ...place }), counts),
  });
  return { program: programSide(engine), counts, close: () => engine.close() };
}

function counted(store: Store, counts: StoreCounts): Store {
  const { rows } = store;
  const count = () => void counts.commits++;
  const commit = (write: () => void) => {
    const committed = rows.commit(write);
    return committed instanceof Promise ? committed.then(count) : count();
  };
  const loadRows = (...args: unknown[]) => {
    counts.loads++;
    return rows.load(...args);
  };
  return { ...store, rows: { ...rows, commit, load: loadRows } };
}

type Handler = (input: Input) => Output;

/** A task by itself. */
export async function openTasksOn(place: Place, slots: number, handler: Handler): Promise<OpenStore> {
  const { program, counts, close } = await openEngineOn(place);
  const noop = task("noop", async (input: Input) => handler(input));
  const worker = await work({ tasks: [noop], on: program, slots });
  return {
    counts,
    submit: (input) => program.call<Input, Output>("noop", input),
    close: async () => {
      await worker.stop();
      await close();
    },
  };
}

/** Runs of three steps, each with the output of the one before. The last step runs `handler`, which counts executions (`Witness` in closed-loop.ts). */
export async function openChainsOn(place: Place, slots: number, handler: Handler): Promise<OpenStore> {
  const { program, counts, close } = await openEngineOn(place);
  const pass = task("pass", async (input: Input) => input);
  const last = task("last", async (input: Input) => handler(input));
  const chain = graph<Input, Ref<Output>>("chain", (g, input) => g.step(last, g.step(pass, g.step(pass, input))));
  await program.define(chain);
  const worker = await work({ tasks: [pass, last], on: program, slots });
  return {
    counts,
    submit: async (input) => {
      const { id } = await program.start(chain.name, input);
      const { state, output, error } = await program.result<Output>(id);
      if (state !== "succeeded" || output === null) throw new Error(`run ${id} ended as ${state}: ${error}`);
      return output;
    },
    close: async () => {
      await worker.stop();
      await close();
    },
  };
}
