// Runs the built client on each JavaScript runtime. Its server is a separate process, which is killed while the client waits.

import { fileURLToPath, pathToFileURL } from "node:url";
import { graph, type Ref, TerminalError, task, work } from "longshore";
import { workflowGraph } from "longshore/workflow-graph";
import { expect, it, onTestFinished } from "vitest";
import { startOurServer } from "../src/longshore.ts";
import { openStage } from "../src/stage.ts";
import { runtimeProgram } from "./fetch.ts";

const built = fileURLToPath(new URL("../../longshore/dist/client/index.js", import.meta.url));
const program = fileURLToPath(new URL("programs/client.mjs", import.meta.url));

const double = task("double", async (n: number) => {
  if (typeof n !== "number") throw new TerminalError("this is no number");
  return 2 * n;
});
const { source } = graph("doubling", (g, n: Ref<number>) => g.step(double, n));

/** Deno gives a program only the permissions that are named: the client needs the network, and the folder that it is loaded from. */
const commands = {
  node: () => [process.execPath],
  deno: () => [runtimeProgram("deno"), "run", "--no-config", "--no-lock", "--no-prompt", "--allow-net=127.0.0.1", "--allow-read"],
  bun: () => [runtimeProgram("bun"), "run"],
};

it.each(["node", "deno", "bun"] as const)(
  "the client on %s continues to wait for a run when the server is killed and started again",
  async (runtime) => {
    const stage = openStage({ onTestFinished });
    const { url, data, child: first } = await startOurServer(stage);
    const [command = "", ...flags] = commands[runtime]();
    const args = [...flags, program, pathToFileURL(built).href, url, JSON.stringify(source)];
    const client = stage.start(command, args, { name: runtime });
    await client.printed(/^started true$/m);
    await client.printed(/^following$/m);
    first.signal("SIGKILL");
    await first.ended;
    await startOurServer(stage, { data, port: Number(new URL(url).port) });
    const worker = await work({ tasks: [double], on: workflowGraph(url), logger: false, signals: false });
    stage.onClose(() => worker.stop({ force: true }));
    expect(await client.ended, client.output()).toBe("code 0");
    const lines = ["result 8", "events task queued, run succeeded", "call 10", "failed failed", "runs 2"];
    expect(client.output().split("\n")).toEqual(expect.arrayContaining(lines));
  },
);
