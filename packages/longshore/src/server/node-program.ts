// The part of a server that a program uses, on a node: performed where the data is owned.

import type { ClusterNode } from "../cluster/node.ts";
import { LongshoreError } from "../core/errors.ts";
import { toJson } from "../core/json/to-json.ts";
import { checkStartInput } from "../core/schema/schema.ts";
import type { Definition } from "../engine/run/dialect.ts";
import type { ProtocolHandles } from "../protocols/index.ts";
import type { Engine } from "./engine.ts";
import { defining, programSide, type Server } from "./handle.ts";

type ProgramSide = ReturnType<typeof programSide>;

interface NodeProgram extends ProgramSide {
  defineSource(definition: { name: string; dialect: string; source: string }): Promise<Definition>;
}

/** The verbs of `program` on the link. */
export async function performProgram(
  { engine, handles }: { engine: Engine; handles: object },
  verb: string,
  given: readonly unknown[],
): Promise<unknown> {
  const side = programSide(engine);
  const args = given as never[];
  switch (verb) {
    case "define":
      return engine.runs.defineNamed(args[0] as never);
    case "start":
      return side.start(...(args as unknown as Parameters<Server["start"]>));
    case "result":
      return side.result(args[0] as never);
    case "call":
      return side.call(...(args as unknown as Parameters<Server["call"]>));
    case "cancel":
      return side.cancel(...(args as unknown as Parameters<Server["cancel"]>));
    case "signal":
      return side.signal(...(args as unknown as Parameters<Server["signal"]>));
    case "schedule":
      return engine.schedules.put(args[0] as never);
    case "tryWrite":
      return engine.storage.tryWrite();
    case "handle": {
      const [field, method, rest] = given as [string, string, readonly unknown[]];
      const handle = Object.hasOwn(handles, field) ? (handles as Record<string, Record<string, unknown> | null>)[field] : null;
      const performed = handle != null && Object.hasOwn(handle, method) ? handle[method] : undefined;
      if (typeof performed !== "function")
        throw new LongshoreError("LONGSHORE_NOT_FOUND", `The owner of the data has no ${field}.${method}.`);
      return performed.apply(handle, rest);
    }
    default:
      throw new LongshoreError("LONGSHORE_NOT_FOUND", `The owner of the data does not know ${verb}.`);
  }
}

export function nodeProgram(node: ClusterNode, { handles }: { handles: object }): { program: NodeProgram; handles: ProtocolHandles } {
  const ask = <T>(verb: string, ...given: readonly unknown[]) => node.program(verb, given) as Promise<T>;
  const defineSource: NodeProgram["defineSource"] = (definition) => ask("define", definition);
  const define = defining({ define: defineSource, put: (wanted) => ask("schedule", wanted) });
  const program: NodeProgram = {
    defineSource,
    define,
    async start(workflow, input, options = {}) {
      if (typeof workflow !== "string") await checkStartInput(workflow, input);
      const name = typeof workflow === "string" ? workflow : (await define(workflow as never)).name;
      return ask("start", name, input ?? null, options);
    },
    result: (runId) => ask("result", runId),
    call: (task, input, options = {}) => {
      const [name, retry] = typeof task === "string" ? [task, undefined] : [task.name, task.retry];
      return ask("call", name, input ?? null, retry === undefined ? options : { retry, ...options });
    },
    cancel: (runId, options = {}) => ask("cancel", runId, options),
    signal: (runId, name, value = null, options = {}) => ask("signal", runId, name, toJson(value), options),
    watchWaiting: () => {
      throw onlyEmbedded("watchWaiting");
    },
    transport: () => {
      throw onlyEmbedded("work({ on: server })");
    },
  };
  return { program, handles: carriedHandles(node, handles) as ProtocolHandles };
}

/** The functions of a protocol's handle, performed where the data is owned. */
function carriedHandles(node: ClusterNode, handles: object): object {
  const carried: Record<string, unknown> = {};
  for (const [field, handle] of Object.entries(handles)) {
    if (handle === null || typeof handle !== "object") carried[field] = handle;
    else {
      const functions = Object.entries(handle).filter(([, value]) => typeof value === "function");
      carried[field] = Object.fromEntries(
        functions.map(([method]) => [method, (...rest: readonly unknown[]) => node.program("handle", [field, method, rest])]),
      );
    }
  }
  return carried;
}

function onlyEmbedded(what: string): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_BAD_CONFIG",
    `${what} needs a server that has its data to itself. On PostgreSQL, connect by the URL of a server instead.`,
  );
}
