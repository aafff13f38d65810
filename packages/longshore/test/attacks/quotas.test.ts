// The attacker holds a worker or an operator token and stays below the limit of every single request: many blobs, each small enough, fill
// the disk that runs are written to, and runs that start runs grow with every level.

import { expect, it } from "vitest";
import { startAdminServer } from "../support/admin.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";
import { eventually } from "../support/workflow-graph.ts";

const bytes = { "content-type": "application/octet-stream" };

it("blobs are refused when all of them together reach the quota, also after a restart", async () => {
  const before = await startAdminServer({ quotas: { blobBytes: 1_000 } });
  const put = (server: typeof before, content: string) => server.api("POST", "/blobs", content, bytes);
  const kept = await Promise.all(["a", "b", "c", "d"].map((letter) => put(before, letter.repeat(300))));
  expect(kept.map(({ status }) => status).sort()).toEqual([201, 201, 201, 507]);
  const refused = kept.find(({ status }) => status === 507);
  expect(refused?.body.error).toMatchObject({ code: "LONGSHORE_LIMIT", field: "blobs", expected: expect.stringContaining("1000 bytes") });
  // What was refused left nothing behind, and a copy takes no room.
  expect((await put(before, "e".repeat(50))).status).toBe(201);
  expect((await put(before, "e".repeat(50))).status).toBe(201);
  await before.close();
  const after = await startAdminServer({ quotas: { blobBytes: 1_000 } }, before);
  expect((await put(after, "f".repeat(60))).status).toBe(507);
  expect((await put(after, "f".repeat(50))).status).toBe(201);
});

it("the runs below one root, of every level, stop at the quota, and the step that wants one more says why", async () => {
  const c = await startConductor({ quotas: { familyRuns: 20 } });
  await c.taskDef({ name: "leaf", retryCount: 0 });
  await c.workflow({ name: "bottom", tasks: [simple("leaf")] });
  await c.workflow({ name: "middle", tasks: forked("bottom", 6) });
  await c.workflow({ name: "top", tasks: forked("middle", 5) });
  const id = await c.start("top");
  const all = async () => (await c.read<{ results: Found[] }>("/workflow/search?size=100")).results;
  await eventually(async () => (await all()).every(({ status }) => status !== "RUNNING"));
  const found = await all();
  expect(found.length).toBeLessThan(1 + 5 + 30);
  expect(await c.status(id)).toBe("FAILED");
  expect(found.some(({ reasonForIncompletion }) => reasonForIncompletion?.includes(`20 runs that run ${id} has started`))).toBe(true);
  // The room is there again for the next.
  await c.workflow({ name: "small", tasks: forked("bottom", 20) });
  const next = await c.start("small");
  expect((await c.run(next)).tasks.filter(({ subWorkflowId }) => subWorkflowId !== undefined)).toHaveLength(20);
});

interface Found {
  status: string;
  reasonForIncompletion?: string;
}

/** A fork that starts this workflow in every branch, and waits for all of them. */
function forked(name: string, branches: number): object[] {
  const refs = Array.from({ length: branches }, (_none, at) => `${name}${at}`);
  const start = (ref: string) => [{ name: ref, taskReferenceName: ref, type: "SUB_WORKFLOW", subWorkflowParam: { name } }];
  return [
    { name: "fork", taskReferenceName: "fork", type: "FORK_JOIN", forkTasks: refs.map(start) },
    { name: "join", taskReferenceName: "join", type: "JOIN", joinOn: refs },
  ];
}
