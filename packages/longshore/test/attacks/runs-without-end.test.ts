// The author of a definition lets each run start two more of its kind without being their parent: by START_WORKFLOW tasks, by events and
// their handlers, or after its failure. Only runs of steps that wait for them had a quota. So the number of open runs doubled with every
// level.

import { expect, it, onTestFinished } from "vitest";
import { LocalEvents } from "../../src/engine/event/local-events.ts";
import { graph } from "../../src/graph.ts";
import { LocalClient } from "../../src/server/local-client.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { operator, simple } from "../support/conductor-world.ts";
import { openEngineWithStore } from "../support/engine.ts";
import { eventually } from "../support/workflow-graph.ts";

const familyRuns = 20;
/** Starts that one batch commits are not counted for one another: at most those that the server performs at once. */
const openMax = 1 + familyRuns + 32;

interface Found {
  workflowId: string;
  status: string;
  reasonForIncompletion?: string;
}

async function setup(runs = familyRuns) {
  const c = await startConductor({ ephemeral: true, quotas: { familyRuns: runs } });
  const all = async () => (await c.read<{ results: Found[] }>("/workflow/search?size=1000")).results;
  const open = async () => (await all()).filter(({ status }) => status === "RUNNING").length;
  const isFull = (text: string | undefined, root: string) => text?.includes(`Run ${root} has the maximum of ${runs} open runs`) === true;
  return { c, all, open, isFull };
}

const starts = (reference: string, name: string) => operator("START_WORKFLOW", reference, { inputParameters: { startWorkflow: { name } } });

it("runs that START_WORKFLOW tasks start, directly or through others, are limited below their root", async () => {
  const { c, all, open, isFull } = await setup();
  await c.workflow({ name: "twice", tasks: [starts("one", "twice"), starts("two", "twice"), simple("leaf")] });
  const root = await c.start("twice");
  await eventually(async () => (await all()).some(({ reasonForIncompletion }) => isFull(reasonForIncompletion, root)));
  // Each run either waits for its leaf or has failed.
  await eventually(async () => (await c.read<number>("/tasks/queue/size?taskType=leaf")) === (await open()));
  const before = await open();
  expect(before).toBeGreaterThan(1);
  expect(before).toBeLessThanOrEqual(openMax);
  // They are no children: the end of the starter is not theirs.
  await c.order("DELETE", root, "");
  expect(await c.status(root)).toBe("TERMINATED");
  expect(await open()).toBe(before - 1);
  // Another root has a quota of its own.
  await c.workflow({ name: "once", tasks: [starts("one", "held")] });
  await c.workflow({ name: "held", tasks: [simple("leaf")] });
  const other = await c.start("once");
  await eventually(async () => (await c.status(other)) === "COMPLETED");
});

it("runs that handlers of an event start count below the root of the run that has sent it", async () => {
  const { c, all, open, isFull } = await setup();
  for (const name of ["one", "two"]) {
    const actions = [{ action: "start_workflow", start_workflow: { name: "sender" } }];
    await c.ask("POST", "/event", { name, event: "conductor:sender:tell", active: true, actions });
  }
  await c.workflow({ name: "sender", tasks: [operator("EVENT", "tell", { sink: "conductor" }), simple("leaf")] });
  const root = await c.start("sender");
  const refused = async () => {
    const answer = await fetch(`${c.url}/api/longshore/v1/tasks?limit=1000`);
    const { items } = (await answer.json()) as { items: { error: string | null }[] };
    return items.some(({ error }) => isFull(error ?? undefined, root));
  };
  await eventually(async () => {
    // The handlers are tried again.
    await c.clock.advance(60_000);
    return refused();
  });
  expect(await open()).toBeGreaterThan(familyRuns);
  expect((await all()).length).toBeLessThanOrEqual(openMax);
});

it("the run after a failure counts below the root of the run that has failed", async () => {
  const { c, all, isFull } = await setup(1);
  await c.workflow({ name: "held", tasks: [simple("leaf")] });
  const ends = operator("TERMINATE", "end", { inputParameters: { terminationStatus: "FAILED", terminationReason: "enough" } });
  await c.workflow({ name: "fails", failureWorkflow: "held", tasks: [starts("one", "held"), ends] });
  const root = await c.start("fails");
  await eventually(async () => isFull(JSON.stringify((await c.run(root)).output), root));
  expect(await all()).toHaveLength(2);
});

it("an event is refused while handlers have too many tasks of the same family of runs", async () => {
  const engine = await openEngineWithStore({ directory: null });
  onTestFinished(() => engine.close());
  const { rows, commit, runs, board } = engine.store;
  const events = new LocalEvents({ store: rows, commit, runs, board, familyTasksMax: 3 });
  for (const name of ["one", "two"]) await events.subscribe("e", { lane: "handlers", name });
  const client = new LocalClient(engine);
  const held = graph("held", (g) => g.signal("never"));
  const [{ id: root }, { id: other }] = [await client.start(held), await client.start(held)];
  const emit = (key: string, runId?: string) => events.emit({ name: "e", payload: "{}", key, runId }, () => key);
  await emit("1", root);
  await emit("2", root);
  await expect(emit("3", root)).rejects.toThrow(`The events of run ${root}, and of runs that it started, have 4 tasks of event handlers`);
  await expect(emit("3", root)).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
  await emit("3", other);
  await emit("4", "a run of another orchestrator");
  const claim = { reach: { names: ["handlers"], labels: [] }, holder: "w", termMs: 60_000, max: 2 };
  for (const { id, grant } of (await engine.store.board.claim(claim)).tasks) await engine.board.complete({ taskId: id, grant }, "null");
  await emit("3", root);
});
