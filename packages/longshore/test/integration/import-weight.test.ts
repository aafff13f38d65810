// What importing the package loads. A hook in a separate process records every module that is resolved. The test reads the built files,
// because these are published.

import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { describe, expect, it } from "vitest";

const dist = new URL("../../dist/", import.meta.url);

/**
 * Writes the URL of each module to standard output, one on each line. The hook runs on a separate thread, which shares the process's output.
 */
const hook = `
import { writeSync } from "node:fs";
export async function load(url, context, nextLoad) {
  writeSync(1, url + "\\n");
  return nextLoad(url, context);
}`;
const register = `
import { register } from "node:module";
register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hook)}));`;

/**
 * Every module that is loaded by importing `entry` and by the code in `use`: paths below dist/, names of built-in modules, or paths of
 * packages.
 */
function loadedBy(entry: string, use = ""): string[] {
  const program = `const module = await import(${JSON.stringify(new URL(entry, dist).href)}); ${use}`;
  const preload = `data:text/javascript,${encodeURIComponent(register)}`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--import", preload, "--input-type=module", "-e", program], {
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  const urls = stdout.split("\n").filter((line) => line.startsWith("file:") || line.startsWith("node:"));
  return urls.map((url) => (url.startsWith(dist.href) ? url.slice(dist.href.length) : url));
}

const serving = (port: string) => `await (await module.serve({ ephemeral: true, port: ${port} })).close();`;
const isPackage = (url: string) => url.includes("/node_modules/");
const heavy = /^(server|store|cli|engine|protocols\/[\w-]+\/(server|dialect))\//;
const network = /^node:(http|https|http2|net|tls|sqlite|dgram)$/;

/** Before durable functions and schedules existed, 178,338 bytes in 46 modules were loaded. With them it must not be more. */
const bytesMax = 120_000;

describe("importing longshore", () => {
  it("loads the runner only when a worker starts, so that definitions stay light", () => {
    const loaded = loadedBy("index.js");
    expect(loaded.filter((path) => path.startsWith("runner/") && path !== "runner/function/step-error.js")).toEqual([]);
    const bytes = loaded.filter((path) => path.endsWith(".js")).map((path) => statSync(new URL(path, dist)).size);
    expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThan(bytesMax);
  });

  it("loads no server, database, broker or HTTP client", () => {
    const loaded = loadedBy("index.js");
    expect(loaded).toContain("index.js");
    expect(loaded.filter(isPackage)).toEqual([]);
    expect(loaded.filter((path) => heavy.test(path) || network.test(path) || path.startsWith("protocols/"))).toEqual([]);
  });

  it("for an author of a transport loads only types", () => {
    expect(loadedBy("transport.js")).toEqual(["transport.js"]);
  });

  it("for a worker of workflow-graph loads nothing of the server", () => {
    const loaded = loadedBy("protocols/workflow-graph/worker/index.js");
    expect(loaded.filter((path) => heavy.test(path) || path === "node:sqlite")).toEqual([]);
    expect(loaded.filter((path) => isPackage(path) && !path.includes("/undici/"))).toEqual([]);
  });

  it("for a worker of Conductor loads nothing of the server, and the HTTP client only when it starts", () => {
    const loaded = loadedBy("protocols/conductor/worker/index.js");
    expect(loaded.filter((path) => heavy.test(path) || path === "node:sqlite")).toEqual([]);
    expect(loaded.filter(isPackage)).toEqual([]);
  });

  it("for a worker of Stepflow loads nothing of the server, and no client of NATS and no HTTP server before it starts", () => {
    const loaded = loadedBy("protocols/stepflow/worker/index.js");
    expect(loaded.filter((path) => heavy.test(path) || path.startsWith("telemetry/") || path === "node:sqlite")).toEqual([]);
    expect(loaded.filter((path) => isPackage(path) || path === "node:http")).toEqual([]);
  });

  it("for a worker of FlowKit loads nothing of the server, and no client of a broker or a database before it starts", () => {
    const loaded = loadedBy("protocols/flowkit/worker/index.js");
    expect(loaded.filter((path) => heavy.test(path) || path.startsWith("part/") || path === "node:sqlite" || path === "node:http")).toEqual(
      [],
    );
    expect(loaded.filter(isPackage)).toEqual([]);
  });

  it("for telemetry loads no exporter before one is configured", () => {
    const loaded = loadedBy("telemetry/index.js");
    expect(loaded.filter((path) => heavy.test(path) || network.test(path) || path.startsWith("protocols/") || isPackage(path))).toEqual([]);
  });

  it("for a server without a socket loads no protocol, no API and no parser of files", () => {
    const loaded = loadedBy("server/index.js", serving("null"));
    expect(loaded).toContain("store/sqlite/row-store.js");
    expect(loaded.filter((path) => /^protocols\/.*\/(routes|rest|server|lead)\.js$/.test(path))).toEqual([]);
    expect(loaded.filter((path) => /\/node_modules\/(zod|yaml|undici)\//.test(path))).toEqual([]);
  });

  it("is distinguished by this test from a server that listens", () => {
    const loaded = loadedBy("server/index.js", serving("0"));
    expect(loaded.filter((path) => heavy.test(path)).length).toBeGreaterThan(20);
    expect(loaded.filter((path) => path.includes("/node_modules/zod/")).length).toBeGreaterThan(0);
    expect(loaded.filter((path) => path.includes("/node_modules/yaml/"))).toEqual([]);
  });
});
