// The protocols of the registry on this server: prepared, opened on the engine, served, and closed, in this order.

import { resolve } from "node:path";
import type { Logger } from "../core/logger.ts";
import { ReservedLanes } from "../engine/board/reserved-lanes.ts";
import type { Dialect } from "../engine/run/dialect.ts";
import { type ProtocolHandles, protocols } from "../protocols/index.ts";
import type { FileDescription, OpenProtocol, PreparedProtocol, Preparing, ProtocolEngine, Serving } from "../protocols/server-half.ts";
import { directoryOf, type ServeOptions } from "./config.ts";
import { FailureLog } from "./failure-log.ts";
import { unreadable } from "./unreadable-rows.ts";

/** The names of lanes that protocols reserve. */
export const reservedLanes = new ReservedLanes(protocols.flatMap(({ reserved }) => reserved ?? []));

/** Reads the configuration of every protocol. Nothing is opened yet. */
export function prepareProtocols(options: ServeOptions, log: Preparing["log"], from = protocols): Promise<PreparedProtocol[]> {
  const listens = options.port !== null;
  const around: Preparing = { log, listens, secretPaths: secretPathsOf(options), environment: process.env, reservedLanes };
  return Promise.all(from.map((protocol) => protocol.prepare(options, around)));
}

/** The dialects of a server without any configuration. */
export async function plainDialects(): Promise<Dialect[]> {
  const quiet = () => {};
  const prepared = await prepareProtocols({ port: null }, { debug: quiet, info: quiet, warn: quiet, error: quiet });
  return prepared.flatMap(({ dialects }) => dialects);
}

/** Programs of workers to copy, for every protocol. */
export const workerPrograms: Serving["workerPrograms"] = async (options) => {
  const all = await Promise.all(protocols.flatMap(({ hints }) => (hints === undefined ? [] : [hints({ ...options, flags: {} })])));
  return all.flatMap(({ protocol, snippets }) => snippets.map((each) => ({ protocol, ...each })));
};

/** The formats of definition files of all protocols. */
export const definitionFiles: readonly FileDescription[] = protocols.flatMap(({ format }) => format ?? []);

export interface OpenProtocols {
  readonly list: readonly OpenProtocol[];
  readonly handles: ProtocolHandles;
  close(): Promise<void>;
}

/** Opens the protocols one after the other; some read rows. When one fails, those opened before it are closed. With `isIdle`, none of them starts anything. */
export async function openProtocols(
  prepared: readonly PreparedProtocol[],
  engine: ProtocolEngine,
  log: Logger,
  { isIdle = false }: { isIdle?: boolean } = {},
): Promise<OpenProtocols> {
  const list: OpenProtocol[] = [];
  const close = async () => {
    for (const each of list.splice(0)) await each.close?.();
  };
  try {
    for (const each of prepared) list.push(await each.open({ engine, log, trouble: new FailureLog(log, engine.clock), isIdle }));
  } catch (error) {
    await close();
    throw isIdle ? error : unreadable(error, (await engine.facts()).store);
  }
  return { list: [...list], handles: Object.assign({}, ...list.map(({ handle }) => handle)) as ProtocolHandles, close };
}

/** The paths of this server's secrets, which no definition may read. */
function secretPathsOf(options: ServeOptions): string[] {
  const { tokenFile, secretFiles = [] } = options;
  const own = [directoryOf(options), tokenFile, ...secretFiles].filter((path) => typeof path === "string");
  return [...own, ...protocols.flatMap((protocol) => protocol.secretPaths?.(options) ?? [])].map((path) => resolve(path));
}
