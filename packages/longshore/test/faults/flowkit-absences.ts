// One sequence of events for a graph with workers of the reference. From time to time a worker, the coordinator or the broker is down, for
// shorter and longer than an offer and a lease. Only the coordinator is real, and the test controls the clock.

import type { Bus } from "../../src/core/bus/bus.ts";
import { commandGroup } from "../../src/protocols/flowkit/wire/shapes.ts";
import { openFlowkit } from "../support/flowkit-world.ts";
import { checkGraphs, type FinalPart } from "./flowkit-checker.ts";
import { type ReferenceWorker as Model, ReferenceWorker } from "./flowkit-reference-worker.ts";
import { graphOf, type Shape } from "./flowkit-shape.ts";
import type { Entry, Happening } from "./history.ts";
import { type Random, seededRandom } from "./random.ts";
import type { Violation } from "./violation.ts";

const STEP_MS = 1_000;
/** Compared with an offer of 10 s and a lease of 20 s. */
const AWAY_STEPS = [3, 8, 15, 25, 45];
/** Three absences at most, each of 45 s and followed by an offer and a lease that end, and the work itself. */
const STEPS_MAX = 600;
/** The effects of one step are complete after this many turns of the event loop. */
const TURNS_A_STEP = 25;
const ROLES = { make: "make", cut: "cut", take: "take", join: "join" };

interface Meta {
  readonly skus: string[];
  readonly token: string;
}

type Who = "worker" | "coordinator" | "broker";
interface Absence {
  readonly who: Who;
  readonly role: string;
  readonly from: number;
  readonly steps: number;
}

export interface Story {
  readonly absences: readonly Absence[];
  readonly violations: readonly Violation[];
}

export async function playAbsences(seed: number, shape: Shape): Promise<Story> {
  const random = seededRandom(seed);
  const absences = planAbsences(random);
  const world = await openWorld({ lagSteps: random.between(0, 3), batches: shape.batches });
  const { task_id } = await world.submit(graphOf(shape, ROLES));
  for (let step = 0; step < STEPS_MAX && (await world.status(task_id)) === "running"; step++) {
    for (const absence of absences) {
      if (absence.from === step) await world.goes(absence);
      if (absence.from + absence.steps === step) await world.comesBack(absence);
    }
    await world.step();
  }
  for (const absence of absences) await world.comesBack(absence);
  return { absences, violations: checkGraphs(world.history, { shape, fenced: false, graphs: [await world.final(task_id)] }) };
}

/** One after the other, so that it is clear which one did what. */
function planAbsences(random: Random): Absence[] {
  const absences: Absence[] = [];
  let from = 0;
  for (let count = random.between(1, 3); count > 0; count--) {
    from += random.between(0, 11);
    const steps = random.pick(AWAY_STEPS) as number;
    absences.push({
      who: random.pick<Who>(["worker", "worker", "coordinator", "broker"]) as Who,
      role: random.pick(Object.values(ROLES)) as string,
      from,
      steps,
    });
    from += steps + 1;
  }
  return absences;
}

async function openWorld({ lagSteps, batches }: { lagSteps: number; batches: number }) {
  const history: Entry[] = [];
  const note = (happening: Happening): void => {
    const tick = history.length;
    history.push({ at: tick, tick, where: `story:${tick}`, ...happening } as Entry);
  };
  const workers = new Map<string, Model>();
  let broker: { back: Promise<void>; open(): void } | null = null;
  let coordinator: Promise<void> | null = null;
  let back = () => {};
  let made = 0;
  /** How many parts of a node MongoDB has, and how many it has after the next steps. */
  const mirrored = new Map<string, number[]>();
  const complete = new Set<string>();
  const claims = new Set<string>();
  const nameOf = (task: string, node: string): string => JSON.stringify([task, node]);
  const wrap = (own: Bus): Bus => ({
    name: own.name,
    publish: async (records) => {
      await broker?.back;
      return own.publish(records);
    },
    subscribe: (subscription) =>
      own.subscribe({
        ...subscription,
        handle: async (records) => {
          await broker?.back;
          return subscription.handle(records);
        },
      }),
    ensure: (topics) => own.ensure(topics),
    members: async (group) => [...workers.keys()].filter((role) => commandGroup(role) === group).length,
    close: () => own.close(),
  });
  const caughtUp = async (task: string) => {
    for (const [name] of mirrored) {
      const [of, node] = JSON.parse(name) as [string, string];
      if (of === task) mirrored.set(name, [(await world.partRows(of, node)).length]);
    }
  };
  const world = await openFlowkit({
    bus: wrap,
    config: { worker_types: Object.values(ROLES), lease_ttl_sec: 20 },
    results: {
      completed: async ({ task_id, node_id }) => (complete.has(nameOf(task_id, node_id)) ? {} : null),
      adopt: async () => {},
      release: async ({ task_id, node_id }) => {
        for (const claim of claims)
          if ((JSON.parse(claim) as string[]).slice(0, 2).join() === `${task_id},${node_id}`) claims.delete(claim);
      },
      caughtUp,
      reopen: async ({ task_id, node_id }) => void complete.delete(nameOf(task_id, node_id)),
    },
  });
  const store = {
    claims,
    complete,
    partials: async (task: string, node: string) => {
      const all = await world.partRows(task, node);
      const counts = mirrored.get(nameOf(task, node)) ?? [];
      counts.push(all.length);
      if (counts.length > lagSteps + 1) counts.shift();
      mirrored.set(nameOf(task, node), counts);
      return all.slice(0, counts[0]).map(({ uid, value }) => ({ uid, items: (JSON.parse(value) as Meta).skus }));
    },
  };
  const come = async (role: string): Promise<void> => {
    const worker = new ReferenceWorker(`w-${role}-${made++}`, role, { bus: world.bus, clock: world.clock, store, batches, note });
    workers.set(role, worker);
    await worker.start();
  };
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < TURNS_A_STEP; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  for (const role of Object.values(ROLES)) await come(role);
  return {
    history,
    submit: async (graph: unknown) => {
      const { id: task_id } = await world.submit(graph);
      note({ kind: "graph-acknowledged", task: task_id, shape: "" });
      return { task_id };
    },
    status: async (id: string) => (await world.run(id)).state,
    async step(): Promise<void> {
      if (broker === null) for (const worker of workers.values()) await worker.step();
      await settle();
      await world.clock.advance(STEP_MS);
      await settle();
    },
    async goes({ who, role }: Absence): Promise<void> {
      note({ kind: "process-killed", name: who === "worker" ? role : who });
      if (who === "worker") {
        await workers.get(role)?.kill();
        workers.delete(role);
      } else if (who === "coordinator") {
        coordinator = world.restartCoordinator(
          () =>
            new Promise((resolve) => {
              back = resolve;
            }),
        );
      } else {
        let open = () => {};
        const opened = new Promise<void>((resolve) => {
          open = resolve;
        });
        broker = { back: opened, open };
      }
    },
    async comesBack({ who, role }: Absence): Promise<void> {
      if (who === "worker" && !workers.has(role)) await come(role);
      if (who === "coordinator") back();
      if (who === "coordinator") await coordinator;
      if (who === "broker") broker?.open();
      if (who === "broker") broker = null;
    },
    async final(id: string) {
      const run = await world.run(id);
      const parts = new Map<string, FinalPart[]>();
      for (const node of ["u", "d", "e", "j"]) {
        const rows = await world.partRows(id, node);
        parts.set(
          node,
          rows.map(({ uid, sequence, grant: epoch, value }) => {
            const { skus: items, token } = JSON.parse(value) as Meta;
            return { uid, sequence, epoch, items, token };
          }),
        );
      }
      const sum = parts.get("d")?.reduce((count, { items }) => count + items.length, 0);
      return { id, status: run.state === "succeeded" ? "finished" : run.state, parts, sum };
    },
  };
}
