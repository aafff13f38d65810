// Durable functions on the server: turns, commands that become tasks, and results that wait for the next turn.

import { describe, expect, it } from "vitest";
import { functionLane, type TurnNews } from "../../src/core/turn.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
// The engine loads it at its first use; then these tests do not wait for the file.
import "../../src/protocols/longshore/dialect/code-source.ts";
import { begin, journalOf, lane, own } from "./function-world.ts";
import type { Setup } from "./store.ts";
import { holdOf, turns, type World } from "./world.ts";

export function functionContract(setup: Setup): void {
  describe("a durable function", () => {
    it("gets its input in the first turn, and the results of its commands in the next", async () => {
      const { world, id, turn, done } = await begin(setup);
      const first = await turn([
        { node: 1, name: "a", input: 7 },
        { node: 2, name: "b" },
      ]);
      expect(first).toMatchObject({ turn: 1, life: 0, after: 0, upTo: 0, by: null, commands: 0, results: [], input: { n: 1 } });
      expect(await world.claim(lane)).toBeUndefined();
      await done("b", '"two"');
      const second = await turn();
      expect(second).toMatchObject({ turn: 2, after: 0, upTo: 1, by: "w-1", commands: 2 });
      expect(second?.results).toMatchObject([{ node: 2, place: 1, state: "done", output: "two" }]);
      const held = await world.claim("a");
      expect(held?.input).toBe("7");
      await world.board.complete(holdOf(held), '"one"');
      expect((await turn([], { end: { kind: "done", output: { ok: true } } }))?.results).toMatchObject([
        { node: 1, place: 2, output: "one" },
      ]);
      expect(await world.run(id)).toMatchObject({ state: "succeeded", output: '{"ok":true}', active: 0 });
      expect(await world.task(`${id}.0`)).toMatchObject({ state: "done" });
    });

    it("gets all results together that arrived during its turn", async () => {
      const { take, report, turn, done, id, world } = await begin(setup);
      await turn([1, 2, 3].map((node) => ({ node, name: `s${node}` })));
      await done("s1", "1");
      const taken = await take();
      await done("s3", "3");
      await done("s2", "2");
      expect(taken?.turn.results.map(({ node }) => node)).toEqual([1]);
      await report(taken?.task);
      expect((await take())?.turn).toMatchObject({ after: 1, upTo: 3, results: [{ node: 3 }, { node: 2 }] });
      expect(await world.run(id)).toMatchObject({ left: 0, recorded: 3 });
    });

    it("is handed to the worker that has it in memory, and after a while to any other", async () => {
      const { world, turn, done, take } = await begin(setup);
      await turn([{ node: 1, name: "a" }]);
      await done("a", "1");
      await turns();
      expect(await world.claim(lane)).toBeUndefined();
      await world.clock.advance(2_500);
      const taken = await take([lane]);
      expect(taken?.turn).toMatchObject({ turn: 2, by: "w-1" });
    });

    it("is queued again with the same news when its worker is lost, and the late report is refused", async () => {
      const { world, take, report, turn, done } = await begin(setup);
      await turn([{ node: 1, name: "a" }]);
      await done("a", "1");
      const lost = await take();
      await world.clock.advance(5_000);
      const again = await take([lane]);
      expect(again?.turn).toEqual(lost?.turn);
      expect(await report(lost?.task, [], { end: { kind: "done", output: 1 } })).toBe("stale");
      expect(await report(again?.task, [{ node: 2, name: "b", after: 1 }])).toBe("ok");
      expect((await world.claim("b"))?.command).toBe("1 step b");
    });

    it("starts a command once, however often it is reported", async () => {
      const { world, id, take, report } = await begin(setup);
      const taken = await take();
      const added = { by: "w-9", commands: [{ node: 1, kind: "step", name: "a", after: 0 }] };
      for (let time = 0; time < 2; time++)
        expect((await world.board.command(holdOf(taken?.task), JSON.stringify(added))).verdict).toBe("ok");
      expect(await report(taken?.task, [{ node: 1, name: "a" }])).toBe("ok");
      expect(await world.claim("a")).toMatchObject({ node: 1 });
      expect(await world.claim("a")).toBeUndefined();
      expect(await world.run(id)).toMatchObject({ recorded: 1, left: 1, active: 2 });
    });

    it("continues its turn with the news that it requests, also when it repeats the request", async () => {
      const { world, id, take, turn, done, report } = await begin(setup);
      await turn([
        { node: 1, name: "a" },
        { node: 2, name: "b" },
      ]);
      await done("a", '"one"');
      const taken = await take();
      expect(taken?.turn).toMatchObject({ upTo: 1, goesOn: true });
      await done("b", '"two"');
      const commands = [{ node: 3, kind: "local", name: "l", after: 1, output: 3 }];
      const ask = async () => {
        const { verdict, news } = await world.board.command(holdOf(taken?.task), JSON.stringify({ by: "w-9", commands, received: 1 }));
        return { verdict, news: JSON.parse(news ?? "null") as TurnNews };
      };
      const results = [
        { node: 2, place: 2, output: "two" },
        { node: 3, place: 3 },
      ];
      expect(await ask()).toMatchObject({ verdict: "ok", news: { upTo: 3, results } });
      expect(await ask()).toMatchObject({ verdict: "ok", news: { upTo: 3, results: [] } });
      expect(await report(taken?.task, [{ node: 4, name: "c", after: 3 }], { received: 3 })).toBe("ok");
      expect(await take()).toBeUndefined();
      expect(await journalOf(world, id, 3)).toEqual([
        [1, "done", '"one"'],
        [2, "done", '"two"'],
        [3, "done", "3"],
      ]);
    });

    it("accepts a turn together with the result of its step, and hands out the turn's commands", async () => {
      const { world, id, turn } = await begin(setup);
      await turn([{ node: 1, name: "a" }]);
      const step = await world.claim("a");
      const at = world.clock.now();
      await world.clock.advance(50);
      const report = { by: "w-2", commands: [{ node: 2, kind: "step", name: "a", after: 1 }], received: 1 };
      const foreseen = { from: "w-1", node: 1, at, report: JSON.stringify(report) };
      const claim = { reach: { names: ["a", own], labels: [] }, holder: "w", termMs: 60_000 };
      const taken = await world.board.completeAndClaim(holdOf(step), "1", { turn: foreseen }, claim);
      expect(taken).toMatchObject({ verdict: "ok", tookTurn: true, task: { node: 2, state: "held" } });
      expect(await world.task(`${id}.1`)).toMatchObject({ state: "done", ordinal: 1, endedAt: at });
      expect(await world.board.completeAndClaim(holdOf(step), "1", { turn: foreseen }, claim)).toMatchObject({ verdict: "again" });
      const end = { by: "w-3", commands: [], received: 2, end: { kind: "done", output: 7 } };
      const last = { from: "w-2", node: 2, at: world.clock.now(), report: JSON.stringify(end) };
      expect(await world.board.completeAndClaim(holdOf(taken.task), "2", { turn: last }, claim)).toMatchObject({ tookTurn: true });
      expect(await world.run(id)).toMatchObject({ state: "succeeded", output: "7", active: 0 });
    });

    it.each([
      ["continues another state", { from: "w-0" }, undefined],
      ["has another time than the result", { at: 1 }, undefined],
      ["has the result of another command", { node: 2 }, undefined],
      ["misses another result", {}, async (world: World) => world.board.complete(holdOf(await world.claim("b")), "2")],
      ["comes while the run is paused", {}, async (world: World, id: string) => world.runs.tell(id, { kind: "pause" })],
    ])("hands out the turn itself when the one that comes with the result %s", async (_what, parts, before) => {
      const { world, id, take, report } = await begin(setup);
      const taken = await take();
      const step = (node: number, name: string) => ({ node, kind: "step", name, after: 0 });
      const both = { by: "w-9", commands: [step(1, "a"), ...(before === undefined ? [] : [step(2, "b")])] };
      await world.board.command(holdOf(taken?.task), JSON.stringify(both));
      const held = await world.claim("a");
      await report(taken?.task);
      await before?.(world, id);
      const foreseen = { from: "w-1", node: 1, at: world.clock.now(), report: '{"by":"w-2","commands":[],"received":1}', ...parts };
      const claim = { reach: { names: ["none"], labels: [] }, holder: "w", termMs: 60_000 };
      expect(await world.board.completeAndClaim(holdOf(held), "1", { turn: foreseen }, claim)).toMatchObject({
        verdict: "ok",
        tookTurn: false,
      });
      await world.runs.tell(id, { kind: "resume" });
      await turns();
      expect((await world.task(`${id}.0`)).lane).not.toBeNull();
    });

    it("numbers side effects as the function has received them, with the times that it saw", async () => {
      const { world, id, take, report } = await begin(setup);
      const taken = await take();
      const local = (node: number, at: number) => ({ node, kind: "local" as const, name: "l", output: node, place: node, at });
      const asked = { by: "w-9", commands: [local(1, 1_000)].map((command) => ({ after: 0, ...command })), received: 1 };
      const { news } = await world.board.command(holdOf(taken?.task), JSON.stringify(asked));
      expect(JSON.parse(news ?? "null")).toMatchObject({ upTo: 1, results: [], now: world.clock.now() });
      const end = { kind: "done" as const, output: "all" };
      expect(await report(taken?.task, [local(2, 2_000)], { received: 2, end })).toBe("ok");
      expect(await world.run(id)).toMatchObject({ state: "succeeded", output: '"all"' });
      expect([(await world.task(`${id}.1`)).endedAt, (await world.task(`${id}.2`)).endedAt]).toEqual([1_000, 2_000]);
    });

    it("is blocked when it has received a side effect with another number", async () => {
      const { world, id, take, turn, done, report } = await begin(setup);
      await turn([
        { node: 1, name: "a" },
        { node: 2, name: "b" },
      ]);
      await done("a", "1");
      const taken = await take();
      await done("b", "2");
      await report(taken?.task, [{ node: 3, kind: "local", name: "l", after: 1, output: 3, place: 2, at: 5 }], { received: 2 });
      expect(await world.run(id)).toMatchObject({
        state: "blocked",
        error: expect.stringMatching(/command 3 as number 2, it has number 3/),
      });
    });

    it.each([
      ["its worker is lost", async (world: World) => world.clock.advance(5_000)],
      ["its hand-out did not arrive", async (world: World, task: TaskRow) => world.board.giveBack(holdOf(task))],
    ])("names all commands and results of a turn that continued, when %s", async (_why, lose) => {
      const { world, take } = await begin(setup);
      const taken = await take();
      const asked = { by: "w-9", commands: [{ node: 1, kind: "local", name: "l", after: 0, output: 1, place: 1, at: 5 }], received: 1 };
      await world.board.command(holdOf(taken?.task), JSON.stringify(asked));
      await lose(world, taken?.task as TaskRow);
      const again = await take([lane]);
      expect(again?.turn).toMatchObject({ turn: 1, upTo: 1, commands: 1, by: null, results: [] });
      expect(again?.turn.input).toBeUndefined();
    });

    it("begins no new command in its turn while the run is paused", async () => {
      const { world, id, take, report } = await begin(setup);
      const taken = await take();
      await world.runs.tell(id, { kind: "pause" });
      const asked = { by: "w-9", commands: [{ node: 1, kind: "local", name: "l", after: 0, output: 1, place: 1, at: 5 }], received: 1 };
      const { news } = await world.board.command(holdOf(taken?.task), JSON.stringify(asked));
      expect(JSON.parse(news ?? "null")).toMatchObject({ upTo: 1, results: [], stop: true });
      expect(await report(taken?.task, [], { received: 1, more: true })).toBe("ok");
      await world.runs.tell(id, { kind: "resume" });
      expect((await take())?.turn).toMatchObject({ after: 1, upTo: 1, commands: 1 });
    });

    it("records a side effect with its result, and the reply to the worker does not repeat the result", async () => {
      const { world, id, turn } = await begin(setup);
      await turn([
        { node: 1, kind: "local", name: "rate", output: 0.5 },
        { node: 2, kind: "local", name: "bad", error: "no luck" },
      ]);
      expect(await world.task(`${id}.1`)).toMatchObject({ state: "done", output: "0.5", ordinal: 1, lane: null });
      expect(await world.task(`${id}.2`)).toMatchObject({ state: "failed", error: "no luck", ordinal: 2 });
      expect((await turn([], { more: true }))?.results.map(({ node, output }) => [node, output])).toEqual([
        [1, undefined],
        [2, undefined],
      ]);
    });

    it("sleeps, waits for signals and for child runs", async () => {
      const { world, id, turn } = await begin(setup);
      await world.define("child", [{ id: "c", task: "c", input: null }], { output: { $ref: { step: "c", path: [] } } });
      await turn([
        { node: 1, kind: "sleep", name: "", until: world.clock.now() + 60_000 },
        { node: 2, kind: "signal", name: "go" },
        { node: 3, kind: "run", name: "child" },
        { node: 4, kind: "signal", name: "never", totalMs: 30_000 },
      ]);
      await world.signals.send(id, { name: "go", value: '"now"' });
      expect((await turn())?.results).toMatchObject([{ node: 2, output: "now" }]);
      await turns();
      await world.board.complete(holdOf(await world.claim("c")), "5");
      expect((await turn())?.results).toMatchObject([{ node: 3, output: 5 }]);
      await world.clock.advance(40_000);
      expect((await turn())?.results).toMatchObject([{ node: 4, state: "failed", timedOut: true }]);
      await world.clock.advance(30_000);
      expect((await turn([], { end: { kind: "done", output: null } }))?.results).toMatchObject([{ node: 1, state: "done" }]);
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("can send the definition of a child, which is stored if there is none with its name", async () => {
      const { world, turn } = await begin(setup);
      await world.runs.define({ name: "k", dialect: "function", source: '{"name":"k","function":true}' });
      const child = (name: string, source: string) => ({ kind: "run" as const, name, defines: [{ name, dialect: "function", source }] });
      await turn([
        { node: 1, ...child("g", '{"name":"g","function":true}') },
        { node: 2, ...child("k", '{"name":"k","function":true,"timeoutMs":5}') },
        { node: 3, ...child("h", "{}"), defines: [{ name: "h", dialect: "none", source: "{}" }] },
      ]);
      expect((await turn())?.results).toMatchObject([{ node: 3, state: "failed", error: expect.stringContaining("no dialect none") }]);
      expect(await world.claim(functionLane("g"))).toMatchObject({ step: "g" });
      expect(await world.claim(functionLane("k"))).toMatchObject({ step: "k" });
      expect((await world.runs.definition("k"))?.version).toBe(1);
    });
  });
}
