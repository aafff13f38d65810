import { expect, it, onTestFinished } from "vitest";
import { TestClock } from "../testing/clock.ts";
import { endWorkers } from "./ended-workers.ts";
import { openEngine } from "./engine.ts";

it("other workers get the tasks of an ended process's workers at once, and keep their own tasks", async () => {
  const engine = await openEngine({ directory: null, clock: new TestClock() });
  onTestFinished(() => engine.close());
  const { board, workers } = engine;
  const policy = JSON.stringify({ failures: 0, lost: 1, backoff: { kind: "fixed", delayMs: 0 } });
  await board.post(["a", "b"].map((id) => ({ id, step: id, lanes: [{ name: "pack", labels: [] }], input: "null", policy })));
  const take = (holder: string) => board.claim({ reach: { names: ["pack"], labels: [] }, holder, termMs: 30_000 });
  const [ended] = await take("host-7-x");
  const [kept] = await take("host-71-y");
  await endWorkers(engine, "host-7-");
  expect(await take("host-8-z")).toMatchObject([{ id: ended?.id, attempt: 1 }]);
  expect((await board.extend({ taskId: kept?.id ?? "", grant: kept?.grant ?? 0 })).verdict).toBe("ok");
  expect([...workers.views()].map(({ id }) => id)).toEqual(["host-71-y", "host-8-z"]);
});
