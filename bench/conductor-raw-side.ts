// A server by itself: plain requests that poll and update, and forks. The server's own clock times their join.
import { type ConductorClient, openConductorClient } from "./conductor-client.ts";
import { answerApart, cpuMicroseconds, residentBytes } from "./processes.ts";
import { quantile } from "./stats.ts";

export interface RawRequest {
  readonly url: string;
  readonly serverPid: number;
  readonly tasks: number;
  readonly warmUp: number;
  readonly forks: number;
}

export interface RawAnswer {
  readonly perSecond: number;
  readonly serverCpu: number;
  readonly startsPerSecond: number;
  readonly joinP50Ms: number;
  readonly joinP99Ms: number;
  readonly residentMib: number;
  readonly lost: number;
  readonly repeated: number;
}

/** The number of loops, and of tasks of each, with which the reference was fastest. */
const LOOPS = 8;
const BATCH = 20;
const POLL_TIMEOUT_MS = 100;

async function pollAndUpdate(client: ConductorClient, total: number, counts: Map<number, number>): Promise<void> {
  const end = counts.size + total;
  const loop = async (): Promise<void> => {
    while (counts.size < end) {
      const tasks = await client.poll(BATCH, POLL_TIMEOUT_MS);
      for (const { inputData } of tasks) counts.set(inputData.n, (counts.get(inputData.n) ?? 0) + 1);
      await Promise.all(tasks.map((task) => client.update(task)));
    }
  };
  await Promise.all(Array.from({ length: LOOPS }, loop));
}

interface TaskTimes {
  readonly referenceTaskName: string;
  readonly scheduledTime: number;
  readonly endTime: number;
}

/** From the end of the last branch until the task after the join was scheduled. */
async function joinDelay(client: ConductorClient): Promise<number> {
  const id = await client.startFork();
  for (const branch of ["a", "b", "c"]) await client.post(`/tasks/${id}/${branch}/COMPLETED`, { done: branch });
  for (;;) {
    const { tasks } = await client.get<{ tasks: TaskTimes[] }>(`/workflow/${id}`);
    const after = tasks.find(({ referenceTaskName }) => referenceTaskName === "after");
    if (after === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      continue;
    }
    const lastEnd = Math.max(...tasks.filter(({ referenceTaskName }) => "abc".includes(referenceTaskName)).map(({ endTime }) => endTime));
    await client.post(`/tasks/${id}/after/COMPLETED`, {});
    return after.scheduledTime - lastEnd;
  }
}

await answerApart<RawRequest, RawAnswer>(async ({ url, serverPid, tasks, warmUp, forks }) => {
  const client = await openConductorClient(url, 64);
  await client.define();
  const counts = new Map<number, number>();
  await client.startAll(0, warmUp);
  await pollAndUpdate(client, warmUp, counts);

  const beforeStarts = performance.now();
  await client.startAll(warmUp, warmUp + tasks);
  const startSeconds = (performance.now() - beforeStarts) / 1000;
  const before = { at: performance.now(), cpu: cpuMicroseconds(serverPid) };
  await pollAndUpdate(client, tasks, counts);
  const seconds = (performance.now() - before.at) / 1000;
  const serverCpu = (cpuMicroseconds(serverPid) - before.cpu) / tasks;

  const delays: number[] = [];
  for (let fork = 0; fork < forks; fork++) delays.push(await joinDelay(client));
  client.close();
  return {
    perSecond: tasks / seconds,
    serverCpu,
    startsPerSecond: tasks / startSeconds,
    joinP50Ms: quantile(delays, 0.5),
    joinP99Ms: quantile(delays, 0.99),
    residentMib: residentBytes(serverPid) / 2 ** 20,
    lost: warmUp + tasks - counts.size,
    repeated: [...counts.values()].filter((times) => times > 1).length,
  };
});
