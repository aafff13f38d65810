// The attacker holds a worker token. A worker chooses its name and labels, and an operator lists the workers in a terminal. Names with
// control characters once reached the terminal unchanged: they can clear the screen, write rows, change the title or fill the clipboard.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { stderrLogger } from "../../src/runner/notices.ts";
import { longshore } from "../support/cli.ts";
import { startGraphServer } from "../support/workflow-graph.ts";

const [esc, bell, csi] = ["\u001b", "\u0007", "\u009b"];
const driving = `${esc}[2J${esc}]52;c;ZWNobyBoaQ==${bell}${csi}31m`;

it("names of workers, their labels and lanes cannot control the terminal that lists them", async () => {
  const { url, send } = await startGraphServer();
  const headers = { "content-type": "application/json" };
  const worker = { worker_id: `evil${driving}\nforged-worker  idle`, labels: [`gpu${driving}`] };
  expect((await send("POST", "/api/workers/register", { headers, body: JSON.stringify(worker) })).status).toBe(200);
  const polled = await send(
    "GET",
    `/api/tasks/poll/batch/${encodeURIComponent(`lane${driving}`)}?timeout=0&workerid=w${encodeURIComponent(driving)}`,
  );
  expect(polled.status).toBe(200);
  for (const command of ["workers", "queues", "runs"]) {
    const { stdout, code } = await longshore([command, "--json", "--on", url]);
    expect({ command, code }).toEqual({ command, code: 0 });
    expect(stdout).not.toMatch(/[^\P{Cc}\n]/u);
    if (command === "workers") expect(JSON.stringify(JSON.parse(stdout))).toContain(csi);
  }
  for (const command of ["workers", "queues"]) {
    for (const colours of ["FORCE_COLOR", "NO_COLOR"]) {
      const { stdout, code } = await longshore([command, "--on", url], { env: { [colours]: "1" } });
      expect(code).toBe(0);
      const styles = new RegExp(`${esc}\\[[0-9]+m`, "g");
      expect(stdout.replace(styles, "")).not.toMatch(/[^\P{Cc}\n]/u);
      expect(stdout).not.toMatch(/^forged-worker/m);
    }
  }
});

it("responses of a server cannot control the terminal of the person who calls it", async () => {
  let answer: { status: number; body: string } = { status: 500, body: `oops ${driving}` };
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(answer.status, { "content-type": "application/json" }).end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const quiet = async (args: readonly string[]) => {
    const { stdout, stderr } = await longshore([...args, "--on", url], { env: { NO_COLOR: "1" } });
    expect(`${stdout}${stderr}`).not.toMatch(/[^\P{Cc}\n]/u);
  };
  await quiet(["runs"]);
  answer = { status: 400, body: JSON.stringify({ error: { message: `bad ${driving}`, line: 1, column: driving } }) };
  await quiet(["cancel", "r"]);
  answer = { status: 200, body: JSON.stringify({ id: `r${driving}`, state: `failed${driving}` }) };
  for (const command of ["cancel", "retry", "rerun"]) await quiet([command, "r"]);
});

it("responses of a server cannot control the terminal of the worker that quotes them", () => {
  const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => written.mockRestore());
  stderrLogger({ level: "warn", message: `The server answered claim with ${driving}\nsecond line` });
  const text = String(written.mock.calls[0]?.[0]);
  expect(text).toContain("The server answered claim with");
  expect(text).not.toMatch(/[^\P{Cc}\n]/u);
});
