// Selects the input of a run. The coordinator decides: the adapter in its command is used, whatever the handler proposes. If the command
// names none, a known proposal of the handler is used; otherwise the handler makes its batches itself. Names and arguments are checked
// here, before anything streams.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { sortedText } from "../../../core/json/json-text.ts";
import type { ArgDefaults, PullArgs } from "../wire/adapter-args.ts";
import type { Adapters, InputAdapter } from "../wire/adapters/adapter.ts";
import { reasons } from "./classify.ts";
import type { Loaded } from "./handler.ts";
import type { WorkerLog } from "./log.ts";
import { RunFailed } from "./run-failure.ts";

export interface Route {
  readonly adapter: InputAdapter;
  /** In the adapter's own form. */
  readonly args: unknown;
}

export interface InputSources {
  readonly inputInline: JsonObject | null;
  readonly loaded: Loaded;
  readonly adapters: Adapters;
  readonly defaults: ArgDefaults;
  readonly log: WorkerLog;
}

/** Undefined when the handler makes its batches itself. Throws RunFailed when the adapter or its arguments are invalid. */
export function selectInput({ inputInline, loaded, adapters, defaults, log }: InputSources): Route | undefined {
  const requested = proposalIn(inputInline);
  const proposed = proposalIn(loaded.input_inline);
  if (requested === undefined) {
    // An unknown proposal is not an error of the coordinator, and the handler can make its own batches.
    const adapter = proposed === undefined ? undefined : adapters.get(proposed.name);
    if (proposed !== undefined && adapter !== undefined) return checked(adapter, proposed.args, "handler", defaults, log);
    log("info", "worker.handler.iter_batches_fallback", { source: "handler", io_source: "handler" });
    return undefined;
  }
  const adapter = adapters.get(requested.name);
  if (adapter === undefined) {
    log("error", "worker.adapter.unknown_from_cmd", { adapter: requested.name });
    throw new RunFailed(reasons.badAdapter, true, `unknown input_adapter '${requested.name}'`);
  }
  if (proposed !== undefined && !same(requested, proposed)) {
    const names = { handler_adapter: proposed.name, cmd_adapter: requested.name };
    log("warning", "worker.adapter.handler_conflict_ignored", { ...names, handler_args: proposed.args, cmd_args: requested.args });
  }
  return checked(adapter, requested.args, "cmd", defaults, log);
}

interface Proposal {
  readonly name: string;
  readonly args: Json | undefined;
}

/** An empty or null name means none, as in the reference. */
function proposalIn(inline: unknown): Proposal | undefined {
  if (!isObject(inline)) return undefined;
  const { input_adapter: name, input_args: args } = inline as JsonObject;
  if (name === undefined || name === null || name === "" || name === false) return undefined;
  return { name: typeof name === "string" ? name : JSON.stringify(name), args };
}

/** A handler that returns its input unchanged makes no proposal. */
function same(requested: Proposal, proposed: Proposal): boolean {
  return requested.name === proposed.name && sortedText(requested.args ?? {}) === sortedText(proposed.args ?? {});
}

function checked(adapter: InputAdapter, args: Json | undefined, source: "cmd" | "handler", defaults: ArgDefaults, log: WorkerLog): Route {
  const { name } = adapter;
  const fields = { name, adapter: name, source, io_source: source };
  const result = adapter.check(args, defaults);
  if (!result.ok) {
    log("error", "worker.adapter.validation_failed", { ...fields, reason: result.why });
    throw new RunFailed(reasons.badArgs, true, result.why);
  }
  const given = args ?? {};
  const from_nodes = (result.args as Partial<PullArgs>).fromNodes;
  log("info", "worker.adapter.selected", { ...fields, args: given, from_nodes, adapter_kwargs: given });
  log("debug", "worker.adapter.validation", { adapter: name, validation_status: "ok" });
  return { adapter, args: result.args };
}
