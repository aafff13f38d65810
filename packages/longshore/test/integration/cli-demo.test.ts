// `longshore demo`, which `npm start` runs, and the terminal view that it shares with `run --follow`.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { longshore, startLongshore, startProgram, startServer, temporaryFolder } from "../support/cli.ts";

const start = fileURLToPath(new URL("../../../../scripts/start.mjs", import.meta.url));

it("npm start -- --once builds, runs the sample and ends with 0", async () => {
  const folder = temporaryFolder();
  // What `npm start` runs, in a separate folder so that the repository gets no data.
  const { code, stdout, stderr } = await startProgram(process.execPath, [start, "--once", "--port", "0"], { cwd: folder }).ended;
  // A loaded machine may delay the server, which the server reports.
  expect(stderr.replace(/^.* warn {2}The event loop was blocked.*\n/gm, "")).toBe("");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^Building Longshore \.\.\. done in [\d.]+ s\.\nLongshore serves on/);
  expect(stdout).toMatch(/serves on http:\/\/127\.0\.0\.1:\d+, with its data in \.longshore\./);
  expect(stdout).toMatch(/charge-card retries \(try 2\)/);
  expect(stdout).toMatch(/✓ send-receipt done after .*: receipt R-1042 sent to Ada/);
  expect(stdout).toMatch(/^order succeeded after /m);
  expect(existsSync(join(folder, ".longshore/longshore.db"))).toBe(true);
});

it("demo serves until it gets a stop signal", async () => {
  const demo = startLongshore(["demo", "--port", "0"], { cwd: temporaryFolder() });
  const [, url = ""] = await demo.printed(/serves on (http:\S+?),/);
  await demo.printed(/Serving until Ctrl-C/);
  expect((await longshore(["runs", "--on", url])).stdout).toMatch(/order +succeeded/);
  expect((await longshore(["workers", "--on", url])).stdout).toMatch(/idle +workflow-graph .* charge-card,/);
  demo.kill("SIGINT");
  expect((await demo.ended).code).toBe(0);
});

it("demo can be ended in the middle of the sample", async () => {
  const demo = startLongshore(["demo", "--port", "0"], { cwd: temporaryFolder() });
  await demo.printed(/price-order running/);
  demo.kill("SIGINT");
  expect((await demo.ended).code).toBe(0);
});

it("demo reports that its port is taken and how to choose another", async () => {
  const server = await startServer();
  const { code, stderr } = await longshore(["demo", "--port", String(server.port)], { cwd: temporaryFolder() });
  expect(code).toBe(2);
  expect(stderr).toMatch(new RegExp(`Port ${server.port} .* is in use\\..*--port \\(0 takes any free one\\)`));
});
