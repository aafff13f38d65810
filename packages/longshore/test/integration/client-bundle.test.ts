// Bundles `longshore/client` for a browser, from the built files that are published. Checks its content, and that it works with only the
// functions of browsers.

import { fileURLToPath } from "node:url";
import { runInNewContext } from "node:vm";
import { rolldown } from "rolldown";
import { describe, expect, it, onTestFinished } from "vitest";
import type * as clientModule from "../../src/client/index.ts";
import { task } from "../../src/core/task.ts";
import { graph } from "../../src/graph.ts";
import type { Ref } from "../../src/reference.ts";
import { serve } from "../../src/server/server.ts";
import { work } from "../../src/work.ts";

const dist = new URL("../../dist/", import.meta.url);
const entry = fileURLToPath(new URL("client/index.js", dist));

/** Minified and not compressed. A larger bundle would slow down a page. */
const bytesMax = 25_000;

/** The only globals that the client may use. Browsers, Deno, Bun and Node have them. */
const web = ["AbortController", "AbortSignal", "TextDecoder", "URL", "btoa", "clearTimeout", "crypto", "fetch", "setTimeout"] as const;

async function bundle(format: "es" | "iife") {
  const build = await rolldown({ input: entry, platform: "browser", logLevel: "silent" });
  onTestFinished(() => build.close());
  const { output } = await build.generate({ format, name: "longshore", minify: true });
  expect(output).toHaveLength(1);
  return output[0];
}

describe("a bundle of the client", () => {
  it("imports nothing, is small, and has no code of servers, workers or protocols", async () => {
    const { code, imports, dynamicImports, moduleIds } = await bundle("es");
    expect([...imports, ...dynamicImports]).toEqual([]);
    expect(code.length).toBeLessThan(bytesMax);
    const root = fileURLToPath(dist);
    const files = moduleIds.map((id) => (id.startsWith(root) ? id.slice(root.length).replaceAll("\\", "/") : id));
    expect(files).toContain("client/connect.js");
    const allowed = /^(client|core)\/|^net\/http\/read-events\.js$|^protocols\/longshore\/wire\/prefix\.js$/;
    expect(files.filter((file) => !allowed.test(file))).toEqual([]);
  });

  it("starts runs, follows them and calls tasks with only the functions of a browser", async () => {
    const { code } = await bundle("iife");
    const globals = Object.fromEntries(web.map((name) => [name, globalThis[name]]));
    const { connect } = runInNewContext(`${code};longshore`, { ...globals }) as typeof clientModule;
    const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
    onTestFinished(() => server.close());
    const double = task("double", async (n: number) => 2 * n);
    const worker = await work({ tasks: [double], on: server, logger: false, signals: false });
    onTestFinished(() => worker.stop({ force: true }));
    const client = connect(server.url as string);
    const run = await client.start(
      graph("doubling", (g, n: Ref<number>) => g.step(double, n)),
      4,
    );
    expect(await run.result()).toBe(8);
    const states: string[] = [];
    for await (const event of run.events()) states.push(`${event.kind} ${event.state}`);
    expect(states).toEqual(["task done", "run succeeded"]);
    expect(await client.call("double", 5)).toBe(10);
    await expect(client.start("nothing")).rejects.toMatchObject({ code: "LONGSHORE_NOT_FOUND" });
  });
});
