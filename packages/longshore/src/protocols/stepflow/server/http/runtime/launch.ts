// Starts the worker of a plugin and waits until it can be called. First it waits for the line with the port on standard output, and then
// for a successful health check.

import { type Clock, pause } from "../../../../../core/clock.ts";
import { isObject } from "../../../../../core/json/json.ts";
import type { HttpPlugin, Launch } from "../../config/config.ts";
import { httpEnvironment } from "../../plugins/environment.ts";
import type { PluginHost } from "../../plugins/host.ts";
import { type PluginProcess, startProcess } from "../../plugins/process.ts";
import { findProgram } from "../../plugins/program.ts";
import type { WorkerClient } from "./client.ts";

/** As in the reference: how long a worker may take to print its port. */
const portMsMax = 30_000;
/** Timeout of one health check. */
const lookMs = 5_000;

/** Resolves with the process and its port. Rejects when the process ends first or prints no port in time. */
export async function launchWorker(
  plugin: HttpPlugin & { readonly launch: Launch },
  host: PluginHost,
  signal: AbortSignal,
): Promise<{ process: PluginProcess; port: number }> {
  const { directory, clock, log, groups } = host;
  const env = httpEnvironment(plugin);
  const program = findProgram(plugin.launch.command, { plugin: plugin.name, directory, path: env.PATH ?? host.environment.PATH });
  let said: (port: number) => void = () => {};
  const port = new Promise<number>((resolve) => {
    said = resolve;
  });
  let known = false;
  const takes = (line: string) => {
    const found = known ? null : portIn(line);
    if (found === null) return false;
    known = true;
    said(found);
    return true;
  };
  const process = startProcess({ plugin: plugin.name, program, args: plugin.launch.args, env, directory, clock, log, groups, takes });
  try {
    return { process, port: await firstOf(port, process, clock, signal) };
  } catch (error) {
    await process.stop();
    throw error;
  }
}

/** Null for any other line, such as a greeting. */
function portIn(line: string): number | null {
  if (!line.includes("port")) return null;
  try {
    const value: unknown = JSON.parse(line);
    const port = isObject(value) ? value.port : undefined;
    return typeof port === "number" && Number.isInteger(port) && port >= 1 && port <= 65_535 ? port : null;
  } catch {
    // Not JSON: a line for people.
    return null;
  }
}

async function firstOf(port: Promise<number>, process: PluginProcess, clock: Clock, signal: AbortSignal): Promise<number> {
  const over = new AbortController();
  const onAbort = () => over.abort();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const late = pause(clock, portMsMax, over.signal).then(() => {
      throw new Error(withTail(`its worker did not print {"port": N} on standard output within ${portMsMax / 1_000} s`, process));
    });
    const ended = process.ended.then((how) => {
      throw new Error(withTail(`its worker ended before it printed {"port": N} on standard output (${how})`, process));
    });
    return await Promise.race([port, late, ended]);
  } finally {
    over.abort();
    signal.removeEventListener("abort", onAbort);
  }
}

/** Resolves when the health check succeeds. A 404 counts as success, because a worker need not have a health page. */
export async function untilHealthy(
  client: WorkerClient,
  { health }: HttpPlugin,
  process: PluginProcess,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const untilMs = clock.now() + health.timeoutMs;
  let ended: string | null = null;
  void process.ended.then((how) => {
    ended = how;
  });
  let last = "it was not called yet";
  while (!signal.aborted) {
    last = await lookAt(client, health.path, clock);
    if (last === "") return;
    if (ended !== null) throw new Error(withTail(`its worker ended before it was healthy (${ended})`, process));
    if (clock.now() >= untilMs)
      throw new Error(withTail(`its worker was not healthy within ${health.timeoutMs} ms (GET ${health.path}: ${last})`, process));
    await pause(clock, health.retryMs, signal);
  }
  throw new Error("it was stopped");
}

/** Empty when the worker is healthy, else the problem. */
async function lookAt(client: WorkerClient, path: string, clock: Clock): Promise<string> {
  const timeLimit = new AbortController();
  const disarm = clock.at(clock.now() + lookMs, () => timeLimit.abort(new Error(`no answer within ${lookMs} ms`)));
  try {
    const status = await client.get(path, timeLimit.signal);
    return (status >= 200 && status < 300) || status === 404 || status === 405 ? "" : `status ${status}`;
  } catch (error) {
    return (error as Error).message;
  } finally {
    disarm();
  }
}

/** Adds the last lines of the worker, which usually contain the reason. */
function withTail(message: string, { tail }: PluginProcess): string {
  return tail === "" ? message : `${message}; its last output:\n${tail}`;
}
