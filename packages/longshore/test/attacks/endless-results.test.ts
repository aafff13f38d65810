// The attacker holds a worker token and a durable function, and reports results of megabytes without an end. There was no quota: one
// function could fill the disk, and from 268 million characters on no worker could replay it.

import { expect, it } from "vitest";
import { startFunctions } from "../support/function-world.ts";

const functionChars = 100_000;
const quotas = { functionChars };
const large = "x".repeat(30_000);
const tooMany = "more than 100000 characters together (quotas.functionChars)";

const side = (node: number, after = node - 1) => ({ node, kind: "local", name: `l${node}`, after, place: node, output: large });
const step = (node: number) => ({ node, kind: "step", name: "s", after: 0 });

/** Ended commands of the run, with their results. */
async function kept(api: (method: string, path: string) => Promise<Response>, id: string): Promise<number> {
  const { items } = (await (await api("GET", `/runs/${id}/tasks?limit=1000`)).json()) as { items: { state: string }[] };
  return items.filter(({ state }) => state === "done").length;
}

it("side effects that a worker reports in the middle of a turn end at the quota, and the run fails with the turn", async () => {
  const { api, begin, add, report, run } = await startFunctions("f", { quotas });
  const { id, lease } = await begin();
  for (let node = 1; node <= 20; node++) await add(lease, { commands: [side(node)], received: node - 1 });
  expect(await kept(api, id)).toBe(4);
  await report(lease, { commands: [side(21)] });
  expect(await run(id)).toMatchObject({ state: "failed", error: expect.stringContaining(tooMany) });
  expect(await kept(api, id)).toBe(4);
});

it("results of steps that wait together end at the quota: the others are cancelled", async () => {
  const { api, begin, report, run, finish } = await startFunctions("f", { quotas });
  const { id, lease } = await begin();
  await report(lease, { commands: Array.from({ length: 20 }, (_, at) => step(at + 1)) });
  let taken = 0;
  while ((await run(id)).state === "running" && (await finish("s", large))) taken++;
  expect(taken).toBe(4);
  expect(await run(id)).toMatchObject({ state: "failed", error: expect.stringContaining(tooMany) });
  expect(await kept(api, id)).toBe(4);
});

it("a function that begins again begins with nothing", async () => {
  const { begin, take, report, run } = await startFunctions("f", { quotas });
  let { id, lease } = await begin();
  for (let pass = 0; pass < 5; pass++) {
    await report(lease, { commands: [side(1), side(2), side(3)].map((one) => ({ ...one, place: undefined })) });
    await report((await take()).lease, { end: { kind: "continued", input: pass } });
    ({ lease } = await take());
  }
  await report(lease, { end: { kind: "done", output: large } });
  expect(await run(id)).toMatchObject({ state: "succeeded" });
});
