// Our Conductor server, killed up to two hundred times at any time while Conductor workers poll, report and start runs.
import { Agent } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { conductorConversation, type RestTask } from "../support/conductor-rest.ts";
import { fork, operator, simple } from "../support/conductor-world.ts";
import { postgresMissing, TestPostgres } from "../support/postgres.ts";
import { type ArenaOptions, faultSeed, inArena } from "./arena.ts";
import { type Conversation, insist, REST_MS } from "./conductor-insist.ts";
import { seededRandom } from "./random.ts";

const KILLS_MAX = 200;
const KILLS_MIN = 20;
/** A loaded machine needs seconds for each start. After this time the server has been killed often enough. */
const KILLING_MS_MAX = 240_000;
const RUNS = 60;
const TYPES = ["before", "left", "inner", "after"];
/** The longest time before a server is killed. */
const LIFE_MS_MAX = 120;
const END_MS_MAX = 120_000;

async function define(c: Conversation): Promise<void> {
  const patient = { retryCount: 1_000, retryDelaySeconds: 0, responseTimeoutSeconds: 3, timeoutPolicy: "RETRY" };
  await c.taskDef(...TYPES.map((name) => ({ name, ...patient })));
  await c.workflow({ name: "child", tasks: [simple("inner")] });
  const wait = operator("WAIT", "wait", { inputParameters: { duration: "1 seconds" } });
  const sub = operator("SUB_WORKFLOW", "sub", { subWorkflowParam: { name: "child" } });
  const branches = fork("f", [[simple("left")], [sub], [wait]], ["left", "sub", "wait"]);
  await c.workflow({ name: "w", tasks: [simple("before"), ...branches, simple("after")] });
}

/** Works until it is stopped. Returns the content of each acknowledged report. */
async function work(c: Conversation, type: string, stopped: () => boolean, said: Map<string, string>): Promise<void> {
  for (let count = 0; !stopped(); count++) {
    const tasks = JSON.parse(await insist(c, "GET", `/tasks/poll/batch/${type}?count=5&timeout=100&workerid=w-${type}`)) as RestTask[];
    for (const task of tasks) {
      const token = `${task.taskId} ${count}`;
      await insist(c, "POST", "/tasks", c.resultOf(task, { output: { token } }));
      if (!said.has(task.taskId)) said.set(task.taskId, token);
    }
  }
}

it("[C126] every run has one end over up to two hundred kills of the server", () => playKills());

it("every run has one end over kills of both nodes of a cluster", async (context) => {
  if (postgresMissing !== undefined) return context.skip(`needs ${postgresMissing}`);
  const postgres = await TestPostgres.start();
  onTestFinished(() => postgres.remove());
  await playKills({ cluster: { postgres, nodes: 2 } }, KILLS_MIN);
});

async function playKills(other?: ArenaOptions, killsMax = KILLS_MAX): Promise<void> {
  const random = seededRandom(faultSeed());
  await inArena(async ({ url, server }) => {
    const agent = new Agent({ keepAlive: true });
    const c = conductorConversation(url, agent, async () => {});
    await define(c);
    const said = new Map<string, string>();
    let stop = false;
    const workers = TYPES.map((type) => work(c, type, () => stop, said));
    const starts = Array.from({ length: RUNS }, async (_, at) => {
      await pause(at * 50);
      return insist(c, "POST", "/workflow", { name: "w", idempotencyKey: `start ${at}` });
    });
    const until = Date.now() + KILLING_MS_MAX;
    let kills = 0;
    for (; kills < killsMax && Date.now() < until; kills++) {
      await pause(random.between(0, LIFE_MS_MAX));
      await server.kill();
      await server.start();
    }
    process.stdout.write(`faults: the server was killed ${kills} times\n`);
    expect(kills).toBeGreaterThanOrEqual(KILLS_MIN);
    const ids = await Promise.all(starts);
    expect(new Set(ids).size).toBe(RUNS);
    const endsAt = Date.now() + END_MS_MAX;
    for (const id of ids) {
      while (JSON.parse(await insist(c, "GET", `/workflow/${id}/status`)).status !== "COMPLETED") {
        if (Date.now() > endsAt) throw new Error(`Run ${id} has not ended: ${await insist(c, "GET", `/workflow/${id}`)}`);
        await pause(REST_MS);
      }
    }
    stop = true;
    await Promise.all(workers);
    let completed = 0;
    for (const id of ids) {
      const run = await c.run(id);
      const done = run.tasks.filter((task) => task.status === "COMPLETED").map((task) => task.referenceTaskName);
      expect(done.sort()).toEqual(["after", "before", "f", "f_join", "left", "sub", "wait"]);
      const child = await c.run(await c.child(id, "sub"));
      for (const task of [...run.tasks, ...child.tasks]) {
        if (task.status !== "COMPLETED" || !TYPES.includes(task.taskType)) continue;
        completed++;
        // An acknowledged report is the stored one, or repeats a report whose response was lost.
        expect(said.has(task.taskId)).toBe(true);
        expect(String(task.outputData.token)).toMatch(new RegExp(`^${task.taskId} `));
      }
    }
    expect(completed).toBe(RUNS * TYPES.length);
    const children = JSON.parse(await insist(c, "GET", "/workflow/search?size=1&query=workflowType%3D'child'")) as { totalHits: number };
    expect(children.totalHits).toBe(RUNS);
    agent.destroy();
  }, other);
}
