// The arguments of the built-in input adapters. They are parsed and checked twice: when a graph is submitted, and by the worker before
// anything streams. An error is one sentence that names the argument.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";

export const pullAdapter = "pull.from_artifacts";
export const rechunkAdapter = "pull.from_artifacts.rechunk:size";
/** The adapters whose arguments `checkAdapterArgs` knows. */
export const adapterNames: readonly string[] = [pullAdapter, rechunkAdapter];

/** The parsed arguments of an adapter. Numbers that the command does not set are the worker's settings. */
export interface PullArgs {
  readonly fromNodes: readonly string[];
  readonly pollMs: number;
  readonly backoffMaxMs: number;
  readonly eofOnTaskDone: boolean;
}

export interface RechunkArgs extends PullArgs {
  readonly size: number;
  readonly metaListKey: string | null;
}

/** The worker settings that are used for absent arguments. */
export interface ArgDefaults {
  readonly pollMs: number;
  readonly backoffMaxMs: number;
  /** Whether rechunking must name the list to split. */
  readonly strict: boolean;
}

export const argDefaults: ArgDefaults = { pollMs: 300, backoffMaxMs: 4_000, strict: false };

/** The checked arguments of an input adapter, or the reason why they are refused. */
export type Checked<Args> = { readonly ok: true; readonly args: Args } | { readonly ok: false; readonly why: string };

/** A pause of more than a day is a mistake of units. */
const pauseMsMax = 86_400_000;

/** Undefined for an adapter that is not built in. */
export function checkAdapterArgs(name: string, args: Json | undefined, defaults: ArgDefaults): Checked<PullArgs> | undefined {
  if (name === pullAdapter) return checkPullArgs(args, defaults);
  return name === rechunkAdapter ? checkRechunkArgs(args, defaults) : undefined;
}

export function checkPullArgs(args: Json | undefined, defaults: ArgDefaults): Checked<PullArgs> {
  return check(args, pullKeys, (given) => pullArgs(given, defaults));
}

export function checkRechunkArgs(args: Json | undefined, defaults: ArgDefaults): Checked<RechunkArgs> {
  return check(args, rechunkKeys, (given) => {
    const { size, meta_list_key: metaListKey = null } = given;
    // A boolean is a number in Python, but not a valid size.
    if (!Number.isInteger(size) || (size as number) < 1) throw new Wrong("missing or invalid 'size' (positive int required)");
    if (metaListKey !== null && (typeof metaListKey !== "string" || metaListKey === "")) {
      throw new Wrong(`'meta_list_key' is ${JSON.stringify(metaListKey)}, expected a text`);
    }
    if (metaListKey === null && defaults.strict) throw new Wrong("missing 'meta_list_key' (required by strict_input_adapters)");
    return { ...pullArgs(given, defaults), size: size as number, metaListKey };
  });
}

const pullKeys = ["from_nodes", "from_node", "poll_ms", "eof_on_task_done", "backoff_max_ms"];
const rechunkKeys = [...pullKeys, "size", "meta_list_key"];

class Wrong extends Error {}

function check<Args>(args: Json | undefined, known: readonly string[], parse: (given: JsonObject) => Args): Checked<Args> {
  const given = args ?? {};
  if (!isObject(given)) return { ok: false, why: `input_args is ${JSON.stringify(given)}, expected an object` };
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) return { ok: false, why: `unknown argument '${unknown}', expected ${known.join(", ")}` };
  try {
    return { ok: true, args: parse(given) };
  } catch (error) {
    if (error instanceof Wrong) return { ok: false, why: error.message };
    throw error;
  }
}

function pullArgs(given: JsonObject, defaults: ArgDefaults): PullArgs {
  return {
    fromNodes: fromNodes(given),
    pollMs: pause(given, "poll_ms", defaults.pollMs),
    backoffMaxMs: pause(given, "backoff_max_ms", defaults.backoffMaxMs),
    eofOnTaskDone: flag(given, "eof_on_task_done", true),
  };
}

/** `from_node` is an alias for a list of one. It counts when the list is absent or empty, as in the reference. */
function fromNodes({ from_nodes, from_node }: JsonObject): readonly string[] {
  const list = from_nodes === undefined || from_nodes === null || isEmptyList(from_nodes) ? alias(from_node) : from_nodes;
  if (!Array.isArray(list)) throw new Wrong(`'from_nodes' is ${JSON.stringify(list)}, expected a list of node ids`);
  if (list.length === 0) throw new Wrong("missing 'from_nodes' (at least one node id required)");
  const wrong = list.find((node) => typeof node !== "string" || node === "");
  if (wrong !== undefined) throw new Wrong(`'from_nodes' has ${JSON.stringify(wrong)} in it, expected node ids`);
  return [...new Set(list as string[])];
}

function isEmptyList(value: Json): boolean {
  return Array.isArray(value) && value.length === 0;
}

function alias(fromNode: Json | undefined): Json {
  if (fromNode === undefined || fromNode === null) return [];
  if (typeof fromNode !== "string" || fromNode === "") throw new Wrong(`'from_node' is ${JSON.stringify(fromNode)}, expected a node id`);
  return [fromNode];
}

function pause(given: JsonObject, key: string, otherwise: number): number {
  const value = given[key];
  if (value === undefined || value === null) return otherwise;
  if (typeof value === "number" && Number.isFinite(value) && value > 0 && value <= pauseMsMax) return value;
  throw new Wrong(`'${key}' is ${JSON.stringify(value)}, expected milliseconds`);
}

function flag(given: JsonObject, key: string, otherwise: boolean): boolean {
  const value = given[key];
  if (value === undefined || value === null) return otherwise;
  if (typeof value === "boolean") return value;
  throw new Wrong(`'${key}' is ${JSON.stringify(value)}, expected true or false`);
}
