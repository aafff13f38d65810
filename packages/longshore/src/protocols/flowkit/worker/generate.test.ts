// Which batches count as done when a generator yields. Each form of generator is interrupted before each of its yields, and runs again.
// Both attempts together must yield a result for every batch, exactly once.

import { describe, expect, it } from "vitest";
import { flowkitWorld } from "../../../../test/support/flowkit-played.ts";
import type { ReadBatch } from "../wire/batch.ts";
import type { BatchGenerator } from "./handler.ts";
import { streamTask } from "./stream-task.ts";

const inputs = 5;
const at = ({ payload }: ReadBatch) => (payload.meta as { a: number }).a;

const forms: {
  readonly [form: string]: { readonly make: BatchGenerator; readonly of?: readonly number[]; readonly again: "all" | "fewer" };
} = {
  "yields for each batch before it reads the next": {
    async *make(batches) {
      for await (const batch of batches) yield { of: [at(batch)] };
    },
    again: "all",
  },
  "yields several times for a batch": {
    async *make(batches) {
      for await (const batch of batches) {
        yield { of: [at(batch)] };
        yield { of: [at(batch) + 10] };
      }
    },
    of: [0, 1, 2, 3, 4, 10, 11, 12, 13, 14],
    again: "all",
  },
  "yields for a batch, reads the next and then yields more for the old one": {
    async *make(batches) {
      let before: ReadBatch | undefined;
      for await (const batch of batches) {
        if (before !== undefined) yield { of: [at(before) + 10] };
        yield { of: [at(batch)] };
        before = batch;
      }
      if (before !== undefined) yield { of: [at(before) + 10] };
    },
    of: [0, 1, 2, 3, 4, 10, 11, 12, 13, 14],
    again: "all",
  },
  "names the batch of each yielded result": {
    async *make(batches) {
      for await (const batch of batches) yield batch.result({ of: [at(batch)] });
    },
    again: "fewer",
  },
  "marks several yields as of one batch": {
    async *make(batches) {
      for await (const batch of batches) {
        yield batch.result({ of: [at(batch)] });
        yield batch.result({ of: [at(batch) + 10] });
      }
    },
    of: [0, 1, 2, 3, 4, 10, 11, 12, 13, 14],
    again: "fewer",
  },
  "marks it with the last yield for a batch": {
    async *make(batches) {
      for await (const batch of batches) {
        yield { of: [at(batch)] };
        yield batch.result({ of: [at(batch) + 10] });
      }
    },
    of: [0, 1, 2, 3, 4, 10, 11, 12, 13, 14],
    again: "fewer",
  },
  "reads ahead by one": {
    async *make(batches) {
      let before: ReadBatch | undefined;
      for await (const batch of batches) {
        if (before !== undefined) yield { of: [at(before)] };
        before = batch;
      }
      if (before !== undefined) yield { of: [at(before)] };
    },
    again: "all",
  },
  "requests the next batch while it works": {
    async *make(batches) {
      const reader = batches[Symbol.asyncIterator]();
      for (let next = reader.next(); ; ) {
        const { done, value } = await next;
        if (done) return;
        next = reader.next();
        await next;
        yield { of: [at(value)] };
      }
    },
    again: "all",
  },
  "gathers several batches": {
    async *make(batches) {
      let of: number[] = [];
      for await (const batch of batches) {
        of.push(at(batch));
        if (of.length < 2) continue;
        yield { of };
        of = [];
      }
      if (of.length > 0) yield { of };
    },
    again: "all",
  },
  "reads ahead and names the batch of each result": {
    async *make(batches) {
      let before: ReadBatch | undefined;
      for await (const batch of batches) {
        if (before !== undefined) yield before.result({ of: [at(before)] });
        before = batch;
      }
      if (before !== undefined) yield before.result({ of: [at(before)] });
    },
    again: "fewer",
  },
  "yields out of order and names the batch of each result": {
    async *make(batches) {
      let waiting: ReadBatch[] = [];
      for await (const batch of batches) {
        waiting.unshift(batch);
        if (waiting.length < 3) continue;
        for (const one of waiting) yield one.result({ of: [at(one)] });
        waiting = [];
      }
      for (const one of waiting) yield one.result({ of: [at(one)] });
    },
    again: "all",
  },
  "leaves batches out by skip()": {
    async *make(batches) {
      for await (const batch of batches) {
        if (at(batch) % 2 === 1) batch.skip();
        else yield batch.result({ of: [at(batch)] });
      }
    },
    of: [0, 2, 4],
    again: "fewer",
  },
  "gathers and names the batches": {
    async *make(batches) {
      let gathered: ReadBatch[] = [];
      for await (const batch of batches) {
        gathered.push(batch);
        if (gathered.length < 2) continue;
        const [first, ...others] = gathered as [ReadBatch, ...ReadBatch[]];
        yield first.result({ of: gathered.map(at) }, ...others);
        gathered = [];
      }
      for (const one of gathered) yield one.result({ of: [at(one)] });
    },
    again: "fewer",
  },
};

/** The same, but its first attempt is interrupted before the yield whose number is in the node's name. */
function breaking(make: BatchGenerator, read: string[]): BatchGenerator {
  return async function* (batches, ctx) {
    let yields = 0;
    async function* noted() {
      for await (const batch of batches) {
        if (ctx.attempt_epoch > 1) read.push(`${ctx.node_id} ${batch.batch_uid}`);
        yield batch;
      }
    }
    for await (const value of make(noted(), ctx)) {
      if (ctx.attempt_epoch === 1 && yields++ === Number(ctx.node_id)) throw new Error("broken off");
      yield value;
    }
    if (ctx.attempt_epoch === 1) throw new Error("broken off at the end");
  };
}

describe("a generator that is interrupted", () => {
  for (const [form, { make, of = [0, 1, 2, 3, 4], again }] of Object.entries(forms)) {
    it(`and ${form} loses no batch and counts none twice`, async () => {
      const world = await flowkitWorld();
      const metas = Array.from({ length: inputs }, (_, a) => ({ a }));
      world.artifacts.produce(world.taskId, "u", metas);
      const read: string[] = [];
      await world.worker([streamTask("probe", breaking(make, read))]);
      const inline = { input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } };
      for (let yields = 0; yields <= of.length; yields++) {
        const nodeId = String(yields);
        await world.start(inline, { nodeId });
        expect((await world.end(nodeId)).payload.kind).toBe("TASK_FAILED");
        await world.start(inline, { nodeId, epoch: 2 });
        expect((await world.end(nodeId, 2)).payload.kind).toBe("TASK_DONE");
        const results = [...world.artifacts.node(world.taskId, nodeId).parts.values()].flatMap((meta) => meta.of as number[]);
        expect(
          results.sort((one, other) => one - other),
          `broken off after ${yields} yields`,
        ).toEqual(of);
      }
      // The batches that an attempt read before it was interrupted after two yields.
      const twice = read.filter((each) => each.startsWith("2 ")).length;
      if (again === "all") expect(twice).toBe(inputs);
      else expect(twice).toBeLessThan(inputs);
    });
  }

  it("gets the batches again that its lost worker had read without a yield for them", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 0 }, { a: 1 }, { a: 2 }]);
    const seen: number[] = [];
    const role = (hangs: boolean) =>
      streamTask("probe", async function* (batches, ctx) {
        let before: ReadBatch | undefined;
        for await (const batch of batches) {
          seen.push(at(batch));
          if (before !== undefined) yield { of: at(before) };
          // From here on the worker does nothing more: it has sent one result, and has read the next batch.
          if (hangs && before !== undefined) await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
          before = batch;
        }
        if (before !== undefined) yield { of: at(before) };
      });
    const first = await world.worker([role(true)], { workerId: "first" });
    const inline = { input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } };
    await world.start(inline);
    await world.event("BATCH_OK");
    await first.stop({ force: true });
    expect(world.artifacts.finishedBy(world.taskId, "n")).toEqual([]);
    seen.length = 0;
    await world.worker([role(false)], { workerId: "second" });
    await world.start(inline, { epoch: 2 });
    expect((await world.end("n", 2)).payload.kind).toBe("TASK_DONE");
    expect(seen).toEqual([0, 1, 2]);
    expect([...world.artifacts.node(world.taskId, "n").parts.values()].map(({ of }) => of).sort()).toEqual([0, 1, 2]);
  });

  it("returns the sum over all batches, also when an earlier attempt had yielded some", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }, { a: 2 }, { a: 3 }]);
    const role = streamTask("probe", async function* (batches, ctx) {
      let sum = 0;
      for await (const batch of batches) {
        sum += at(batch);
        if (ctx.attempt_epoch === 1 && at(batch) === 3) throw new Error("broken off");
        yield { of: at(batch) };
      }
      return { sum };
    });
    await world.worker([role]);
    const inline = { input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } };
    await world.start(inline);
    expect((await world.end()).payload.kind).toBe("TASK_FAILED");
    await world.start(inline, { epoch: 2 });
    expect((await world.end("n", 2)).payload.metrics).toEqual({ sum: 6 });
  });

  it("is refused a result of a batch that it has finished", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }, { a: 2 }]);
    const role = streamTask("probe", async function* (batches) {
      let before: ReadBatch | undefined;
      for await (const batch of batches) {
        if (before !== undefined) yield before.result({ of: [at(before), at(batch)] });
        yield batch.result({ of: [at(batch)] });
        before = batch;
      }
    });
    await world.worker([role]);
    await world.start({ input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } });
    const { payload } = await world.end();
    expect(payload).toMatchObject({ kind: "TASK_FAILED", reason_code: "bad_input", permanent: true });
    expect(payload.error).toMatch(
      /^A result was yielded of batch "u0", which the generator had marked as finished .* plain yields for all but the last/,
    );
  });

  it("is refused a result of a batch that it has not read", async () => {
    const world = await flowkitWorld();
    let other: ReadBatch | undefined;
    const role = streamTask("probe", async function* (batches, ctx) {
      for await (const batch of batches) {
        if (ctx.node_id === "n") other = batch;
        yield (other ?? batch).result({});
      }
    });
    await world.worker([role]);
    await world.start({ a: 1 });
    await world.end();
    await world.start({ a: 2 }, { nodeId: "m" });
    const { payload } = await world.end("m");
    expect(payload).toMatchObject({ kind: "TASK_FAILED", reason_code: "bad_input", permanent: true });
    expect(payload.error).toMatch(/^A result was yielded of a batch that this run has not read/);
  });
});
