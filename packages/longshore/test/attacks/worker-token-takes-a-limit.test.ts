// The attacker holds a worker token and a turn of a durable function. The server limits how many of its own tasks run for one run, such as calls
// of HTTP tasks. Tasks of the attacker counted against the same limit, so the calls of any run waited as long as the attacker held them.

import { expect, it } from "vitest";
import { startFunctions } from "../support/function-world.ts";

const limits = [{ key: "$conductor.call 01M7TYATJSF8VB8267QV7Z0MM1", held: 1_000 }];
const refused = expect.stringContaining("this key is reserved for the server");

it("a step of a durable function counts against no limit of the server", async () => {
  const world = await startFunctions();
  const { id, lease } = await world.begin();
  expect(await world.report(lease, { commands: [{ node: 1, kind: "step", name: "grab", after: 0, input: {}, limits }] })).toBe(200);
  await world.take();
  const { items } = (await (await world.api("GET", `/runs/${id}/steps`)).json()) as { items: object[] };
  expect(items).toContainEqual(expect.objectContaining({ id: "grab", state: "failed", error: refused }));
});

it("a step of a child workflow that a worker defines counts against no limit of the server", async () => {
  const world = await startFunctions();
  const { lease } = await world.begin();
  const source = JSON.stringify({ name: "child", steps: [{ id: "a", task: "grab", input: null, limits }], output: null });
  const defines = [{ name: "child", dialect: "code", source }];
  expect(await world.report(lease, { commands: [{ node: 1, kind: "run", name: "child", after: 0, input: {}, defines }] })).toBe(200);
  expect((await world.take()).turn.results).toMatchObject([{ node: 1, state: "failed", error: refused }]);
});
