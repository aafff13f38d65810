// Runs the commands in the files of ops/, with other paths. It does not test what only Docker or systemd can do.

import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { startLongshore, startProgram } from "../support/cli.ts";
import { temporaryFolder } from "../support/parts.ts";

const folder = fileURLToPath(new URL("../../../../ops/", import.meta.url));
const textOf = (name: string) => readFileSync(join(folder, name), "utf8");

/** Starts the server with these arguments, but on loopback, on any free port and with files of the test. */
async function start(args: readonly string[], data: string, tokens: string) {
  const own = temporaryFolder();
  writeFileSync(join(own, "tokens"), "operator:0123456789abcdef:op\n");
  const paths = new Map([
    [data, join(own, "data")],
    [tokens, join(own, "tokens")],
    ["0.0.0.0", "127.0.0.1"],
  ]);
  const server = startLongshore([...args.map((arg) => paths.get(arg) ?? arg), "--port", "0", "--json"]);
  const [, line = ""] = await server.printed(/^(\{"ready":true.*\})$/m);
  return { server, url: (JSON.parse(line) as { url: string }).url };
}

/** The last instruction of a Dockerfile with this name, whose argument is a list. */
function listOf(text: string, instruction: string): string[] {
  return JSON.parse(new RegExp(`\\b${instruction} (\\[.*\\])$`, "m").exec(text)?.[1] ?? "null") as string[];
}

it("the command of the Dockerfile starts a server, its health check succeeds, and a signal ends it", async () => {
  const text = textOf("Dockerfile");
  const { server, url } = await start(listOf(text.replace(/HEALTHCHECK.*\n.*\n/, ""), "CMD"), "/data", "/tokens");
  const [command, ...args] = listOf(/HEALTHCHECK.*\n.*\n/.exec(text)?.[0] ?? "", "CMD");
  expect(command).toBe("node");
  const check = () =>
    startProgram(
      process.execPath,
      args.map((arg) => arg.replace("http://127.0.0.1:4500", url)),
    ).ended;
  expect((await check()).code).toBe(0);
  server.kill("SIGTERM");
  expect((await server.ended).code).toBe(0);
  expect((await check()).code).toBe(1);
  expect(listOf(text, "ENTRYPOINT")).toEqual(["node", "node_modules/longshore/bin/longshore.js"]);
});

it("the command of the systemd unit starts a server", async () => {
  const line = /^ExecStart=(.*)$/m.exec(textOf("longshore.service"))?.[1] ?? "";
  const [program, ...args] = line.split(" ");
  expect(program).toMatch(/node_modules\/\.bin\/longshore$/);
  const tokens = `\${CREDENTIALS_DIRECTORY}/tokens`;
  const { server } = await start(args, "/var/lib/longshore", tokens);
  server.kill("SIGTERM");
  expect((await server.ended).code).toBe(0);
});

it("systemd finds no mistake in the unit", (context) => {
  const own = temporaryFolder();
  const unit = join(own, "longshore.service");
  writeFileSync(unit, textOf("longshore.service").replace(/^ExecStart=\S+/m, "ExecStart=/bin/sh"));
  const { error, status, stderr } = spawnSync("systemd-analyze", ["verify", unit], { encoding: "utf8" });
  if (error !== undefined) context.skip("needs systemd-analyze");
  expect([status, stderr]).toEqual([0, ""]);
});

interface Compose {
  readonly services: Record<string, { configs?: { source: string }[]; volumes?: string[]; depends_on?: string[] | object }>;
  readonly configs: Record<string, { content?: string; file?: string }>;
  readonly volumes: Record<string, unknown>;
}

it.each(["compose.yml", "compose-cluster.yml"])("%s refers only to things that it defines, and its configurations are readable", (name) => {
  const compose = parse(textOf(name), { merge: true }) as Compose;
  const services = Object.values(compose.services);
  const configs = services.flatMap(({ configs = [] }) => configs.map(({ source }) => source));
  expect([...new Set(configs)].sort()).toEqual(Object.keys(compose.configs).sort());
  const volumes = services.flatMap(({ volumes = [] }) => volumes.map((volume) => volume.split(":")[0]));
  expect([...new Set(volumes)].sort()).toEqual(Object.keys(compose.volumes).sort());
  const named = services.flatMap(({ depends_on = [] }) => (Array.isArray(depends_on) ? depends_on : Object.keys(depends_on)));
  expect(named.filter((service) => !(service in compose.services))).toEqual([]);
  for (const { file } of Object.values(compose.configs)) if (file !== undefined) expect(() => JSON.parse(textOf(file))).not.toThrow();
});
