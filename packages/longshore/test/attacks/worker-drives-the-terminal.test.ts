// The attacker holds a worker token. A worker names itself and its labels, and an operator's terminal lists the workers. Names with control
// characters once reached it as they were: they clear the screen, write rows of their own, change the title or fill the clipboard.

import { expect, it } from "vitest";
import { longshore } from "../support/cli.ts";
import { startGraphServer } from "../support/workflow-graph.ts";

const [esc, bell, csi] = ["\u001b", "\u0007", "\u009b"];
const driving = `${esc}[2J${esc}]52;c;ZWNobyBoaQ==${bell}${csi}31m`;

it("names of workers, their labels and lanes do not drive the terminal that lists them", async () => {
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
