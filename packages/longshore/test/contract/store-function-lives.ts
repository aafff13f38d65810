// Durable functions on the server: what a retry, a pause, a cancel and another pass keep, and what they drop.

import { describe, expect, it } from "vitest";
import { begin, journalOf } from "./function-world.ts";
import type { Setup } from "./store.ts";
import { holdOf, turns } from "./world.ts";

/** A run that was paused while its worker has a turn. The third of its commands is done, the others are open. */
async function pausedInTurn(setup: Setup) {
  const run = await begin(setup);
  await run.turn([
    { node: 1, name: "a" },
    { node: 2, kind: "signal", name: "go" },
    { node: 3, name: "b" },
  ]);
  await run.done("b", "3");
  const held = await run.take();
  await run.world.runs.tell(run.id, { kind: "pause" });
  return { ...run, held };
}

export function functionLivesContract(setup: Setup): void {
  describe("a durable function that is interrupted", () => {
    it("is retried from the command whose error it threw, and keeps earlier results", async () => {
      const { world, id, turn, done } = await begin(setup);
      await turn([{ node: 1, name: "a" }]);
      await done("a", "1");
      await turn([{ node: 2, name: "b", after: 1 }]);
      await world.board.fail(holdOf(await world.claim("b")), { error: "broken", retryable: true });
      const failed = await turn([{ node: 3, name: "undo", after: 2 }], { end: { kind: "failed", error: "broken", node: 2 } });
      expect(failed?.results).toMatchObject([{ node: 2, state: "failed", error: "broken", attempt: 1 }]);
      expect(await world.run(id)).toMatchObject({ state: "failed", error: "broken" });
      await world.runs.retry(id);
      expect(await world.run(id)).toMatchObject({ state: "running", retries: 1, recorded: 2, left: 0 });
      const again = await turn([{ node: 2, name: "b", after: 1 }]);
      expect(again).toMatchObject({ life: 1, by: null, commands: 2, results: [] });
      await done("b", "2");
      expect((await turn([], { end: { kind: "done", output: null } }))?.results).toMatchObject([{ node: 2, output: 2 }]);
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("keeps results of a pause when it is cancelled before it continues", async () => {
      const { world, id, take, report, done, held } = await pausedInTurn(setup);
      await done("a", "1");
      await world.signals.send(id, { name: "go", value: '"now"' });
      await report(held?.task, [{ node: 4, kind: "local", name: "l", after: 1, output: 4 }]);
      await world.runs.cancel(id);
      await world.runs.retry(id);
      expect((await take())?.turn).toMatchObject({ life: 1, commands: 4, upTo: 4 });
      expect(await journalOf(world, id, 4)).toMatchObject([
        [2, "done", "1"],
        [3, "done", '"now"'],
        [1, "done", "3"],
        [4, "done", "4"],
      ]);
    });

    it("keeps a failure after which the function has continued: the replay gives the same commands", async () => {
      const { world, id, turn } = await begin(setup);
      await turn([
        { node: 1, name: "a" },
        { node: 2, name: "b" },
      ]);
      const fail = async (name: string) => world.board.fail(holdOf(await world.claim(name)), { error: "no", retryable: false });
      await fail("a");
      await turn([{ node: 3, name: "undo", after: 1 }]);
      await fail("b");
      await turn();
      await world.runs.cancel(id);
      await world.runs.retry(id);
      expect(await journalOf(world, id, 3)).toMatchObject([
        [1, "failed", null],
        [expect.any(Number), "forgotten", null],
        [expect.any(Number), "forgotten", null],
      ]);
    });

    it("is blocked until a retry, and its commands continue meanwhile", async () => {
      const { world, id, turn, done, take } = await begin(setup);
      await turn([{ node: 1, name: "a" }], { end: { kind: "blocked", error: "the journal has step b" } });
      expect(await world.run(id)).toMatchObject({ state: "blocked", error: "the journal has step b" });
      await done("a", "1");
      expect(await take()).toBeUndefined();
      await world.runs.retry(id);
      expect((await take())?.turn).toMatchObject({ by: null, upTo: 1, results: [{ node: 1, output: 1 }] });
    });

    it("stops during a pause: a report waits until it is resumed", async () => {
      const { world, id, take, report } = await begin(setup);
      const taken = await take();
      await world.runs.tell(id, { kind: "pause" });
      expect(await report(taken?.task, [{ node: 1, name: "a" }])).toBe("ok");
      await turns();
      expect(await world.claim("a")).toBeUndefined();
      await world.runs.tell(id, { kind: "resume" });
      await turns();
      expect(await world.claim("a")).toMatchObject({ node: 1 });
    });

    it("cancels its open commands with the run, and the running turn is notified", async () => {
      const { world, id, take, turn, done } = await begin(setup);
      await turn([
        { node: 1, name: "a" },
        { node: 2, name: "b" },
      ]);
      await done("a", "1");
      const taken = await take();
      await world.runs.cancel(id, "enough");
      expect(await world.run(id)).toMatchObject({ state: "cancelled", error: "enough" });
      expect((await world.board.extend(holdOf(taken?.task))).verdict).toBe("cancel");
      expect((await world.task(`${id}.2`)).state).toBe("cancelled");
    });

    it("fails with the mistake in a report, and refuses lanes of the server", async () => {
      const { world, id, take, turn, report } = await begin(setup);
      await turn([{ node: 1, name: "$command" }]);
      expect(await world.task(`${id}.1`)).toMatchObject({ state: "failed", fault: "final" });
      const taken = await take();
      expect(await report(taken?.task, [{ node: 0, name: "a" }])).toBe("ok");
      expect(await world.run(id)).toMatchObject({ state: "failed", error: expect.stringContaining("commands[0].node of a turn is 0") });
    });

    it("brings the results of a turn that a pause has stopped with the next turn", async () => {
      const { world, id, take, report, held } = await pausedInTurn(setup);
      const asked = { by: "w-9", commands: [{ node: 4, kind: "local", name: "l", after: 1, output: 4 }], received: 1 };
      const { news } = await world.board.command(holdOf(held?.task), JSON.stringify(asked));
      expect(JSON.parse(news ?? "null")).toMatchObject({ upTo: 1, results: [], stop: true });
      expect(await report(held?.task, [], { received: 1 })).toBe("ok");
      await world.runs.tell(id, { kind: "resume" });
      expect((await take())?.turn).toMatchObject({ after: 1, upTo: 2, results: [{ node: 4, place: 2, output: 4 }] });
    });

    it("drops results of a pass that ends during a pause, and returns its signals", async () => {
      const { world, id, report, turn, done, held } = await pausedInTurn(setup);
      await report(held?.task, [], { end: { kind: "continued", input: { n: 2 } } });
      await done("a", "1");
      await world.signals.send(id, { name: "go", value: '"now"' });
      await world.runs.tell(id, { kind: "resume" });
      await turns();
      expect(await world.run(id)).toMatchObject({ recorded: 0, left: 0, backlog: null, signals: expect.stringMatching(/^\[1,1,/) });
      const first = await turn([{ node: 1, kind: "signal", name: "go", after: 1 }]);
      expect(first).toMatchObject({ commands: 0, results: [], input: { n: 2 } });
      expect((await turn([], { end: { kind: "done", output: null } }))?.results).toMatchObject([{ node: 1, output: "now" }]);
    });

    it("returns signals that the last pass has not received, in order", async () => {
      const { world, id, take, report, turn } = await begin(setup);
      const wait = (node: number, after: number) => ({ node, kind: "signal" as const, name: "order", after });
      const send = (value: number) => world.signals.send(id, { name: "order", value: String(value), key: `k${value}` });
      await turn([wait(1, 0), wait(2, 0), wait(3, 0), { node: 4, name: "a" }]);
      await send(1);
      const last = await take();
      await send(2);
      await send(3);
      await send(4);
      await report(last?.task, [], { end: { kind: "continued", input: { n: 2 } } });
      expect(await world.run(id)).toMatchObject({ state: "running", signals: expect.stringMatching(/^\[4,3,/) });
      await send(2);
      await turn([wait(1, 1), wait(2, 1), wait(3, 1)]);
      await turns();
      expect(await journalOf(world, id, 3)).toMatchObject([
        [4, "done", "2"],
        [5, "done", "3"],
        [6, "done", "4"],
      ]);
      expect((await world.signals.list(id, { limit: 10 })).items.map(({ value, taskId }) => [value, taskId !== null])).toEqual(
        Array(4).fill([null, true]),
      );
    });

    it("continues as another pass with other input: numbers continue, and the journal is empty", async () => {
      const { world, id, turn, done } = await begin(setup);
      await turn([{ node: 1, name: "a" }]);
      await done("a", "1");
      await turn([], { end: { kind: "continued", input: { n: 2 } } });
      expect(await world.run(id)).toMatchObject({ state: "running", input: '{"n":2}', recorded: 0, retries: 1 });
      const next = await turn([{ node: 1, name: "a", after: 1 }]);
      expect(next).toMatchObject({ turn: 1, life: 1, after: 1, upTo: 1, commands: 0, input: { n: 2 } });
      await done("a", "2");
      expect((await turn([], { end: { kind: "done", output: null } }))?.results).toMatchObject([{ node: 1, place: 2, output: 2 }]);
    });
  });
}
