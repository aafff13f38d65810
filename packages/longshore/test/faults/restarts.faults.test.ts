// Runs that are restarted directly after their end, before their parent run is notified. The server is killed again and again.
import { Agent } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { conductorConversation, type RestRun, type RestTask } from "../support/conductor-rest.ts";
import { fork, operator, simple } from "../support/conductor-world.ts";
import { type Arena, faultSeed, inArena } from "./arena.ts";
import { check, describeViolations } from "./checker.ts";
import { type Conversation, insist, insistOn, REST_MS } from "./conductor-insist.ts";
import { readHistory } from "./history.ts";
import { seededRandom } from "./random.ts";

const FAMILIES = 40;
const KILLS = 20;
/** The longest time before a server is killed. */
const LIFE_MS_MAX = 400;
const END_MS_MAX = 120_000;
/** How often a parent is read until it has ended. It never ends when the child was restarted first. */
const ASKED_MAX = 50;

const sub = (name: string) => operator("SUB_WORKFLOW", `to_${name}`, { subWorkflowParam: { name: `${name}_child` } });

async function define(c: Conversation): Promise<void> {
  // A task of a poll whose server died is queued again. A task that failed permanently is not.
  const patient = { retryCount: 1_000, retryDelaySeconds: 0, responseTimeoutSeconds: 3, timeoutPolicy: "RETRY" };
  await c.taskDef(...["left", "right"].map((name) => ({ name, ...patient })));
  for (const name of ["left", "right"]) await c.workflow({ name: `${name}_child`, tasks: [simple(name)] });
  await c.workflow({ name: "w", tasks: fork("f", [[sub("left")], [sub("right")]], ["to_left", "to_right"]) });
}

/** Fails the first task of each left child and restarts the family at once. Completes all other tasks. */
async function work(c: Conversation, type: string, stopped: () => boolean, restart: (task: RestTask, count: number) => Promise<void>) {
  const failed = new Set<string>();
  while (!stopped()) {
    const tasks = JSON.parse(await insist(c, "GET", `/tasks/poll/batch/${type}?count=5&timeout=50&workerid=w-${type}`)) as RestTask[];
    for (const task of tasks) {
      const fails = type === "left" && !failed.has(task.workflowInstanceId);
      failed.add(task.workflowInstanceId);
      await insist(c, "POST", "/tasks", c.resultOf(task, fails ? { status: "FAILED_WITH_TERMINAL_ERROR", reason: "not this time" } : {}));
      if (fails) await restart(task, failed.size);
    }
  }
}

/** One of three commands, in turn. A refused command may have been performed before its first response was lost. */
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

it("a run that is restarted directly after its end succeeds with its parent, over many kills of the server", async () => {
  const random = seededRandom(faultSeed());
  await inArena(async ({ url, server, note, client, directory }) => {
    const agent = new Agent({ keepAlive: true });
    const c = conductorConversation(url, agent, async () => {});
    await define(c);
    let stop = false;
    let restarts = 0;
    const restart = async (task: RestTask, count: number) => {
      await restartFamily(c, note, task.workflowInstanceId, count);
      restarts++;
    };
    const working = Promise.all(["left", "right"].map((type) => work(c, type, () => stop, restart)));
    const starts = Promise.all(
      Array.from({ length: FAMILIES }, (_, at) => insist(c, "POST", "/workflow", { name: "w", idempotencyKey: `start ${at}` })),
    );
    for (let kills = 0; kills < KILLS; kills++) {
      // An error of a worker ends the test at once.
      await Promise.race([pause(random.between(0, LIFE_MS_MAX)), working]);
      await server.kill();
      await server.start();
    }
    const parents = await starts;
    const endsAt = Date.now() + END_MS_MAX;
    const isOpen = async (id: string) => JSON.parse(await insist(c, "GET", `/workflow/${id}/status`)).status === "RUNNING";
    for (const id of parents) while ((await isOpen(id)) && Date.now() < endsAt) await Promise.race([pause(REST_MS), working]);
    stop = true;
    await working;
    expect(restarts).toBe(FAMILIES);
    process.stdout.write(`faults: ${restarts} restarts, the server was killed ${KILLS} times\n`);
    const children = await Promise.all(parents.map((id) => c.child(id, "to_left")));
    // The server starts children. Which runs it lists does not matter here.
    const final = { ...(await client.readFinal([...parents, ...children])), listed: undefined };
    expect(describeViolations(check(readHistory(directory), final))).toBe("");
    expect(final.runs.map(({ state }) => state)).toEqual([...parents, ...children].map(() => "succeeded"));
    agent.destroy();
  });
});
