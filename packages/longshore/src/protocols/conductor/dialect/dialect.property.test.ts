// Any definition runs exactly the tasks that a simple reference model expects, for any nesting of tasks and any order of reports. After a
// failure, a retry leads to the same end.

import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ConductorWorld, openConductor, operator, simple, switchOn } from "../../../../test/support/conductor-world.ts";

type Shape =
  | { kind: "simple" }
  | { kind: "noop" }
  | { kind: "set" }
  | { kind: "switch"; on: "a" | "b" | "z"; a: Shape[]; b: Shape[]; otherwise: Shape[] }
  | { kind: "fork"; branches: Shape[][]; joins: boolean[] };

const { list } = fc.letrec<{ shape: Shape; list: Shape[] }>((tie) => ({
  shape: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom<Shape>({ kind: "simple" }, { kind: "simple" }, { kind: "noop" }, { kind: "set" }),
    fc.record({
      kind: fc.constant("switch" as const),
      on: fc.constantFrom("a" as const, "b" as const, "z" as const),
      a: tie("list"),
      b: tie("list"),
      otherwise: tie("list"),
    }),
    fc.record({
      kind: fc.constant("fork" as const),
      branches: fc.array(tie("list"), { minLength: 1, maxLength: 3 }),
      joins: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
    }),
  ),
  list: fc.array(tie("shape"), { maxLength: 3 }),
}));

/** The definition's tasks, and the reference names that will be reached. */
class Writer {
  readonly reached: string[] = [];
  readonly workers: string[] = [];
  #count = 0;

  tasks(shapes: readonly Shape[], live: boolean): object[] {
    return shapes.flatMap((shape) => this.#task(shape, live));
  }

  #task(shape: Shape, live: boolean): object[] {
    const name = this.#name(shape.kind, live);
    if (shape.kind === "simple") {
      this.workers.push(name);
      return [simple(name, { retryCount: 0 })];
    }
    if (shape.kind === "noop") return [operator("NOOP", name)];
    if (shape.kind === "set") return [operator("SET_VARIABLE", name, { inputParameters: { [name]: 1 } })];
    if (shape.kind === "switch") {
      const a = this.tasks(shape.a, live && shape.on === "a");
      const b = this.tasks(shape.b, live && shape.on === "b");
      return [switchOn(name, { a, b }, this.tasks(shape.otherwise, live && shape.on === "z"), shape.on)];
    }
    const branches = shape.branches.map((branch) => this.tasks(branch, live));
    const ends = branches.map((branch) => (branch.at(-1) as { taskReferenceName?: string } | undefined)?.taskReferenceName);
    const joinOn = ends.filter((end, at) => end !== undefined && shape.joins[at]);
    return [operator("FORK_JOIN", name, { forkTasks: branches }), operator("JOIN", this.#name("join", live), { joinOn })];
  }

  #name(kind: string, live: boolean): string {
    const name = `${kind}${this.#count++}`;
    if (live) this.reached.push(name);
    return name;
  }
}

/** Settles tasks in an order that `picks` draws until the run ends; `fails` names those that fail. */
async function play(world: ConductorWorld, id: string, workers: readonly string[], picks: () => number, fails: (name: string) => boolean) {
  for (let rounds = 0; (await world.run(id)).endedAt === null; rounds++) {
    assert(rounds < 500, "the run does not end");
    const open = (await world.statuses(id)).filter((one) => one.endsWith(":SCHEDULED")).map((one) => one.split(":")[0] as string);
    const ready = open.filter((name) => workers.includes(name));
    assert(ready.length > 0, "the run is open, but no task is ready");
    const name = ready[picks() % ready.length] as string;
    await world.work(name, fails(name) ? { error: "no", terminal: true } : { output: { name } });
  }
}

describe("any definition", () => {
  const picks = fc.infiniteStream(fc.nat(20));
  const drawn = (stream: Iterator<number>) => () => stream.next().value as number;

  it("runs the tasks that it reaches, each once and in order", async () => {
    const world = await openConductor();
    await fc.assert(
      fc.asyncProperty(list, picks, async (shapes, stream) => {
        const writer = new Writer();
        const id = await world.start([operator("NOOP", "first"), ...writer.tasks(shapes, true)]);
        await play(world, id, writer.workers, drawn(stream), () => false);
        expect((await world.run(id)).status).toBe("COMPLETED");
        const records = await world.records(id);
        expect(records.map(({ ref }) => ref).sort()).toEqual(["first", ...writer.reached].sort());
        expect(records.every(({ status }) => status === "COMPLETED")).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it("has the same end after a failure and a retry", async () => {
    const world = await openConductor();
    await fc.assert(
      fc.asyncProperty(list, picks, fc.nat(5), async (shapes, stream, nth) => {
        const writer = new Writer();
        const id = await world.start([operator("NOOP", "first"), ...writer.tasks(shapes, true)]);
        const unlucky = writer.workers.filter((name) => writer.reached.includes(name))[nth];
        await play(world, id, writer.workers, drawn(stream), (name) => name === unlucky);
        if (unlucky !== undefined) {
          expect((await world.run(id)).status).toBe("FAILED");
          await world.runs.retry(id);
          await play(world, id, writer.workers, drawn(stream), () => false);
        }
        expect((await world.run(id)).status).toBe("COMPLETED");
        const done = (await world.records(id)).filter(({ status }) => status === "COMPLETED").map(({ ref }) => ref);
        expect(done.sort()).toEqual(["first", ...writer.reached].sort());
      }),
      { numRuns: 50 },
    );
  });
});
