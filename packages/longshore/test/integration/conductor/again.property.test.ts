// Any definition that is run again runs the correct steps, each once and in order. After a rerun from any task, it runs that task and the
// tasks that follow it. After a retry, it runs the tasks that did not succeed and those that follow them.

import fc from "fast-check";
import { expect, it } from "vitest";
import { type ConductorServer, startConductor } from "../../support/conductor-rest.ts";
import { operator, simple, switchOn } from "../../support/conductor-world.ts";

type Shape =
  | { kind: "simple" }
  | { kind: "set" }
  | { kind: "switch"; on: "a" | "z"; a: Shape[]; otherwise: Shape[] }
  | { kind: "fork"; branches: Shape[][] };

const { list } = fc.letrec<{ shape: Shape; list: Shape[] }>((tie) => ({
  shape: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 5, arbitrary: fc.constant<Shape>({ kind: "simple" }) },
    { weight: 1, arbitrary: fc.constant<Shape>({ kind: "set" }) },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("switch" as const),
        on: fc.constantFrom("a" as const, "z" as const),
        a: tie("list"),
        otherwise: tie("list"),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("fork" as const), branches: fc.array(tie("list"), { minLength: 1, maxLength: 3 }) }),
    },
  ),
  list: fc.array(tie("shape"), { maxLength: 3 }),
}));

/** A step with its reference, and the lists of steps inside it that run. */
interface Step {
  readonly ref: string;
  readonly works: boolean;
  readonly inside: readonly Step[][];
}

class Writer {
  #count = 0;

  list(shapes: readonly Shape[]): { tasks: object[]; steps: Step[] } {
    const written = shapes.map((shape) => this.#shape(shape, `${shape.kind}${this.#count++}`));
    return { tasks: written.flatMap(({ tasks }) => tasks), steps: written.flatMap(({ steps }) => steps) };
  }

  #shape(shape: Shape, ref: string): { tasks: object[]; steps: Step[] } {
    if (shape.kind === "simple") return { tasks: [simple("work", { taskReferenceName: ref })], steps: [{ ref, works: true, inside: [] }] };
    if (shape.kind === "set")
      return { tasks: [operator("SET_VARIABLE", ref, { inputParameters: { x: 1 } })], steps: [{ ref, works: false, inside: [] }] };
    if (shape.kind === "switch") {
      const [a, otherwise] = [this.list(shape.a), this.list(shape.otherwise)];
      const taken = shape.on === "a" ? a : otherwise;
      return { tasks: [switchOn(ref, { a: a.tasks }, otherwise.tasks, shape.on)], steps: [{ ref, works: false, inside: [taken.steps] }] };
    }
    const branches = shape.branches.map((branch) => this.list(branch));
    // A JOIN waits only for the tasks that it names, also when one of them is a SWITCH.
    const join = operator("JOIN", `${ref}_join`, { joinOn: branches.flatMap(({ steps }) => refsIn(steps)) });
    return {
      tasks: [operator("FORK_JOIN", ref, { forkTasks: branches.map(({ tasks }) => tasks) }), join],
      steps: [
        { ref, works: false, inside: branches.map(({ steps }) => steps) },
        { ref: `${ref}_join`, works: false, inside: [] },
      ],
    };
  }
}

function refsIn(steps: readonly Step[]): string[] {
  return steps.flatMap(({ ref, inside }) => [ref, ...inside.flatMap(refsIn)]);
}

function workIn(steps: readonly Step[]): string[] {
  return steps.flatMap(({ ref, works, inside }) => [...(works ? [ref] : []), ...inside.flatMap(workIn)]);
}

/** The work of a step and of the steps that follow it. Undefined when the step is not in the list. */
function workFrom(steps: readonly Step[], ref: string): string[] | undefined {
  for (const [at, step] of steps.entries()) {
    const within =
      step.ref === ref ? workIn([step]) : step.inside.map((branch) => workFrom(branch, ref)).find((found) => found !== undefined);
    if (within !== undefined) return [...within, ...workIn(steps.slice(at + 1))];
  }
  return undefined;
}

/** For each piece of work, the work that must be done before it. */
function waitsFor(steps: readonly Step[], before: readonly string[] = [], known = new Map<string, readonly string[]>()) {
  const done = [...before];
  for (const step of steps) {
    if (step.works) known.set(step.ref, [...done]);
    for (const branch of step.inside) waitsFor(branch, done, known);
    done.push(...workIn([step]));
  }
  return known;
}

/** Claims all open tasks and then reports on them, until there is none. Fails when a task comes too early or twice. */
async function workOff(c: ConductorServer, steps: readonly Step[], expected: readonly string[], failing?: string): Promise<string[]> {
  const order = waitsFor(steps);
  const done: string[] = [];
  for (let rounds = 0; rounds < 100; rounds++) {
    await c.settle();
    const tasks = await c.pollMany("work", 50);
    if (tasks.length === 0) return done;
    for (const { referenceTaskName: ref } of tasks) {
      const missing = (order.get(ref) ?? []).filter((earlier) => expected.includes(earlier) && !done.includes(earlier));
      expect({ ref, missing, again: done.includes(ref) }).toEqual({ ref, missing: [], again: false });
    }
    for (const task of tasks) {
      const fails = task.referenceTaskName === failing;
      const { status } = await c.send("POST", "/tasks", c.resultOf(task, fails ? { status: "FAILED_WITH_TERMINAL_ERROR" } : {}));
      expect(status).toBe(200);
      if (fails) return done;
      done.push(task.referenceTaskName);
    }
  }
  throw new Error("The run does not come to its end.");
}

const numRuns = Number(process.env.LONGSHORE_AGAIN_RUNS ?? 60);

it("a rerun from any task runs that task and the tasks that follow it, each once and in order", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "work", retryCount: 0 });
  await fc.assert(
    fc.asyncProperty(list, fc.nat(), fc.boolean(), async (shapes, pick, twice) => {
      const { tasks, steps } = new Writer().list([{ kind: "simple" }, ...shapes]);
      const id = await c.begin(tasks);
      expect((await workOff(c, steps, workIn(steps))).sort()).toEqual(workIn(steps).sort());
      for (let times = 0; times < (twice ? 2 : 1); times++) {
        const latest = [...new Map((await c.run(id)).tasks.map((task) => [task.referenceTaskName, task])).values()];
        const from = latest[(pick + times) % latest.length];
        const expected = workFrom(steps, from?.referenceTaskName ?? "") ?? [];
        await c.ask("POST", `/workflow/${id}/rerun`, { reRunFromTaskId: from?.taskId });
        expect((await workOff(c, steps, expected)).sort()).toEqual([...expected].sort());
        expect(await c.status(id)).toBe("COMPLETED");
      }
    }),
    { numRuns },
  );
}, 600_000);

it("a retry runs the tasks that did not succeed and those that follow them, each once", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "work", retryCount: 0 });
  await fc.assert(
    fc.asyncProperty(list, fc.nat(), async (shapes, pick) => {
      const { tasks, steps } = new Writer().list([{ kind: "simple" }, ...shapes]);
      const work = workIn(steps);
      const id = await c.begin(tasks);
      const done = await workOff(c, steps, work, work[pick % work.length]);
      await c.settle();
      expect(await c.status(id)).toBe("FAILED");
      await c.ask("POST", `/workflow/${id}/retry`);
      const left = work.filter((ref) => !done.includes(ref));
      expect((await workOff(c, steps, left)).sort()).toEqual(left.sort());
      expect(await c.status(id)).toBe("COMPLETED");
    }),
    { numRuns },
  );
}, 600_000);
