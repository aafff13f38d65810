// Orders to many runs, and a server that is killed in the middle of them.

import { describe, expect, it } from "vitest";
import { dataFolder, type RunServer, startRunServer } from "../support/run-server.ts";
import { untilElsewhere } from "../support/until.ts";

interface Job {
  readonly id: string;
  readonly state: string;
  readonly done: number;
  readonly skipped: Readonly<Record<string, number>>;
}

const runs = 300;
const json = { "content-type": "application/json" };

async function call<Answer>({ url }: RunServer, method: string, path: string, body?: unknown): Promise<Answer> {
  const answer = await fetch(`${url}/api/longshore/v1${path}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body), headers: json }),
  });
  return (await answer.json()) as Answer;
}

async function finished(server: RunServer, id: string): Promise<Job> {
  for (;;) {
    const job = await call<Job>(server, "GET", `/bulk/${id}?waitMs=1000`);
    if (job.state !== "running") return job;
  }
}

describe("an order to many runs", () => {
  it("continues after the server was killed, and gives no run its order twice", async () => {
    const data = dataFolder();
    const first = await startRunServer(data);
    await first.startRuns(runs, 1);
    const { id } = await call<Job>(first, "POST", "/bulk", { action: "rerun", filter: { workflow: "wait" }, perSecond: 200 });
    // Some runs of the first slice have got the order, and the row of the job does not say so yet.
    await untilElsewhere(async () => (await first.countRuns()) > runs + 30);
    await first.crash();
    const second = await startRunServer(data);
    expect(await finished(second, id)).toMatchObject({ state: "done", done: runs, skipped: {} });
    expect(await second.countRuns()).toBe(2 * runs);
    const { items } = await call<{ items: { via: string }[] }>(second, "GET", "/audit?kind=run&verb=rerun&limit=1000");
    expect(items.filter(({ via }) => via === `bulk ${id}`)).toHaveLength(runs);
    await second.stop();
  });
});
