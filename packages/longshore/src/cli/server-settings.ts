// Every setting of `dev` and `start`, in one table: flags, environment variables, keys of a configuration file, and what `longshore config`
// shows. A test compares it with docs/reference/configuration.md.

import { Option } from "commander";
import { byteQuotas, quotaDefaults, storedKinds } from "../core/quotas.ts";
import { withoutLogin } from "../core/without-login.ts";
import { retentionDefault } from "../engine/run/retention.ts";
import { protocols } from "../protocols/index.ts";
import type { ServerFlag } from "../protocols/protocol.ts";
import { dataDefault, portDefault } from "../server/config.ts";
import { describeStore } from "../server/external-store.ts";
import { type Kind, type Setting, setting } from "./setting.ts";

/** Shown instead of a secret. */
const hidden = "(hidden)";

export const serverSettings: readonly Setting[] = [
  setting("--port <number>", "port", "port to listen on; 0 takes any free port", { default: portDefault }),
  setting("--host <address>", "text", "address to listen on; other than loopback requires tokens", { default: "127.0.0.1" }),
  setting("--data <folder>", "path", "data folder", { default: dataDefault }),
  setting("--store <url>", "text", "keep the data in PostgreSQL: postgres://user@host/database?schema=longshore", {
    ...{ only: "start", conflicts: ["data", "ephemeral", "acceptDamage"], shown: shownStore },
  }),
  setting("--lease <duration>", "duration", "with --store: how long a server that hangs keeps others out (default: 5s)", { only: "start" }),
  setting("--advertise <url>", "text", "with --store: where other servers on the same data reach this one (default: where it listens)", {
    only: "start",
  }),
  setting("--ephemeral", "switch", "keep all data in memory; nothing survives the process", { conflicts: ["data"] }),
  setting("--accept-damage", "switch", "start although the data file is damaged, with the data that is readable"),
  setting("--workflows <folder>", "path", "define the YAML and JSON files of this folder, and the workflows of its modules, at the start"),
  ...protocols.flatMap(({ flags }) => flags?.list ?? []).map(protocolSetting),
  setting("--token <token>", "tokens", "accept this token; may be repeated; --token-file is safer because process lists show this", {
    // LONGSHORE_TOKEN is the token that clients send.
    ...{ key: "tokens", variable: "LONGSHORE_TOKENS", shown: () => hidden },
  }),
  setting("--token-file <file>", "path", "file with tokens, one per line"),
  setting("--insecure", "switch", "listen on other addresses than loopback without requiring tokens"),
  setting("--origin <origins>", "list", "web origins whose pages may call this server, such as https://ops.example"),
  setting("--allow-host <names>", "list", "further host names of this server"),
  setting("--no-ui", "switch", "serve no dashboard at /ui", { variable: "LONGSHORE_UI" }),
  setting("--tls-cert <file>", "path", "TLS certificate, PEM; with --tls-key"),
  setting("--tls-key <file>", "path", "key of the TLS certificate, PEM"),
  setting("--keep-for <duration>", "duration", "how long runs are kept after their end", { default: "30d" }),
  setting("--keep-runs <number>", "count", "maximum number of ended runs to keep", { default: retentionDefault.runs.count }),
  setting("--keep-logs <duration>", "duration", "how long logs are kept, if shorter than --keep-for", { default: "30d" }),
  ...storedKinds.map((kind) => {
    const { flag, what, quota } = byteQuotas[kind];
    return setting(`${flag} <number>`, "count", `maximum total size of ${what}, in bytes`, { default: quotaDefaults[quota] });
  }),
  setting("--otlp-endpoint <url>", "text", "send spans of runs, steps and attempts to this OpenTelemetry collector", {
    ...{ otherVariable: "OTEL_EXPORTER_OTLP_ENDPOINT", shown: (value) => withoutLogin(String(value)) },
  }),
  setting("--log-level <level>", "level", "lowest level to log", { defaults: { dev: "warn", start: "info" } }),
];

function protocolSetting({ flag, description, isList, conflicts, variable, isSecret }: ServerFlag): Setting {
  const kind: Kind = isList ? "list" : /<(file|folder)>$/.test(new Option(flag).flags) ? "path" : "text";
  return setting(flag, kind, description, {
    ...(conflicts === undefined ? {} : { conflicts: [conflicts] }),
    ...(variable === undefined ? {} : { variable }),
    ...(isSecret ? { shown: () => hidden } : {}),
  });
}

/** Without its password. */
function shownStore(value: unknown): string {
  return describeStore(String(value)).shown;
}
