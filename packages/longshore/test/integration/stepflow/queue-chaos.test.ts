// Workers with all kinds of faults on one queue, with a seeded scheduler. They claim late or never, disappear with their streams, report
// twice, fail, become silent, and report on tasks that they have lost. In all cases, each task ends once, with the result of the worker
// whose report was accepted.

import { describe, expect, it } from "vitest";
import { GrpcCode, type GrpcError } from "../../../src/net/grpc/status.ts";
import type { TaskAssignment } from "../../../src/protocols/stepflow/wire/messages.ts";
import { type Random, seededRandom } from "../../faults/random.ts";
import { type PullingWorker, queueWorld } from "../../support/stepflow-queue.ts";

const tasks = 30;
const seeds = [1, 2, 3, 4, 5, 6, 7, 8];
/** Rounds of the scheduler, each with a step of time. Far more than needed. */
const roundsMax = 3_000;
/** Faults of tasks are temporary here, so all tasks can succeed. */
const policy = JSON.stringify({ failures: 1_000, lost: 1_000, backoff: { kind: "fixed", delayMs: 0 } });

interface Holding {
  readonly taskId: string;
  readonly workerId: string;
  claimed: boolean;
}

class Pool {
  readonly world: Awaited<ReturnType<typeof queueWorld>>;
  readonly random: Random;
  readonly workers: PullingWorker[] = [];
  /** The tasks that workers believe to hold. */
  holdings: Holding[] = [];
  /** Results that were accepted, by task. */
  readonly accepted = new Map<string, string[]>();
  #named = 0;

  constructor(world: Pool["world"], random: Random) {
    this.world = world;
    this.random = random;
  }

  async round(): Promise<void> {
    const { random } = this;
    if (this.workers.length < 3) await this.join();
    for (const worker of this.workers) for (const assignment of worker.received.splice(0)) this.receive(worker, assignment);
    for (const holding of [...this.holdings]) await this.act(holding);
    if (random.chance(0.05)) await this.lose();
    await this.world.clock.advance(random.pick([0, 1, 50, 400, 1_100, 5_000]) as number);
  }

  async join(): Promise<void> {
    const worker = this.world.pull("python", `w${++this.#named}`);
    this.workers.push(worker);
    if (this.random.chance(0.7)) await worker.register({ componentId: "echo" });
  }

  /** A worker disappears with its stream. Its tasks are never reported, or are reported later by a worker that has stored them. */
  async lose(): Promise<void> {
    const [worker] = this.workers.splice(this.random.between(0, this.workers.length - 1), 1);
    await worker?.vanish();
    if (this.random.chance(0.7)) this.holdings = this.holdings.filter(({ workerId }) => workerId !== worker?.workerId);
  }

  receive(worker: PullingWorker, { taskId, execute }: TaskAssignment): void {
    if (execute === undefined || this.random.chance(0.15)) return;
    this.holdings.push({ taskId, workerId: worker.workerId, claimed: false });
  }

  async act(holding: Holding): Promise<void> {
    const drawn = this.random.next();
    if (drawn < 0.3) return;
    if (drawn < 0.6 || (!holding.claimed && drawn < 0.9)) return this.beat(holding);
    if (drawn < 0.65) return this.drop(holding);
    if (drawn < 0.72) return this.report(holding, { error: { code: this.random.pick([1, 3, 5, 7]) as number, message: "no" } });
    await this.report(holding, { response: { output: `${holding.taskId} ${holding.workerId}` } });
    // Some workers get no response and repeat the report.
    if (this.random.chance(0.2)) await this.report(holding, { response: { output: `${holding.taskId} ${holding.workerId}` } });
  }

  async beat(holding: Holding): Promise<void> {
    const answer = await this.world.heartbeat(holding.taskId, holding.workerId).catch(notFound);
    if (answer === "not-found" || answer.shouldAbort) return this.drop(holding);
    holding.claimed = true;
  }

  async report(holding: Holding, outcome: object): Promise<void> {
    this.drop(holding);
    const answer = await this.world.complete({ taskId: holding.taskId, ...outcome }).catch(notFound);
    if (answer === "not-found" || !("response" in outcome)) return;
    const id = holding.taskId.slice(0, holding.taskId.lastIndexOf("-"));
    this.accepted.set(id, [...(this.accepted.get(id) ?? []), `${holding.taskId} ${holding.workerId}`]);
  }

  drop(holding: Holding): void {
    this.holdings = this.holdings.filter((other) => other !== holding);
  }
}

function notFound(error: GrpcError): "not-found" {
  expect(error.code).toBe(GrpcCode.NOT_FOUND);
  return "not-found";
}

describe("workers with all kinds of faults", () => {
  it.each(seeds)("end each task once, with seed %i", async (seed) => {
    const world = await queueWorld();
    const pool = new Pool(world, seededRandom(seed));
    const ids = Array.from({ length: tasks }, (_, at) => `t${at}`);
    for (const id of ids) await world.post(id, { policy });
    const open = async () => (await Promise.all(ids.map((id) => world.task(id)))).filter(({ state }) => state !== "done");
    for (let round = 0; (await open()).length > 0; round++) {
      if (round === roundsMax) expect(await open()).toEqual([]);
      await pool.round();
    }
    for (const id of ids) {
      const { output, closedGrant } = await world.task(id);
      const [first, ...again] = pool.accepted.get(id) ?? [];
      expect(JSON.parse(output ?? "")).toBe(first);
      expect(first).toMatch(new RegExp(`^${id}-${closedGrant} `));
      // A repeated report gets the same response, but never for another hand-out.
      for (const repeat of again) expect(repeat).toBe(first);
    }
    expect(world.queues.unclaimed.size).toBeLessThanOrEqual(pool.workers.length);
  });
});
