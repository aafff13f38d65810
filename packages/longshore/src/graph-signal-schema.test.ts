// A step of a graph that waits for a signal whose value has a schema.

import { expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { graph } from "./graph.ts";
import type { Ref } from "./reference.ts";
import { serve } from "./server/index.ts";

const Approval = z.object({ ok: z.boolean(), by: z.string().optional() });

it("drops a value that does not fit, notes it in the log of the step, and takes the next value", async () => {
  await using server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  const asking = graph("asking", (g) => {
    const decision = g.signal("approve", { schema: Approval });
    expectTypeOf(decision).toEqualTypeOf<Ref<{ ok: boolean; by?: string | undefined }>>();
    return { ok: decision.ok };
  });
  const run = await server.start(asking, null);
  expect(await run.signal("approve", { ok: "yes" })).toMatchObject({ state: "taken" });
  expect(await run.status()).toMatchObject({ state: "running", signals: { sent: 1, kept: 0 }, waiting: { reason: "signal" } });
  const early = await server.start(asking, null);
  await run.signal("approve", { ok: true });
  expect(await run.result()).toEqual({ ok: true });
  const api = async (path: string) => (await fetch(`${server.url}/api/longshore/v1/runs/${run.id}${path}`)).json();
  expect(await api("/logs")).toMatchObject({
    items: [
      { step: "approve", stream: "stderr", data: expect.stringMatching(/^The value of signal approve does not fit its schema: ok: .*\n$/) },
    ],
  });
  expect(await api("/signals")).toMatchObject({
    items: [
      { taskId: null, attempt: null },
      { taskId: `${run.id}.0`, attempt: 1 },
    ],
  });
  await early.cancel();
});

it("passes over values that do not fit among those that were sent before the step waits", async () => {
  await using server = await serve({ ephemeral: true, port: null });
  const late = graph("late", (g) => {
    const begin = g.signal("begin");
    return g.signal("approve", { schema: Approval, after: [begin] });
  });
  const run = await server.start(late, null);
  for (const value of [1, { ok: 2 }, { ok: false }, { ok: true }]) await run.signal("approve", value);
  await run.signal("begin");
  expect(await run.result()).toEqual({ ok: false });
});

it("refuses a schema that the server cannot check", () => {
  const schema = z.string().transform((text) => text.length);
  const custom = { "~standard": { ...schema["~standard"], jsonSchema: undefined } } as unknown as z.ZodType<string>;
  expect(() => graph("bad", (g) => void g.signal("approve", { schema: custom }))).toThrow(
    /^g\.signal\(\) in workflow bad got a schema for the signal approve, but its library cannot write it as JSON Schema/,
  );
});
