// The Python programs of FlowKit's protocol: a worker, and a coordinator that follows a script.
import { fileURLToPath } from "node:url";
import type { Child } from "../src/child.ts";
import type { Stage } from "../src/stage.ts";
import { pythonWithClients } from "./fetch.ts";
import type { Place } from "./place.ts";

const program = (name: string): string => fileURLToPath(new URL(`./programs/${name}`, import.meta.url));

/** Any of the programs, with these arguments. */
export function pythonProgram(stage: Stage, name: string, args: readonly string[]): Child {
  return stage.start(pythonWithClients(), ["-u", program(name), ...args], { name: `the Python program ${name}` });
}

/** What a role of the Python worker does; see `programs/handlers.py`. */
export type Habit = "produce" | "consume" | "fail" | "slow";

export interface PythonWorkerOptions {
  roles: Record<string, Habit>;
  worker_id?: string;
  lease_ttl_sec?: number;
  hb_interval_sec?: number;
  announce_interval_sec?: number;
  db_cancel_poll_ms?: number;
  overlapping_upsert?: boolean;
  metadata_max_age_ms?: number;
}

export interface PythonWorker {
  readonly id: string;
  readonly child: Child;
}

/** How many batches the worker has processed. A worker whose writes MongoDB refuses prints a line for each write of an artifact. */
export function workedOn({ child }: PythonWorker): number {
  return child.output().match(/upsert_partial\.failed/g)?.length ?? 0;
}

/** Resolves when its consumers are members of their groups. */
export async function startPythonWorker(stage: Stage, place: Place, options: PythonWorkerOptions): Promise<PythonWorker> {
  const settings = JSON.stringify({ ...servicesOf(place), ...options });
  const child = pythonProgram(stage, "worker.py", [settings]);
  const [line] = await child.printed(/^\{"ready": true.*\}$/m);
  return { id: (JSON.parse(line) as { worker_id: string }).worker_id, child };
}

export interface GraphNode {
  node_id: string;
  type: string;
  io?: { input_inline?: Record<string, unknown>; [field: string]: unknown };
  [field: string]: unknown;
}

/** One step of the Python coordinator's script; see `programs/coordinator.py`. */
export type Step =
  | { do: "online"; type: string }
  | { do: "offline" | "flag" | "again" }
  | { do: "start" | "discover" | "signal"; node: string; epoch?: number }
  | { do: "raw"; topic: string; value: string }
  | { do: "await"; kind: string; node_id?: string; batch_uid?: string; attempt_epoch?: number; reason_code?: string };

export interface PythonCoordinator {
  readonly child: Child;
  readonly taskId: string;
  /** What workers have sent so far, in the order of arrival. */
  heard(): Heard[];
  /** Resolves when every step has been carried out. */
  over(): Promise<Heard[]>;
}

/** A record that the coordinator has read. `text` is its line, in which the fields have the order of the wire. */
export interface Heard {
  topic: string;
  key: string | null;
  value: Record<string, unknown> & { payload: Record<string, unknown> };
  text: string;
}

export interface Script {
  types: readonly string[];
  nodes: readonly GraphNode[];
  steps: readonly Step[];
}

/** Resolves when it is subscribed to every topic. */
export async function startPythonCoordinator(stage: Stage, place: Place, script: Script): Promise<PythonCoordinator> {
  const taskId = crypto.randomUUID();
  const { types, nodes, steps } = script;
  const settings = JSON.stringify({ ...servicesOf(place), types, nodes: nodes.map(defaulted), task_id: taskId });
  const child = pythonProgram(stage, "coordinator.py", [settings, JSON.stringify(steps)]);
  await child.printed(/^\{"ready": true\}$/m);
  const heard = (): Heard[] => heardIn(child.output());
  return {
    child,
    taskId,
    heard,
    async over() {
      await child.printed(/^\{"over": true\}$/m);
      return heard();
    },
  };
}

const servicesOf = ({ brokers, mongo, database, prefix }: Place): Record<string, string> => ({ brokers, mongo, database, prefix });

/** The reference starts no node without these two. */
const defaulted = (node: GraphNode): GraphNode => ({ status: "queued", attempt_epoch: 0, ...node });

function heardIn(output: string): Heard[] {
  return output
    .split("\n")
    .filter((line) => line.startsWith('{"topic"') && line.endsWith("}"))
    .map((text) => ({ ...(JSON.parse(text) as Omit<Heard, "text">), text }));
}
