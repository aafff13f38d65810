// Runs that are restarted directly after their end, before the run around them has heard of it, while the server is killed again and again.
import { Agent } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { conductorConversation, type RestRun, type RestTask } from "../support/conductor-rest.ts";
import { fork, operator, simple } from "../support/conductor-world.ts";
import { type Arena, faultSeed, inArena } from "./arena.ts";
import { type Conversation, insist, insistOn, REST_MS } from "./conductor-insist.ts";
import { seededRandom } from "./random.ts";

const FAMILIES = 60;
const KILLS_MIN = 10;
/** How long a server lives at most before it is killed. */
const LIFE_MS_MAX = 300;
const END_MS_MAX = 120_000;
/** A parent is asked so often until it has ended; it never does when the child was restarted first. */
const ASKED_MAX = 50;

const sub = (name: string) => operator("SUB_WORKFLOW", name, { subWorkflowParam: { name: `${name}_child` } });

async function define(c: Conversation): Promise<void> {
  const once = { retryCount: 0, responseTimeoutSeconds: 3, timeoutPolicy: "RETRY" };
  await c.taskDef(...["left", "right"].map((name) => ({ name, ...once })));
  for (const name of ["left", "right"]) await c.workflow({ name: `${name}_child`, tasks: [simple(name)] });
  await c.workflow({ name: "w", tasks: fork("f", [[sub("left")], [sub("right")]], ["left", "right"]) });
}

/** Fails the first task of each left child and restarts the family at once; completes all others. */
async function work(c: Conversation, type: string, stopped: () => boolean, restart: (task: RestTask, count: number) => Promise<void>) {
  const failed = new Set<string>();
  while (!stopped()) {
    const tasks = JSON.parse(await insist(c, "GET", `/tasks/poll/batch/${type}?count=5&timeout=50&workerid=w-${type}`)) as RestTask[];
    for (const task of tasks) {
      const fails = type === "left" && !failed.has(task.workflowInstanceId);
      failed.add(task.workflowInstanceId);
      await insist(c, "POST", "/tasks", c.resultOf(task, fails ? { status: "FAILED", reason: "not this time" } : {}));
      if (fails) await restart(task, failed.size);
    }
  }
}

/** One of three orders, by turns. What is answered with a refusal may have been carried out before its answer was lost. */
async function restartFamily(c: Conversation, note: Arena["note"], child: string, count: number): Promise<void> {
  const { parentWorkflowId: parent = "" } = JSON.parse(await insist(c, "GET", `/workflow/${child}`)) as RestRun;
  const orders = [`${child}/rerun`, `${child}/retry`, `${parent}/retry?resumeSubworkflowTasks=true`];
  const order = orders[count % orders.length] as string;
  note({ kind: "restart-sent", runId: child, family: [parent] });
  for (let asked = 0; asked < ASKED_MAX; asked++) {
    const { status } = await insistOn(c, "POST", `/workflow/${order}`, {});
    if (status < 300) return note({ kind: "restart-acknowledged", runId: child });
    const { status: state } = JSON.parse(await insist(c, "GET", `/workflow/${child}/status`));
    if (state !== "FAILED") return;
    await pause(REST_MS);
  }
  throw new Error(`The order ${order} was refused ${ASKED_MAX} times.`);
}

it("a run that is restarted directly after its end comes to a good end with its parent, over many kills of the server", async () => {
  const random = seededRandom(faultSeed());
  await inArena(async ({ url, server, note, judge }) => {
    const agent = new Agent({ keepAlive: true });
    const c = conductorConversation(url, agent, async () => {});
    await define(c);
    let stop = false;
    let restarts = 0;
    const restart = async (task: RestTask, count: number) => {
      await restartFamily(c, note, task.workflowInstanceId, count);
      restarts++;
    };
    const workers = ["left", "right"].map((type) => work(c, type, () => stop, restart));
    const starts = Array.from({ length: FAMILIES }, (_, at) =>
      insist(c, "POST", "/workflow", { name: "w", idempotencyKey: `start ${at}` }),
    );
    let kills = 0;
    for (; restarts < FAMILIES || kills < KILLS_MIN; kills++) {
      await pause(random.between(0, LIFE_MS_MAX));
      await server.kill();
      await server.start();
    }
    const parents = await Promise.all(starts);
    const endsAt = Date.now() + END_MS_MAX;
    for (const id of parents) {
      while (JSON.parse(await insist(c, "GET", `/workflow/${id}/status`)).status === "RUNNING" && Date.now() < endsAt) await pause(REST_MS);
    }
    stop = true;
    await Promise.all(workers);
    process.stdout.write(`faults: ${restarts} restarts, the server was killed ${kills} times\n`);
    const children = await Promise.all(parents.map((id) => c.child(id, "left")));
    const { final } = await judge([...parents, ...children]);
    expect(final.runs.map(({ state }) => state)).toEqual([...parents, ...children].map(() => "succeeded"));
    agent.destroy();
  });
});
