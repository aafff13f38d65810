import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { openRunWorld } from "../test/support/run-world.ts";
import { LongshoreError } from "./core/errors.ts";
import { task } from "./core/task.ts";
import { type GraphWorkflow, graph } from "./graph.ts";
import { codeDialect } from "./protocols/longshore/dialect/dialect.ts";
import type { Ref } from "./reference.ts";

const greet = task("greet", ({ name }: { name: string }) => ({ text: `Hello, ${name}!`, words: ["Hello", name] }));
const shout = task("shout", ({ text }: { text: string; loud?: boolean }) => text.toUpperCase());
const check = task("check", (text: string) => text.length > 3);

describe("workflows in code", () => {
  it("become a graph of steps with references between them", () => {
    const greeting = graph("greeting", (g, input: Ref<{ name: string }>) => {
      const hello = g.step(greet, { name: input.name });
      const loud = g.step(shout, { text: hello.text, loud: true });
      return { loud, first: hello.words[0] };
    });
    expect(greeting.source).toEqual({
      name: "greeting",
      steps: [
        { id: "greet", task: "greet", input: { name: { $ref: { path: ["name"] } } } },
        { id: "shout", task: "shout", input: { text: { $ref: { step: "greet", path: ["text"] } }, loud: true } },
      ],
      output: { loud: { $ref: { step: "shout", path: [] } }, first: { $ref: { step: "greet", path: ["words", 0] } } },
    });
    const plan = codeDialect.compile(JSON.stringify(greeting.source));
    expect(plan.nodes.map((node) => node.after)).toEqual([[], [0]]);
  });

  it("have the types of their references", () => {
    const greeting = graph("greeting", (g, input: Ref<{ name: string }>) => {
      const hello = g.step(greet, { name: input.name });
      expectTypeOf(hello).toEqualTypeOf<Ref<{ text: string; words: string[] }>>();
      expectTypeOf(hello.text).toEqualTypeOf<Ref<string>>();
      expectTypeOf(hello.words[0]).toEqualTypeOf<Ref<string> | undefined>();
      return { said: hello.text, length: 3 as number };
    });
    expectTypeOf(greeting).toEqualTypeOf<GraphWorkflow<{ name: string }, { said: string; length: number }>>();
    const nothing = graph("nothing", (g) => void g.step(greet, { name: "you" }));
    expectTypeOf(nothing).toEqualTypeOf<GraphWorkflow<unknown, null>>();
    const outer = graph("outer", (g) => g.run(greeting, { name: "you" }).said);
    expectTypeOf(outer).toEqualTypeOf<GraphWorkflow<unknown, string>>();
  });

  it("do not compile with a misspelt field, a missing field or a value of another type", () => {
    graph("mistakes", (g, input: Ref<{ name: string; age: number }>) => {
      // @ts-expect-error The input has no such field.
      g.step(greet, { name: input.nmae });
      // @ts-expect-error The task takes a name.
      g.step(greet, {});
      // @ts-expect-error A number is not a name.
      g.step(greet, { name: input.age });
      const hello = g.step(greet, { name: "you" });
      // @ts-expect-error The result has no such field.
      g.step(shout, { text: hello.txet });
      // @ts-expect-error A text is not a condition.
      g.step(shout, { text: "a" }, { when: hello.text });
      // @ts-expect-error Only results of steps can be waited for.
      expect(() => g.step(shout, { text: "a" }, { after: ["greet"] })).toThrow();
    });
  });

  it.each<[string, (ref: Ref<{ name: string }>) => unknown, string]>([
    ["as a text", (ref) => `${ref.name}`, "no text or number can be made of it"],
    ["as a number", (ref) => Number(ref.name), "no text or number can be made of it"],
    ["by its keys", (ref) => Object.keys(ref), "its fields cannot be listed"],
    ["by spreading it", (ref) => ({ ...ref }), "its fields cannot be listed"],
    ["by looping over it", (ref) => [...(ref as unknown as string[])], "its items cannot be gone through"],
    ["as JSON", (ref) => JSON.stringify(ref), "no JSON can be made of it"],
    ["by comparing it", (ref) => (ref.name as unknown as number) > 3, "no text or number can be made of it"],
    ["as a list", (ref) => ([] as unknown[]).concat(ref), "it cannot be looked at"],
  ])("refuse that code reads a value %s that does not exist yet", (_, look, why) => {
    const build = () =>
      graph("looks", (_g, input: Ref<{ name: string }>) => {
        look(input);
      });
    expect(build).toThrow(LongshoreError);
    expect(build).toThrow(
      `is a placeholder for a value that exists only when the workflow runs: ${why} while it is defined. Do that in a task.`,
    );
  });

  it("may be built by an async-looking mistake without hanging: a reference is not a promise", async () => {
    let awaited: unknown;
    const made = graph("awaits", (_g, input: Ref<{ name: string }>) => {
      awaited = Promise.resolve(input);
      return input.name;
    });
    await awaited;
    expect(made.source.output).toEqual({ $ref: { path: ["name"] } });
  });

  it("number steps of the same task, and refuse an id that is taken", () => {
    const made = graph("three", (g) => {
      g.step(greet, { name: "a" });
      g.step(greet, { name: "b" });
      g.step(shout, { text: "c" }, { id: "greet-3" });
      g.step(greet, { name: "d" });
    });
    expect(made.source.steps.map((step) => step.id)).toEqual(["greet", "greet-2", "greet-3", "greet-4"]);
    expect(() =>
      graph("twice", (g) => {
        g.step(greet, { name: "a" }, { id: "same" });
        g.step(greet, { name: "b" }, { id: "same" });
      }),
    ).toThrow(/two steps called same/);
  });

  it("keep every setting of a step", () => {
    const made = graph(
      "settings",
      (g, input: Ref<{ go: boolean }>) => {
        const first = g.step(greet, { name: "a" });
        g.step(
          shout,
          { text: "b" },
          {
            after: [first],
            when: input.go,
            always: true,
            retry: { limit: 3, lost: 4, backoff: { kind: "fixed", delayMs: 5 } },
            timeout: "2s",
            totalTimeout: "1m",
            queueTimeout: 500,
            priority: -1,
            labels: ["gpu"],
            limits: [{ key: "api", held: 2, rate: { count: 5, window: "1s" } }],
          },
        );
      },
      { timeout: "1h" },
    );
    expect(made.source.timeoutMs).toBe(3_600_000);
    expect(made.source.steps[1]).toEqual({
      id: "shout",
      task: "shout",
      input: { text: "b" },
      after: ["greet"],
      when: { $ref: { path: ["go"] } },
      always: true,
      retry: { failures: 3, lost: 4, backoff: { kind: "fixed", delayMs: 5 } },
      timeoutMs: 2_000,
      totalMs: 60_000,
      claimMs: 500,
      priority: -1,
      labels: ["gpu"],
      limits: [{ key: "api", held: 2, rate: { count: 5, windowMs: 1_000 } }],
    });
  });

  it("take retry and timeout of a task where the step sets none", () => {
    const stubborn = task("stubborn", () => 1, { retry: { limit: 7 }, timeout: "3s" });
    const made = graph("inherits", (g) => {
      g.step(stubborn, {});
      g.step(stubborn, {}, { retry: { limit: 0 }, timeout: "1s" });
    });
    expect(made.source.steps.map((step) => [step.retry?.failures, step.timeoutMs])).toEqual([
      [7, 3_000],
      [0, 1_000],
    ]);
  });

  it("take whole references, lists and plain data as inputs", () => {
    const passOn = task("pass-on", (value: { all: unknown; list: unknown[]; at: string; none: null }) => value);
    const made = graph("data", (g, input: Ref<{ a: string }>) => {
      g.step(passOn, { all: input, list: [1, input.a, { deep: input.a }], at: new Date(0).toISOString(), none: null });
      g.step(check, input.a);
    });
    expect(made.source.steps.map((step) => step.input)).toEqual([
      {
        all: { $ref: { path: [] } },
        list: [1, { $ref: { path: ["a"] } }, { deep: { $ref: { path: ["a"] } } }],
        at: "1970-01-01T00:00:00.000Z",
        none: null,
      },
      { $ref: { path: ["a"] } },
    ]);
  });

  it("wrap the user's data that looks like a reference, with true references inside", () => {
    const passOn = task("pass-on", (value: unknown) => value);
    const made = graph("wrapped", (g, input: Ref<{ a: string }>) => g.step(passOn, { $ref: { of: input.a } }));
    expect(made.source.steps[0]?.input).toEqual({ $value: { $ref: { of: { $ref: { path: ["a"] } } } } });
  });

  it("refuse names that are invalid in any protocol", () => {
    for (const name of ["", "with space", "a\u0000b", "x".repeat(201)]) expect(() => graph(name, () => null)).toThrow(/not usable/);
    expect(graph("team/a.b:c@1_2-3", () => null).source).toEqual({ name: "team/a.b:c@1_2-3", steps: [], output: null });
  });
});

describe("a graph that runs other workflows", () => {
  const inner = graph("inner", (g) => g.step(greet, { name: "you" }));

  it("records each of them once", () => {
    const outer = graph("outer", (g) => [g.run(inner, null), g.run(inner, null), g.run("elsewhere", { any: 1 })]);
    expect(outer.uses).toEqual([inner]);
    expect(outer.source.steps.map(({ id, workflow }) => [id, workflow])).toEqual([
      ["inner", "inner"],
      ["inner-2", "inner"],
      ["elsewhere", "elsewhere"],
    ]);
    expect(inner.uses).toBeUndefined();
  });

  it("knows no type of a workflow that it names, and takes one", () => {
    graph("typed", (g) => {
      expectTypeOf(g.run("elsewhere", null)).toEqualTypeOf<Ref<unknown>>();
      expectTypeOf(g.run<{ n: number }>("elsewhere", null).n).toEqualTypeOf<Ref<number>>();
    });
  });

  it.each([
    ["nothing", undefined, /workflow outer got undefined, expected a workflow .* Do two files import each other\?/],
    ["a task", greet, /workflow outer got the task greet, expected a workflow: use g.step\(\)/],
    ["anything else", { name: "inner" }, /workflow outer got {"name":"inner"}, expected a workflow or the name of one/],
  ])("refuses %s in the place of a workflow", (_, child, message) => {
    expect(() => graph("outer", (g) => g.run(child as never, null))).toThrow(message);
  });
});

describe("a map", () => {
  const resize = task("resize", ({ image, width }: { image: string; width: number }) => `${image}-${width}.png`, { retry: { limit: 2 } });

  it("is one step over a list, with the settings of its tasks", () => {
    const made = graph("thumbnails", (g, input: Ref<{ names: string[]; images: { image: string; width: number }[] }>) => {
      const files = g.map(input.images, resize, { concurrency: 4, timeout: "1m", totalTimeout: "1h", labels: ["gpu"] });
      expectTypeOf(files).toEqualTypeOf<Ref<string[]>>();
      g.map([{ name: "a" }, { name: input.names[0] as Ref<string> }], greet, { id: "fixed", after: [files] });
      return files;
    });
    expect(made.source.steps).toEqual([
      {
        ...{ id: "resize", map: { task: "resize", concurrency: 4 }, input: { $ref: { path: ["images"] } } },
        ...{ retry: { failures: 2 }, timeoutMs: 60_000, totalMs: 3_600_000, labels: ["gpu"] },
      },
      {
        ...{ id: "fixed", map: { task: "greet" }, after: ["resize"] },
        input: [{ name: "a" }, { name: { $ref: { path: ["names", 0] } } }],
      },
    ]);
  });

  it("makes inputs from items, places and other results, with their types", () => {
    const made = graph("thumbnails", (g, input: Ref<{ names: string[]; width: number }>) => {
      const first = g.step(greet, { name: "you" });
      g.map(input.names, resize, {
        input: (name, index) => {
          expectTypeOf(name).toEqualTypeOf<Ref<string>>();
          expectTypeOf(index).toEqualTypeOf<Ref<number>>();
          return { image: name, width: input.width };
        },
      });
      g.map(first.words, greet, { id: "words", input: (word) => ({ name: word }) });
    });
    expect(made.source.steps.map(({ map }) => map)).toEqual([
      undefined,
      { task: "resize", each: { image: { $ref: { item: "value", path: [] } }, width: { $ref: { path: ["width"] } } } },
      { task: "greet", each: { name: { $ref: { item: "value", path: [] } } } },
    ]);
    const plan = codeDialect.compile(JSON.stringify(made.source));
    expect(plan.nodes.map(({ after }) => after)).toEqual([[], [], [0]]);
  });

  it("is refused where its items do not fit the task", () => {
    graph("mistakes", (g, input: Ref<{ names: string[]; name: string }>) => {
      // @ts-expect-error: the items are texts.
      g.map(input.names, resize);
      // @ts-expect-error: not a list.
      g.map(input.name, check);
      // @ts-expect-error: the width is missing.
      g.map(input.names, resize, { id: "third", input: (name) => ({ image: name }) });
      expect(() => g.map(input.names, check, { concurrency: 0 })).toThrow(/concurrency of a map in workflow mistakes is 0/);
      g.map(input.names, check, { id: "kept", input: (name) => name });
    });
  });

  it("does not lend its item to other steps", () => {
    const leak = graph("leak", (g, input: Ref<{ names: string[] }>) => {
      let kept: unknown;
      g.map(input.names, check, {
        input: (name) => {
          kept = name;
          return name;
        },
      });
      g.step(check, kept as Ref<string>, { id: "outside" });
    });
    expect(() => codeDialect.compile(JSON.stringify(leak.source))).toThrow(
      "Step outside of workflow leak refers to an item of a list outside of the input of a map.",
    );
  });
});

describe("a pause", () => {
  it("is a step of its own, of a length or until a time that is known now or when it starts", () => {
    const made = graph("pauses", (g, input: Ref<{ wait: "5m"; at: string }>) => {
      const first = g.sleep("30m");
      const second = g.sleep({ until: new Date(5_000) }, { after: [first] });
      g.sleep({ until: "2030-01-31T09:00" }, { id: "named", when: true });
      g.sleep(input.wait);
      g.sleep({ until: input.at });
      g.step(shout, { text: "up" }, { after: [second] });
    });
    expect(made.source.steps).toEqual([
      { id: "sleep", sleep: { for: 1_800_000 }, input: null },
      { id: "sleep-2", sleep: { until: 5_000 }, input: null, after: ["sleep"] },
      { id: "named", sleep: { until: Date.UTC(2030, 0, 31, 9) }, input: null, when: true },
      { id: "sleep-3", sleep: { for: { $ref: { path: ["wait"] } } }, input: null },
      { id: "sleep-4", sleep: { until: { $ref: { path: ["at"] } } }, input: null },
      { id: "shout", task: "shout", input: { text: "up" }, after: ["sleep-2"] },
    ]);
  });

  it("without an end is refused", () => {
    expect(() => graph("pauses", (g) => void g.sleep("soon" as never))).toThrow(/sleep of workflow pauses is "soon"/);
    expect(() => graph("pauses", (g) => void g.sleep({ until: "tomorrow" }))).toThrow(
      /workflow pauses has until "tomorrow", expected a Date/,
    );
    expect(() => graph("pauses", (g) => void g.sleep({ until: new Date(Number.NaN) }))).toThrow(/expected a Date/);
    // @ts-expect-error: the type of the reference is no time.
    graph("pauses", (g, input: Ref<{ wait: boolean }>) => void g.sleep(input.wait));
  });
});

describe("a wait for a signal", () => {
  it("is a step whose result is the value of the signal", () => {
    const made = graph("waits", (g, input: Ref<{ who: string }>) => {
      const approved = g.signal<{ ok: boolean }>("approve", { timeout: "2d" });
      g.signal("approve", { after: [approved] });
      g.signal(input.who, { id: "named", when: approved.ok });
      return approved.ok;
    });
    expect(made.source).toMatchObject({
      output: { $ref: { step: "approve", path: ["ok"] } },
      steps: [
        { id: "approve", signal: "approve", input: null, totalMs: 172_800_000 },
        { id: "approve-2", signal: "approve", input: null, after: ["approve"] },
        { id: "named", signal: { $ref: { path: ["who"] } }, input: null, when: { $ref: { step: "approve", path: ["ok"] } } },
      ],
    });
  });

  it("without a usable name is refused", () => {
    expect(() => graph("waits", (g) => void g.signal(""))).toThrow(/g\.signal\(\) in workflow waits got ""/);
    const long = graph("waits", (g) => void g.signal("x".repeat(201), { id: "long" }));
    expect(() => codeDialect.compile(JSON.stringify(long.source))).toThrow("expected a name of 1 to 200 characters");
  });

  it("ends by a signal that was sent before or is sent later, and fails after its time", async () => {
    const world = await openRunWorld({ dialects: [codeDialect] });
    const made = graph("waits", (g) => {
      const early = g.signal("early");
      return { early, late: g.signal("late", { after: [early], timeout: "1m" }) };
    });
    await world.runs.define({ name: "waits", dialect: "code", source: JSON.stringify(made.source) });
    const start = async () => {
      const { run } = await world.runs.start({ workflow: "waits", input: "null" });
      await world.store.runs.signals.send(run.id, { name: "early", value: "1" });
      return run.id;
    };
    const [first, second] = [await start(), await start()];
    await world.store.runs.signals.send(first, { name: "late", value: '"two"' });
    await world.clock.advance(60_000);
    await world.settle();
    expect(await world.runs.run(first)).toMatchObject({ state: "succeeded", output: '{"early":1,"late":"two"}' });
    expect(await world.runs.run(second)).toMatchObject({ state: "failed", error: expect.stringContaining("step late") });
  });
});

describe("a graph with a schema of its input", () => {
  const schema = z.object({ name: z.string(), times: z.number().default(1) });

  it("has the type of what a caller sends, and stores the JSON Schema", () => {
    const made = graph("greeting", (g, input) => g.step(greet, { name: input.name }), { input: schema });
    expectTypeOf(made).toEqualTypeOf<GraphWorkflow<{ name: string; times?: number | undefined }, { text: string; words: string[] }>>();
    expect(made.input).toBe(schema);
    expect(made.source.inputSchema).toMatchObject({ type: "object", properties: { name: { type: "string" } }, required: ["name"] });
    // @ts-expect-error: the schema has no such field.
    graph("greeting", (g, input) => g.step(greet, { name: input.nmae }), { input: schema });
  });

  it("stores nothing for a schema whose library offers no JSON Schema", () => {
    const own = { "~standard": { version: 1 as const, vendor: "own", validate: (value: unknown) => ({ value: value as string }) } };
    expect(graph("plain", () => null, { input: own }).source).not.toHaveProperty("inputSchema");
  });
});

describe("an async builder", () => {
  it("is refused with the name of the workflow and the way out", async () => {
    const define = () => graph("order", async (g) => g.step(greet, { name: "you" }));
    expect(define).toThrow(/builder of workflow order is async: .* use workflow\("order", async \(w, input\) => \.\.\.\)/);
    expect(define).toThrow(LongshoreError);
  });

  it("that rejects does so silently, because its caller has the error", async () => {
    const rejections: unknown[] = [];
    const hear = (reason: unknown) => rejections.push(reason);
    process.on("unhandledRejection", hear);
    expect(() => graph("order", async () => Promise.reject(new Error("late")))).toThrow(/is async/);
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", hear);
    expect(rejections).toEqual([]);
  });
});
