// Parses a Stepflow configuration file, YAML or JSON. Settings that this server handles in its own way (such as where data is stored) are
// skipped with a warning. A plugin of type `mcp` is not supported. A route to it is refused with the name of the plugin; without a route
// there is only a warning.

import { resolve } from "node:path";
import type { Backoff } from "../../../../core/backoff.ts";
import type { Environment } from "../../../../core/environment.ts";
import { fields, mapOf, textOf, whole } from "../../../../core/file-fields.ts";
import { type Place, readFile, type Warning } from "../../../../core/file-place.ts";
import { type BlobApi, blobApiDefault, type Plugin, retryDefault, type StepflowConfig, type TransportRetry } from "./config.ts";
import { parsePlugin, type UnservedPlugin } from "./parse-plugin.ts";
import { parseRoutes } from "./parse-routes.ts";
import { queuesOf } from "./queues.ts";
import { filledText } from "./variables.ts";

export interface ParseOptions {
  /** The path of the file. When it ends with `.json`, the content must be JSON. */
  readonly file: string;
  readonly environment: Environment;
}

const readPast = ["storageConfig", "stateStore", "leaseManager", "recovery"];
const topKeys = ["workingDirectory", "plugins", "routes", "blobApi", "retry", "typeCheck", ...readPast];
const delayMsMax = 3_600_000;
/** Maximum number of retries. When so many fail, the transport is not the cause. */
const retriesMax = 1_000;

/**
 * Configurations in Stepflow's guides have routes to `builtin` but do not declare it as a plugin, because it has no settings. A declared plugin of that name takes precedence.
 */
const builtin: Plugin | UnservedPlugin = { name: "builtin", type: "builtin" };

/** Throws LONGSHORE_BAD_CONFIG with field, expected, line and column; the caller adds the file's name. */
export function parseConfig(text: string, { file, environment }: ParseOptions): { config: StepflowConfig; warnings: Warning[] } {
  const { root, warnings } = readFile(text, { json: file.endsWith(".json"), code: "LONGSHORE_BAD_CONFIG" });
  mapOf(root, "a map with plugins and routes");
  refuseOldRouting(root);
  const top = fields(root, topKeys);
  const given = pluginsOf(top.get("plugins"), environment);
  const plugins = new Map([[builtin.name, builtin], ...given]);
  const routes = top.get("routes");
  const parsed = routes === undefined || routes.kind === "null" ? [] : parseRoutes(routes, plugins, environment);
  const used = new Set(parsed.flatMap(({ rules }) => rules.map((rule) => rule.plugin)));
  if (!given.has(builtin.name) && !used.has(builtin.name)) plugins.delete(builtin.name);
  warnUnused(top.get("plugins"), plugins, used);
  warnUnserved(top);
  const config: StepflowConfig = {
    file,
    directory: directoryOf(top.get("workingDirectory"), file, environment),
    plugins: new Map([...plugins].filter((entry): entry is [string, Plugin] => entry[1].type !== "unserved")),
    routes: parsed,
    retry: retryOf(top.get("retry")),
    blobApi: blobApiOf(top.get("blobApi"), environment),
    typeCheck: switchOf(top.get("typeCheck"), false),
  };
  refuseTwoBackends(config, top.get("plugins") ?? root);
  return { config, warnings };
}

function pluginsOf(place: Place | undefined, environment: Environment): Map<string, Plugin | UnservedPlugin> {
  const plugins = new Map<string, Plugin | UnservedPlugin>();
  if (place === undefined || place.kind === "null") return plugins;
  for (const { key, at, value } of mapOf(place, "a map from names to plugins").entries()) {
    if (!/^[^\s\p{Cc}]{1,100}$/u.test(key))
      throw at.refuse(`'${key}' cannot be the name of a plugin.`, "1 to 100 characters without spaces");
    plugins.set(key, parsePlugin(key, value, environment));
  }
  return plugins;
}

/** Refuses the older list of `match` and `target`, which `routes` has replaced. If it were ignored, no component would have a route. */
function refuseOldRouting(root: Place): void {
  const old = root.entries().find(({ key }) => key === "routing");
  if (old === undefined) return;
  throw old.at.refuse("`routing` is an older form that is not read any more.", 'routes: {"/prefix": [{plugin: name}]}');
}

function warnUnused(place: Place | undefined, plugins: ReadonlyMap<string, Plugin | UnservedPlugin>, used: ReadonlySet<string>): void {
  for (const { key, at } of place?.entries() ?? []) {
    const plugin = plugins.get(key);
    if (plugin?.type === "unserved") at.warn(`The plugin ${key} is left out: ${plugin.why}.`);
    else if (!used.has(key)) at.warn(`No route leads to the plugin ${key}.`);
  }
}

function warnUnserved(top: ReadonlyMap<string, Place>): void {
  const storage = top.get("storageConfig") ?? top.get("stateStore");
  storage?.warn("Storage is not chosen here: this server keeps everything where --data or --store says.");
  const lease = top.get("leaseManager");
  const kind = lease?.entries().find(({ key }) => key === "type")?.value.text ?? "noOp";
  if (!["noOp", "none"].includes(kind))
    lease?.warn(`Leases by ${kind} are not used: this server has its own way to decide which server owns the data.`);
  top.get("recovery")?.warn("Recovery has no settings here: a run always continues after a restart.");
}

function directoryOf(place: Place | undefined, file: string, environment: Environment): string {
  const folder = resolve(file, "..");
  return place === undefined || place.kind === "null" ? folder : resolve(folder, filledText(place, "a folder", environment));
}

function blobApiOf(place: Place | undefined, environment: Environment): BlobApi {
  if (place === undefined || place.kind === "null") return blobApiDefault;
  const given = fields(mapOf(place, "a map with enabled, url and blobThreshold"), ["enabled", "url", "blobThreshold"]);
  const url = given.get("url");
  const text = url === undefined || url.kind === "null" ? null : filledText(url, "an address", environment);
  if (text !== null && !/^https?:\/\/[^\s]+$/.test(text))
    throw (url as Place).refuse(`'${text}' is not an address.`, "http://host:port/api/v1/blobs");
  return {
    enabled: switchOf(given.get("enabled"), blobApiDefault.enabled),
    url: text,
    threshold: whole(given.get("blobThreshold"), blobApiDefault.threshold),
  };
}

function switchOf(place: Place | undefined, absent: boolean): boolean {
  if (place === undefined) return absent;
  if (place.kind !== "boolean") throw place.refuse(`'${place.text}' is not a boolean.`, "true or false");
  return place.value as boolean;
}

function retryOf(place: Place | undefined): TransportRetry {
  if (place === undefined || place.kind === "null") return retryDefault;
  const given = fields(mapOf(place, "a map with transportMaxRetries and backoff"), ["transportMaxRetries", "backoff"]);
  const max = given.get("transportMaxRetries");
  const backoff = given.get("backoff");
  return {
    max: max === undefined ? retryDefault.max : upTo(max, retriesMax),
    backoff: backoff === undefined || backoff.kind === "null" ? retryDefault.backoff : backoffOf(backoff),
  };
}

function backoffOf(place: Place): Backoff {
  const given = fields(mapOf(place, "a map with a type"), ["type", "delayMs", "minDelayMs", "maxDelayMs", "factor"]);
  const type = given.get("type");
  const kind = type === undefined ? "fibonacci" : textOf(type, "fibonacci, constant or exponential");
  const ms = (key: string, absent: number) => {
    const found = given.get(key);
    return found === undefined ? absent : upTo(found, delayMsMax);
  };
  if (kind === "constant") return { kind: "fixed", delayMs: ms("delayMs", 1_000) };
  const delayMs = ms("minDelayMs", 1_000);
  const maxMs = ms("maxDelayMs", 10_000);
  if (kind === "fibonacci") return { kind, delayMs, maxMs };
  if (kind === "exponential") return { kind, delayMs, maxMs, factor: factorOf(given.get("factor")) };
  throw (type ?? place).refuse(`There is no backoff '${kind}'.`, "fibonacci, constant or exponential");
}

function factorOf(place: Place | undefined): number {
  if (place === undefined) return 2;
  const factor = place.value;
  if (typeof factor === "number" && factor >= 1 && factor <= 100) return factor;
  throw place.refuse(`'${place.text}' is not a factor.`, "a number from 1 to 100");
}

function upTo(place: Place, max: number): number {
  const value = whole(place, 0);
  if (value > max) throw place.refuse(`It is ${value}.`, `a whole number, at most ${max}`);
  return value;
}

/** A queue has one lane, from which either gRPC or NATS takes tasks. With both, each would take the other's tasks. */
function refuseTwoBackends(config: StepflowConfig, place: Place): void {
  const backends = new Map<string, string>();
  for (const { name, backend, plugin } of queuesOf(config)) {
    const other = backends.get(name);
    if (other !== undefined && other !== backend)
      throw place.refuse(
        `The queue ${name} is served over ${backend} by the plugin ${plugin.name}, and over ${other} by another.`,
        "one of them",
      );
    backends.set(name, backend);
  }
}
