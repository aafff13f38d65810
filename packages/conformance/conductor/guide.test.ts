// docs/guides/conductor.md shows a worker for each official SDK. This test takes both from the page and runs them unchanged on our server.
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { exchange } from "../src/exchange.ts";
import { startOurServer } from "../src/longshore.ts";
import { openStage } from "../src/stage.ts";
import { javascriptSdk, pythonWithSdk } from "./fetch.ts";

const page = readFileSync(new URL("../../../docs/guides/conductor.md", import.meta.url), "utf8");

const workers = [
  { sdk: "JavaScript", needs: "@io-orkes/conductor-javascript", file: "worker.mjs", program: () => process.execPath },
  { sdk: "Python", needs: "conductor-python", file: "worker.py", program: pythonWithSdk },
];

it.each(workers)("the guide's worker for the $sdk SDK completes the guide's workflow", async ({ needs, file, program }) => {
  const stage = openStage({ onTestFinished });
  const { url } = await startOurServer(stage);
  const post = (path: string, body: string) =>
    exchange(url, { method: "POST", path: `/api${path}`, headers: { "content-type": "application/json" }, body });
  const [, definition = ""] = /metadata\/workflow" -H "\$json" -d '([^']+)'/.exec(page) ?? [];
  expect((await post("/metadata/workflow", definition)).status).toBe(200);

  const folder = stage.folder();
  symlinkSync(join(javascriptSdk(), "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, file), blockAfter(`needs ${needs}`));
  stage.start(program(), [file], { name: needs, cwd: folder, env: { CONDUCTOR_SERVER_URL: `${url}/api` } });
  const answer = await post("/workflow/execute/hello/1?waitForSeconds=60", JSON.stringify({ input: { name: "Ada" } }));
  expect(JSON.parse(answer.body)).toMatchObject({ status: "COMPLETED", output: { text: "Hello, Hello, Ada!!" } });
});

/** The code block that follows this comment of the page. */
function blockAfter(remark: string): string {
  const [, block = ""] = /```\w+\n([\s\S]*?)```/.exec(page.slice(page.indexOf(remark))) ?? [];
  expect(block).not.toBe("");
  return block;
}
