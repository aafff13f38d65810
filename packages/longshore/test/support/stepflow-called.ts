// A server and the worker that it calls, which is scripted byte by byte.

import { pluginWorld, type WorldOptions } from "./stepflow-plugins.ts";
import { type ScriptOptions, scriptedWorker } from "./stepflow-scripted-worker.ts";

export async function startCalled(script: ScriptOptions = {}, options: WorldOptions & { more?: string } = {}) {
  const worker = await scriptedWorker(script);
  const world = await pluginWorld(
    `plugins: { p: { type: stepflow, url: "${worker.url}", ${options.more ?? ""} } }\nroutes: { "/": [ { plugin: p } ] }\n`,
    options,
  );
  return { worker, world };
}

/** What a worker of dialect B answers to the handshake. */
export const dialectB = { serverProtocolVersion: 1, supportsBlobRefs: true };
