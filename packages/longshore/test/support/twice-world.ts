// Requests as an owner performs them for other nodes. The engine can be closed and opened again on the same data, as at a take-over.

import { createHash } from "node:crypto";
import { onTestFinished } from "vitest";
import type { CarriedCall } from "../../src/cluster/carried-call.ts";
import type { CarriedReply } from "../../src/cluster/carried-reply.ts";
import type { CarriedRequest } from "../../src/cluster/carried-request.ts";
import { Performer, type PerformerDeps } from "../../src/cluster/performer.ts";
import { idMaker } from "../../src/core/ids.ts";
import type { Logger } from "../../src/core/logger.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import { RequestIds } from "../../src/core/request-ids.ts";
import { createAuth } from "../../src/net/listener/auth.ts";
import type { Encodable, Message, Rpc } from "../../src/net/protobuf/protobuf.ts";
import { openProtocols, prepareProtocols } from "../../src/server/protocols.ts";
import { tableOf } from "../../src/server/server-port.ts";
import { openEngineWithStore } from "./engine.ts";
import { temporaryFolder } from "./parts.ts";

const quiet = () => {};
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet } as unknown as Logger;
const makeId = idMaker();

/** A request of a route, as a test writes it. */
export interface Asked {
  /** The route as in the table: `POST /api/runs/:id/cancel`. */
  readonly route: string;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly body?: unknown;
}

/** The answer of an owner to a call of gRPC: a message in base64, a refusal, or the name of a stream. */
export interface CarriedAnswer {
  readonly message?: string;
  readonly status?: unknown;
  readonly stream?: string;
}

export type Owner = Awaited<ReturnType<typeof openOwner>>;

/** A performer without stored answers does what one does after a crash between a change and the storing of its answer. */
const forgetful: PerformerDeps["answers"] = { answer: async () => null, keepAnswer: async () => {} };

export async function openOwner(directory: string, { forgets = false } = {}) {
  const ids = new RequestIds(makeId);
  const prepared = await prepareProtocols({ data: directory, port: 0 }, log);
  const engine = await openEngineWithStore({ directory, dialects: prepared.flatMap(({ dialects }) => dialects), ids });
  const protocols = await openProtocols(prepared, engine, log);
  const { served, groups } = await tableOf({ engine, protocols: protocols.list, metrics: createMetrics(), auth: createAuth([]) });
  const methods = served.flatMap((each) => each.methods ?? []);
  const performer = new Performer({
    ...{ table: { groups, methods }, clock: engine.clock, ids },
    answers: forgets ? forgetful : engine.performed,
    program: async () => undefined,
    isOver: () => false,
  });
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= (async () => {
      for (const each of served) each.dismiss?.();
      performer.close();
      await protocols.close();
      await engine.close();
    })();
    return closed;
  };
  onTestFinished(close);
  const call = (name: string, args: unknown, isRepeat: boolean) =>
    performer.call(name, args, { key: "", node: "node", link: { isOver: false }, isRepeat, signal: new AbortController().signal });
  return {
    engine,
    groups,
    methods,
    performer,
    close,
    perform: (carried: CarriedRequest, isRepeat = false) => call("request", carried, isRepeat) as Promise<CarriedReply>,
    performCall: (carried: CarriedCall, isRepeat = false) => call("grpc", carried, isRepeat) as Promise<CarriedAnswer>,
    /** The next pieces of what is sent in pieces. */
    pull: (stream: string) => call("pull", stream, false),
    /** Every row of the data, without stored responses to requests and without times of last use. */
    rows(): Record<string, string[]> {
      const { db } = engine.store;
      const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all();
      const found: Record<string, string[]> = {};
      for (const { name } of tables) {
        const rows = db.prepare(`SELECT * FROM ${name as string}`).all() as Record<string, unknown>[];
        if (name === "property" || name === "worker") continue;
        found[name as string] = rows
          .filter((row) => row.name !== "tries to write")
          .map(shown)
          .sort();
      }
      return found;
    },
  };
}

function shown(row: Record<string, unknown>): string {
  const { seen_at: _seen, used_at: _used, updated_at: _updated, hold_until: _until, ...rest } = row;
  const text = JSON.stringify(rest, (_, value) => (typeof value === "bigint" ? Number(value) : value));
  return text.length > 500 ? createHash("sha256").update(text).digest("hex") : text;
}

export function carriedOf({ route, params = {}, query = "", body }: Asked): CarriedRequest {
  const path = (route.split(" ")[1] as string).replace(/:([^/]+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
  const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
  const bytes = body instanceof Uint8Array ? { bytes: Buffer.from(body).toString("base64"), text: "" } : { text };
  return {
    route,
    path,
    params,
    query,
    headers: { "content-type": "application/json" },
    caller: { scopes: ["operator"] },
    id: makeId(Date.now()),
    ...bytes,
  };
}

export function carriedCallOf<Request extends Message, Response extends Message>(
  { path, request }: Rpc<Request, Response>,
  message: Encodable<Request>,
): CarriedCall {
  return {
    path,
    message: Buffer.from(request.encode(message)).toString("base64"),
    metadata: {},
    caller: { scopes: ["operator"] },
    peer: "127.0.0.1:1",
    id: makeId(Date.now()),
  };
}

export { temporaryFolder };
