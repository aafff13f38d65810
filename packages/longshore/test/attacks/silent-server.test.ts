// Not an attack, but a reason why attacks were not noticed. A server once logged nothing when its disk was full, its folder was removed or
// its callers were refused. Each of these is one log line, and its end is another. A refused caller is shown with the name of its token,
// never with the secret.

import { renameSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startServer, temporaryFolder } from "../support/cli.ts";

const operator = "operator-secret-0123456789";
const worker = "worker-secret-0123456789";
/** The server checks its folder now and then. This number of requests is more than enough. */
const asksMax = 200;

it("start, readiness, a refused token, a lost folder, its return and the end are in the log, and no secret is", async () => {
  const folder = temporaryFolder();
  const data = join(folder, "data");
  const server = await startServer(["--data", data, "--token", `operator:${operator}:ann`, "--token", `worker:${worker}:build-machines`]);
  const send = async (secret: string) => {
    const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
    const body = JSON.stringify({
      name: "w",
      version: 1,
      ownerEmail: "a@example.com",
      tasks: [{ name: "t", taskReferenceName: "t", type: "SIMPLE" }],
    });
    return (await fetch(`${server.url}/api/metadata/workflow?overwrite=true`, { method: "POST", headers, body })).status;
  };
  const until = async (isOk: boolean) => {
    for (let asked = 0; asked < asksMax; asked++) if ((await send(operator)) < 300 === isOk) return;
    throw new Error(`after ${asksMax} requests the server still ${isOk ? "refuses" : "accepts"} them`);
  };
  await until(true);
  expect(await send(worker)).toBe(403);
  await server.printed(/"principal":"build-machines"/);
  renameSync(data, `${data}-away`);
  await until(false);
  await server.printed(/Trouble with writing the data file/);
  renameSync(`${data}-away`, data);
  await until(true);
  await server.printed(/No more trouble with writing the data file/);
  server.kill("SIGTERM");
  await server.ended;
  for (const line of ["The server starts", "The server is ready", "The server stops", "The server has stopped"])
    expect(server.text()).toContain(line);
  for (const secret of [operator, worker]) expect(server.text()).not.toContain(secret);
});
