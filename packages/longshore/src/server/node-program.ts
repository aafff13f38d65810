// What `serve()` returns to a program when its server is a node of a cluster. The node serves some reads itself; the owner of the data performs all
// other calls.

import { connect } from "../client/connect.ts";
import { RunFailed } from "../client/run-failed.ts";
import type { ClusterNode } from "../cluster/node.ts";
import { LongshoreError } from "../core/errors.ts";
import type { Definition } from "../engine/run/dialect.ts";
import { defineFile, type FileDefinition } from "../engine/schedule/define-file.ts";
import type { RouteGroup } from "../net/http/http.ts";
import type { ProtocolHandles } from "../protocols/index.ts";
import { endWorkers } from "./ended-workers.ts";
import type { Engine } from "./engine.ts";
import { clientMethods, type ProgramSide } from "./handle.ts";
import { defining } from "./program-definitions.ts";
import { ownAddress, routeFetch } from "./route-fetch.ts";

/** The routes of a node, and what its protocols add to the server. */
interface NodeTable {
  readonly groups: readonly RouteGroup[];
  readonly fallback: RouteGroup | undefined;
  readonly handles: object;
}

interface NodeProgram extends ProgramSide {
  defineSource(definition: FileDefinition): Promise<Definition>;
}

/** Runs on the owner: performs a call of a program on another node. The link carries it as the call `program` with one of these verbs. */
export async function performProgram(
  { engine, handles }: { engine: Engine; handles: object },
  verb: string,
  given: readonly unknown[],
): Promise<unknown> {
  switch (verb) {
    case "define":
      return defineFile(engine, given[0] as never);
    case "schedule":
      return engine.schedules.put(given[0] as never);
    case "endWorkers":
      return endWorkers(engine, String(given[0]));
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

export function nodeProgram(node: ClusterNode, table: NodeTable): { program: NodeProgram; handles: ProtocolHandles } {
  const client = connect(ownAddress, { fetch: routeFetch(table.groups, table.fallback ?? (table.groups[0] as RouteGroup)) });
  const defineSource: NodeProgram["defineSource"] = (definition) => node.program("define", [definition]) as Promise<Definition>;
  const put = (wanted: unknown) => node.program("schedule", [wanted]) as never;
  const program: NodeProgram = {
    ...clientMethods(client),
    defineSource,
    define: defining({ define: defineSource, put }),
    async result<Output>(runId: string) {
      const run = client.run<Output>(runId);
      await run.result().catch((error: unknown) => {
        if (!(error instanceof RunFailed)) throw error;
      });
      const { id, state, output, error } = await run.status();
      return { id, state, output, error };
    },
    cancel: (runId, { reason } = {}) => client.run(runId).cancel(reason).catch(unlessUnknown),
    signal: (runId, name, value, options) => client.run(runId).signal(name, value, options),
    watchWaiting: () => {
      throw onlyEmbedded("watchWaiting");
    },
    watchFailures: () => {
      throw onlyEmbedded("watchFailures");
    },
    endWorkers: (idPrefix) => node.program("endWorkers", [idPrefix]) as Promise<void>,
    transport: () => {
      throw onlyEmbedded("work({ on: server })");
    },
  };
  return { program, handles: carriedHandles(node, table.handles) as ProtocolHandles };
}

/** For a run that does not exist, `cancel` returns false. */
function unlessUnknown(error: unknown): boolean {
  if (error instanceof LongshoreError && error.code === "LONGSHORE_NOT_FOUND") return false;
  throw error;
}

/** The functions of a protocol's handle. They are performed by the owner of the data. */
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
    `${what} needs a server that does not share its data. A node of a cluster shares it: give a worker the URL of a server instead.`,
  );
}
