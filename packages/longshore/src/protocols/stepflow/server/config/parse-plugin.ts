// Parses one plugin of a configuration file. Unknown keys cause a warning; missing required keys are refused.

import type { Environment } from "../../../../core/environment.ts";
import { fields, listOf, mapOf, required, textOf, whole } from "../../../../core/file-fields.ts";
import type { Place } from "../../../../core/file-place.ts";
import {
  callsMaxDefault,
  consumerDefault,
  type GrpcPlugin,
  type HttpPlugin,
  healthDefault,
  type Launch,
  type LongshorePlugin,
  type NatsPlugin,
  type Plugin,
  type PluginTimeouts,
  queueTimeoutMsDefault,
  timeoutSecsMax,
} from "./config.ts";
import { mockPlugin } from "./parse-mock.ts";
import { filledText } from "./variables.ts";

/** A plugin that the file names but this server does not support. A route to it is refused with the reason. */
export interface UnservedPlugin {
  readonly type: "unserved";
  readonly name: string;
  readonly why: string;
}

const types = ["builtin", "grpc", "nats", "stepflow", "mock", "longshore"];
const launchKeys = ["command", "args", "env"];
const timeoutKeys = ["queueTimeoutSecs", "executionTimeoutSecs"];
/** The highest `maxConcurrency`: no worker has connections for more calls. */
const callsMaxMax = 10_000;
const healthMsMax = 3_600_000;

export function parsePlugin(name: string, place: Place, environment: Environment): Plugin | UnservedPlugin {
  mapOf(place, "a map with a type");
  const typePlace = place.entries().find(({ key }) => key === "type")?.value;
  if (typePlace === undefined) throw place.refuse(`The plugin ${name} has no type.`, `a type: ${types.join(", ")}`);
  const type = textOf(typePlace, `a type: ${types.join(", ")}`);
  if (type === "builtin") return { name, type, ...nothing(fields(place, ["type"])) };
  if (type === "mock") return mockPlugin(name, place);
  if (type === "stepflow") return httpPlugin(name, place, environment);
  if (type === "grpc") return grpcPlugin(name, place, environment);
  if (type === "nats") return natsPlugin(name, place, environment);
  if (type === "longshore") return longshorePlugin(name, place);
  if (type === "mcp") return { name, type: "unserved", why: "plugins of type mcp are not served" };
  throw typePlace.refuse(`There is no plugin type '${type}'.`, types.join(", "));
}

function httpPlugin(name: string, place: Place, environment: Environment): HttpPlugin {
  const given = fields(place, ["type", "url", "healthCheck", "maxConcurrency", ...launchKeys, ...timeoutKeys]);
  const launch = launchOf(given, environment);
  const url = given.get("url");
  if ((launch === null) === (url === undefined))
    throw place.refuse(
      `The plugin ${name} has ${launch === null ? "neither command nor url" : "both command and url"}.`,
      "command, to start the worker here, or url, to call one that runs elsewhere",
    );
  const callsMax = whole(given.get("maxConcurrency"), callsMaxDefault);
  if (callsMax < 1 || callsMax > callsMaxMax)
    throw required(place, given, "maxConcurrency").refuse(`It is ${callsMax}.`, `a whole number from 1 to ${callsMaxMax}`);
  return {
    name,
    type: "stepflow",
    launch,
    url: url === undefined ? null : httpUrl(url, environment),
    health: healthOf(given.get("healthCheck")),
    callsMax,
    timeouts: timeoutsOf(given),
  };
}

function grpcPlugin(name: string, place: Place, environment: Environment): GrpcPlugin {
  const given = fields(place, ["type", "queueName", ...launchKeys, ...timeoutKeys]);
  const queue = queueName(required(place, given, "queueName"), environment);
  return { name, type: "grpc", queue, launch: launchOf(given, environment), timeouts: timeoutsOf(given) };
}

function natsPlugin(name: string, place: Place, environment: Environment): NatsPlugin {
  const given = fields(place, ["type", "url", "natsUrl", "stream", "queueName", "consumer", ...launchKeys, ...timeoutKeys]);
  const url = given.get("url") ?? given.get("natsUrl");
  if (url === undefined) throw place.refuse("missing field `url`", "a field url (or natsUrl), such as nats://localhost:4222");
  const stream = given.get("stream") ?? given.get("queueName");
  const consumer = given.get("consumer");
  return {
    name,
    type: "nats",
    url: natsUrl(url, environment),
    stream: stream === undefined ? null : streamName(stream, environment),
    consumer: consumer === undefined ? consumerDefault : streamName(consumer, environment),
    launch: launchOf(given, environment),
    timeouts: timeoutsOf(given),
  };
}

function longshorePlugin(name: string, place: Place): LongshorePlugin {
  return { name, type: "longshore", timeouts: timeoutsOf(fields(place, ["type", ...timeoutKeys])) };
}

/** Null when the plugin starts no process. */
function launchOf(given: ReadonlyMap<string, Place>, environment: Environment): Launch | null {
  const command = given.get("command");
  if (command === undefined) {
    for (const key of ["args", "env"]) given.get(key)?.warn(`'${key}' has no effect, because there is no command.`);
    return null;
  }
  const args = given.get("args");
  const env = given.get("env");
  const program = filledText(command, "a program", environment);
  if (program === "") throw command.refuse("The command is empty.", "a program");
  return {
    command: program,
    args: args === undefined ? [] : listOf(args, "a list of texts").map((arg) => noNul(arg, filledText(arg, "a text", environment))),
    env: env === undefined ? {} : envOf(env, environment),
  };
}

function envOf(place: Place, environment: Environment): Launch["env"] {
  const env: { [name: string]: string } = {};
  for (const { key, at, value } of mapOf(place, "a map of variables").entries()) {
    if (key === "" || /[=\0]/.test(key)) throw at.refuse(`'${key}' cannot be the name of a variable.`, "a name without =");
    env[key] = value.kind === "null" ? "" : noNul(value, filledText(value, "a text", environment));
  }
  return env;
}

function noNul(place: Place, text: string): string {
  if (text.includes("\0")) throw place.refuse("It has a NUL character.", "a text without it");
  return text;
}

function healthOf(place: Place | undefined): HttpPlugin["health"] {
  if (place === undefined || place.kind === "null") return healthDefault;
  const given = fields(mapOf(place, "a map with path, timeoutMs and retryDelayMs"), ["path", "timeoutMs", "retryDelayMs"]);
  const path = given.get("path");
  const text = path === undefined ? healthDefault.path : textOf(path, "a path");
  if (!/^\/[^\s#]*$/.test(text)) throw (path ?? place).refuse(`'${text}' is not a path.`, "a path with a slash in front, such as /health");
  return {
    path: text,
    timeoutMs: bounded(given.get("timeoutMs"), healthDefault.timeoutMs, healthMsMax, "milliseconds"),
    retryMs: bounded(given.get("retryDelayMs"), healthDefault.retryMs, healthMsMax, "milliseconds"),
  };
}

function timeoutsOf(given: ReadonlyMap<string, Place>): PluginTimeouts {
  const execution = given.get("executionTimeoutSecs");
  const none = execution === undefined || execution.kind === "null";
  return {
    queueMs: bounded(given.get("queueTimeoutSecs"), queueTimeoutMsDefault / 1_000, timeoutSecsMax, "seconds") * 1_000,
    executionMs: none ? null : bounded(execution, 0, timeoutSecsMax, "seconds") * 1_000,
  };
}

function bounded(place: Place | undefined, absent: number, max: number, unit: string): number {
  if (place === undefined || place.kind === "null") return absent;
  const value = whole(place, absent);
  if (value < 1 || value > max) throw place.refuse(`It is ${value}.`, `${unit} from 1 to ${max}`);
  return value;
}

function httpUrl(place: Place, environment: Environment): URL {
  const text = filledText(place, "an address", environment);
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol))
    throw place.refuse(`'${text}' is not an address.`, "http://host:port or https://host:port");
  // A user name and password would never be sent, and every message about the worker would show them.
  if (url.username !== "" || url.password !== "") throw place.refuse("The address has a user name or password.", "an address without them");
  return url;
}

function natsUrl(place: Place, environment: Environment): string {
  const text = filledText(place, "the address of a NATS server", environment);
  const ok = text.split(",").every((one) => /^((nats|tls|ws|wss):\/\/)?[^\s/]+\/?$/.test(one.trim()));
  if (!ok) throw place.refuse(`'${text}' is not an address of a NATS server.`, "nats://host:port, or several with commas between them");
  return text;
}

/** Queue names are lane names: short, and on one line. */
export function queueName(place: Place, environment: Environment): string {
  const text = filledText(place, "the name of a queue", environment);
  if (!/^[^\s\p{Cc}]{1,200}$/u.test(text))
    throw place.refuse(`'${text}' cannot be the name of a queue.`, "1 to 200 characters without spaces");
  return text;
}

/** JetStream's rule for names of streams and consumers. */
export function streamName(place: Place, environment: Environment): string {
  const text = filledText(place, "the name of a stream", environment);
  if (!/^[^\s.*>/\\\p{Cc}]{1,200}$/u.test(text))
    throw place.refuse(`'${text}' cannot be a name in JetStream.`, "1 to 200 characters without spaces, dots, slashes, * and >");
  return text;
}

/** For a plugin without settings: `fields` has warned about all other keys, and there is nothing to read. */
function nothing(_given: ReadonlyMap<string, Place>): object {
  return {};
}
