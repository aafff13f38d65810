// The input that a handler gets, and its result on the wire.

import { expect, it } from "vitest";
import { z } from "zod";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";

it("[C-EXEC-04, C-HTTP-05] maps the input by field name, fills in what is missing, and serialises what is returned", async () => {
  class Invoice {
    lines = new Map([["rope", { count: 2, at: new Date(0) }]]);
    total = 10;
    print() {
      return `${this.total}`;
    }
  }
  const seen: unknown[] = [];
  const order = task(
    "order",
    ({ item, count, note, tags, ...rest }) => {
      seen.push({ item, count, note, tags, rest });
      return new Invoice();
    },
    {
      input: z.object({
        item: z.string(),
        count: z.number().default(1),
        note: z.string().nullable(),
        tags: z.array(z.string()).optional(),
      }),
    },
  );
  await using s = await setup({ tasks: [order] });
  s.stub.enqueue("order", { inputData: { item: "rope", unknown: true } });
  s.stub.enqueue("order", { inputData: { item: "rope", count: null, note: "n", tags: null } });
  await until(() => s.stub.results.length === 2);
  expect(seen).toEqual([
    { item: "rope", count: 1, note: null, tags: undefined, rest: {} },
    { item: "rope", count: 1, note: "n", tags: undefined, rest: {} },
  ]);
  const written = { lines: { rope: { count: 2, at: "1970-01-01T00:00:00.000Z" } }, total: 10 };
  expect(s.stub.results.map(({ outputData }) => outputData)).toEqual([written, written]);
});

it("[C-EXEC-04] fails a task permanently when JSON cannot hold its result, and names the place", async () => {
  const total = task("total", () => ({ orders: [{ sum: 5n }] }));
  await using s = await setup({ tasks: [total] });
  s.stub.enqueue("total");
  await until(() => s.stub.results.length === 1);
  expect(s.stub.results[0]).toMatchObject({
    status: "FAILED_WITH_TERMINAL_ERROR",
    reasonForIncompletion: expect.stringContaining("orders[0].sum is a bigint"),
  });
});
