// The attacker holds an operator token and stores schedules over Conductor's API. Only their input had a limit: 100 of them with a description of
// 5 MB held the event loop for more than 0.1 s in a list, and a search of them ended the process.

import { expect, it } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";

const many = 30;

it("schedules of Conductor are short, and pages of them count all their texts", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", version: 1, tasks: [simple("a")] });
  const schedule = (name: string, chars: number) => ({
    ...{ name, cronExpression: "0 0 1 1 * *", description: "x".repeat(chars) },
    startWorkflowRequest: { name: "w" },
  });
  const headers = { "content-type": "application/json" };
  const put = (body: object) => fetch(`${c.url}/api/scheduler/schedules`, { method: "POST", headers, body: JSON.stringify(body) });
  const refused = await put(schedule("long", 131_072));
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("expected at most 131072")]);
  for (let at = 0; at < many; at++) expect((await put(schedule(`s${at}`, 130_000))).status).toBe(200);
  const page = (await (await fetch(`${c.url}/api/longshore/v1/schedules?limit=100`)).json()) as { items: object[]; next: string | null };
  expect([page.items.length, page.next]).toEqual([9, expect.any(String)]);
  const { totalHits, results } = await c.read<{ totalHits: number; results: object[] }>("/scheduler/schedules/search?size=1000");
  expect([totalHits, results.length]).toEqual([many, many]);
});
