// A server in this process with real workers of three protocols, and runs in every state that the pages show: done, failed after retries, waiting
// for a signal, for a label that no worker has, at work, streaming into a fork, and a function between two commands.

import { graph, type Ref, task, work, workflow } from "longshore";
import { conductor } from "longshore/conductor";
import { type ServeOptions, type Server, serve } from "longshore/server";
import { workflowGraph } from "longshore/workflow-graph";

export interface Order {
  readonly customer: string;
  readonly items: readonly { readonly name: string; readonly price: number }[];
}

const price = task("price", async ({ items }: Order, ctx) => {
  ctx.log(`Pricing ${items.length} items\n`);
  return { total: items.reduce((sum, item) => sum + item.price, 0) };
});
const reserve = task("reserve", async ({ name }: { name: string }, ctx) => {
  ctx.log(`\u001b[32mReserved\u001b[0m ${name}\n`);
  return { shelf: `shelf of ${name}` };
});
const charge = task("charge", async ({ customer }: { customer: string }, ctx) => {
  ctx.log(`Asking the bank of ${customer} (attempt ${ctx.attempt})\n`);
  if (customer === "Mallory") throw new Error("ECONNREFUSED: the bank at 10.0.3.17:8443 does not answer");
  return { receipt: `R-${customer}` };
});
const ship = task("ship", async ({ customer }: { customer: string }) => `sent to ${customer}`);
const train = task("train-model", async () => "never");

const order = graph("order", (g, input: Ref<Order>) => {
  const priced = g.step(price, input);
  const box = g.step(reserve, { name: input.customer }, { id: "reserve-box" });
  const label = g.step(reserve, { name: input.customer }, { id: "print-label", after: [box] });
  const paid = g.step(
    charge,
    { customer: input.customer },
    { retry: { limit: 2, backoff: { kind: "fixed", delayMs: 40 } }, after: [priced] },
  );
  g.step(ship, { customer: input.customer }, { after: [paid, label] });
  return { receipt: paid.receipt };
});

const training = graph("training", (g) => void g.step(train, null, { labels: ["gpu"] }));

const approval = workflow("approval", async (w, input: Order) => {
  const priced = await w.step(price, input);
  const shelves = await w.map([...input.items], reserve, { concurrency: 4 });
  w.set("total", priced.total);
  const answer = await w.signal<{ ok: boolean }>("approve", { timeout: "2d" });
  return { answer, shelves };
});

const switching = {
  name: "parcel",
  version: 1,
  schemaVersion: 2,
  ownerEmail: "docks@example.org",
  tasks: [
    { name: "weigh", taskReferenceName: "weigh", type: "SIMPLE", inputParameters: { parcel: "${workflow.input.parcel}" } },
    {
      name: "by-weight",
      taskReferenceName: "by-weight",
      type: "SWITCH",
      evaluatorType: "value-param",
      expression: "size",
      inputParameters: { size: "${weigh.output.size}" },
      decisionCases: {
        light: [{ name: "weigh", taskReferenceName: "send-by-post", type: "SIMPLE", inputParameters: {} }],
        heavy: [
          { name: "weigh", taskReferenceName: "book-crane", type: "SIMPLE", inputParameters: {} },
          { name: "weigh", taskReferenceName: "load-ship", type: "SIMPLE", inputParameters: {} },
        ],
      },
      defaultCase: [{ name: "weigh", taskReferenceName: "ask-a-person", type: "SIMPLE", inputParameters: {} }],
    },
    {
      name: "fork",
      taskReferenceName: "papers",
      type: "FORK_JOIN",
      forkTasks: [
        [{ name: "weigh", taskReferenceName: "customs-form", type: "SIMPLE", inputParameters: {} }],
        [{ name: "weigh", taskReferenceName: "invoice", type: "SIMPLE", inputParameters: {} }],
      ],
    },
    { name: "join", taskReferenceName: "papers-done", type: "JOIN", joinOn: ["customs-form", "invoice"] },
  ],
};

const files = {
  backup: {
    name: "backup",
    on: "demand",
    jobs: { dump: { run: "echo dumping; echo 'disk is almost full' >&2" }, upload: { run: "echo uploading 42 MB", needs: ["dump"] } },
  },
};

const weigh = task("weigh", async () => ({ size: "heavy" }));
/** Enough steps for a layout beside the page, and for a list of which only some rows are in the document. */
const wide = graph("wide", (g) => {
  let before: Ref<{ size: string }>[] = [];
  for (let layer = 0; layer < 6; layer++) {
    before = Array.from({ length: 50 }, (_none, at) => {
      const above = before[at];
      return g.step(weigh, null, { id: `step-${layer}-${at}`, after: above === undefined ? [] : [above] });
    });
  }
});
const say = task("say", async (input: Readonly<Record<string, string>>, ctx) => {
  const [text = ""] = Object.values(input);
  ctx.log(`${text}\n`);
  throw new Error(text);
});
const hostile = graph("hostile", (g, input: Ref<Readonly<Record<string, string>>>) => void g.step(say, input, { retry: { limit: 0 } }));

export interface Town {
  readonly url: string;
  /** For workers and workflows of a test of its own. */
  readonly server: Server;
  /** The runs by what they show. */
  readonly runs: Readonly<Record<"done" | "failed" | "wide" | "stuck" | "approval" | "switch" | "shell", string>>;
  api<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Resolves when the run is over. */
  ended(id: string): Promise<void>;
  /** Resolves when every run is as far as it gets by itself. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

interface TownOptions {
  /** The token of the workers and of `api`; the server must have it in its options. */
  readonly token?: string;
  /** Without workers, workflows and runs. */
  readonly isEmpty?: boolean;
}

export const goodOrder: Order = {
  customer: "Ada",
  items: [
    { name: "lantern", price: 19.5 },
    { name: "rope", price: 7 },
  ],
};

export async function openTown(options: ServeOptions = {}, { token, isEmpty = false }: TownOptions = {}): Promise<Town> {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" }, ...options });
  const url = server.url as string;
  const api = apiOf(url, token);
  const shown = token === undefined ? {} : { token };
  const ended = async (id: string) => {
    const { state } = await api<{ state: string }>("GET", `/runs/${id}?waitMs=20000`);
    if (state === "running") throw new Error(`the run ${id} does not end`);
  };
  if (isEmpty) return { url, server, api, ended, runs: noRuns, settled: async () => {}, close: () => server.close(0) };
  const workers = [
    await work({ tasks: [price, reserve, charge, ship, say, weigh], workflows: [approval], on: server }),
    await work({
      tasks: [weigh],
      on: conductor(`${url}/api`, token === undefined ? {} : { keyId: "longshore", keySecret: token }),
    }),
    await work({ tasks: [], on: workflowGraph(url, { ...shown, shell: true }) }),
  ];
  await server.define(order);
  await server.define(training);
  await server.define(hostile);
  await server.define(wide);
  for (const [name, file] of Object.entries(files)) await api("POST", `/definitions?name=${name}`, file);
  const headers = { "content-type": "application/json", ...(token === undefined ? {} : { "x-authorization": token }) };
  await fetch(`${url}/api/metadata/workflow`, { method: "PUT", headers, body: JSON.stringify([switching]) });
  const start = async (name: string, input: unknown) => (await api<{ id: string }>("POST", "/runs", { workflow: name, input })).id;
  const runs = {
    done: await start("order", goodOrder),
    failed: await start("order", { ...goodOrder, customer: "Mallory" }),
    wide: await start("wide", null),
    stuck: await start("training", null),
    approval: await start("approval", goodOrder),
    switch: await start("parcel", { parcel: 17 }),
    shell: await start("backup", null),
  };
  return {
    ...{ url, server, runs, api, ended },
    async settled() {
      await Promise.all([runs.done, runs.failed, runs.wide, runs.switch, runs.shell].map(ended));
      await untilTrue(
        async () => (await api<{ waiting: { reason: string } | null }>("GET", `/runs/${runs.approval}`)).waiting?.reason === "signal",
      );
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      await server.close(0);
    },
  };
}

export function apiOf(url: string, token?: string) {
  return async <Answer>(method: string, path: string, body?: unknown): Promise<Answer> => {
    const response = await fetch(`${url}/api/longshore/v1${path}`, {
      method,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Answer;
  };
}

const noRuns = { done: "", failed: "", wide: "", stuck: "", approval: "", switch: "", shell: "" };

/** Asks again until it is true; the test that waits has a limit. */
export async function untilTrue(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 20));
}
