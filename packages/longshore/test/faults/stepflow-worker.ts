// A worker of Stepflow's queues that records everything. It misbehaves like the other one: it reports on tasks that it has lost, sends
// heartbeats too late, leaves its streams and repeats reports. It handles tasks from all sources in the same way: it claims with its first
// heartbeat, or does not claim at all.
import { basename, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { idOfUuid } from "../../src/core/ids.ts";
import type { JsonObject } from "../../src/core/json/json.ts";
import { type GrpcChannel, openChannel } from "../../src/net/grpc/client.ts";
import { GrpcCode, GrpcError } from "../../src/net/grpc/status.ts";
import { type TaskAssignment, TaskErrorCode } from "../../src/protocols/stepflow/wire/messages.ts";
import { OrchestratorService } from "../../src/protocols/stepflow/wire/services.ts";
import { type Claim, type HistoryWriter, openHistory, type ReportVerb } from "./history.ts";
import { type Random, seededRandom } from "./random.ts";
import type { WorkerSettings } from "./raw-worker.ts";
import { natsTasks, streamedTasks, type TaskSource } from "./stepflow-sources.ts";
import { OFFER_SECS, STEPFLOW_TERM_MS } from "./stepflow-wire.ts";

export interface StepflowWorkerSettings extends WorkerSettings {
  /** Tasks are fetched from this server of NATS; without it they come over a stream of the orchestrator. */
  nats?: string;
  /** Further orchestrators whose tasks come through the same server of NATS, and the folders that their histories are written to. */
  others?: { url: string; directory: string }[];
}

/** An orchestrator and the history of its tasks. Each orchestrator is checked with its own history. */
interface Home {
  address: string;
  channel: GrpcChannel;
  history: HistoryWriter;
}

/** The short pause of a worker when the server is down, because these tests have little time. */
const IDLE_MS = 25;
/** How long a report is sent again while there is no answer: longer than any restart of the server. */
const REPORT_PATIENCE_MS = 20_000;
/** Longer than any answer of a healthy server: a call through a silent link must end. */
const ANSWER_MS_MAX = 10_000;
const BEAT_MS = 1_000;
/** The share of tasks that are worked on without being claimed, as the protocol allows. */
const UNCLAIMED_RATE = 0.1;

export async function runStepflowWorker(settings: StepflowWorkerSettings, signal: AbortSignal): Promise<void> {
  const homes = openHomes(settings);
  const [own] = homes as [Home, ...Home[]];
  const writeToAll: HistoryWriter["write"] = (happening) => {
    for (const { history } of homes) history.write(happening);
  };
  const random = seededRandom(settings.seed);
  // Calls that wait for a server that is down do not keep the process alive.
  const alive = setInterval(() => undefined, ANSWER_MS_MAX);
  let claims = 0;
  const slot = async (): Promise<void> => {
    while (!signal.aborted) {
      const claim = claims++;
      // The owner of the task is known only when the task arrives.
      writeToAll({ kind: "claim-sent", claim });
      // Some take one task and leave the stream, which may have the next one by then.
      const leaves = random.chance(0.3) ? new AbortController() : undefined;
      const source: TaskSource = { channel: own.channel, workerId: settings.name, nats: settings.nats, signal: leaves?.signal ?? signal };
      try {
        for await (const assignment of settings.nats === undefined ? streamedTasks(source) : natsTasks(source)) {
          // Over a network that fails, the worker reaches its own orchestrator at another address than the one it reports.
          const home = homes.find(({ address }) => address === assignment.context?.orchestratorServiceUrl) ?? own;
          await new Errand({ ...home, random, settings, claim, assignment }).run();
          leaves?.abort();
          if (signal.aborted || leaves) break;
        }
      } catch (error) {
        writeToAll({ kind: "claim-unanswered", claim, why: String(error) });
      }
      await pause(IDLE_MS);
    }
  };
  await Promise.all(Array.from({ length: settings.slots }, slot));
  clearInterval(alive);
  for (const { channel, history } of homes) {
    await channel.close();
    history.close();
  }
}

function openHomes({ url, history, others = [] }: StepflowWorkerSettings): Home[] {
  const open = (at: string, file: string): Home => {
    const address = new URL(at).host;
    return { address, channel: openChannel(address), history: openHistory(file) };
  };
  return [open(url, history), ...others.map((other) => open(other.url, join(other.directory, basename(history))))];
}

interface ErrandParts {
  channel: GrpcChannel;
  history: HistoryWriter;
  random: Random;
  settings: StepflowWorkerSettings;
  claim: number;
  assignment: TaskAssignment;
}

/** One task, from its assignment to its report. */
class Errand {
  readonly #parts: ErrandParts;
  readonly #taskId: string;
  readonly #runId: string | undefined;
  #beats = 0;

  constructor(parts: ErrandParts) {
    this.#parts = parts;
    this.#taskId = parts.assignment.taskId;
    this.#runId = parts.assignment.execute?.observability?.runId;
  }

  async run(): Promise<void> {
    const { history, random, settings, claim, assignment } = this.#parts;
    if (assignment.execute === undefined) return this.#listComponents();
    history.write({ kind: "claim-got", claim, ...offerIn(assignment), stored: settings.nats !== undefined });
    // A refused task now belongs to another worker. Sometimes this worker still reports on it.
    const isOurs = random.chance(UNCLAIMED_RATE) || (await this.#beat());
    if (!isOurs && !random.chance(UNCLAIMED_RATE)) return;
    const dozes = random.chance(settings.dozeRate);
    const [least, most] = settings.workMs;
    const workMs = random.between(least, most) + (dozes ? STEPFLOW_TERM_MS : 0);
    const verb: ReportVerb = random.chance(settings.failRate) ? "fail" : "complete";
    history.write({ kind: "handler-started", leaseId: this.#taskId });
    const over = new AbortController();
    const beating = dozes ? undefined : this.#beatUntil(over.signal);
    await pause(workMs);
    await this.#tell(verb);
    over.abort();
    await beating;
  }

  async #beatUntil(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await pause(BEAT_MS, undefined, { signal: over }).catch(ignoreAbort);
      if (!over.aborted) await this.#beat();
    }
  }

  /** Whether it was accepted. A missing response changes nothing. */
  async #beat(): Promise<boolean> {
    const { channel, history, settings } = this.#parts;
    const beat = this.#beats++;
    const request = { taskId: this.#taskId, workerId: settings.name, ...this.#whose() };
    history.write({ kind: "heartbeat-sent", leaseId: this.#taskId, beat });
    const status = await answered(async () => {
      const { status: taken, shouldAbort } = await channel.unary(OrchestratorService.TaskHeartbeat, request, { timeoutMs: ANSWER_MS_MAX });
      return taken === IN_PROGRESS ? { status: 200, cancelled: shouldAbort } : { status: 409 };
    }).catch(() => undefined);
    if (status !== undefined) history.write({ kind: "heartbeat-got", leaseId: this.#taskId, beat, ...status });
    return status?.status === 200;
  }

  async #tell(verb: ReportVerb): Promise<void> {
    const { random, settings } = this.#parts;
    const patienceEnds = Date.now() + REPORT_PATIENCE_MS;
    while (Date.now() < patienceEnds) {
      const twice = random.chance(settings.repeatRate ?? 0);
      const told = await Promise.all(twice ? [this.#tellOnce(verb), this.#tellOnce(verb)] : [this.#tellOnce(verb)]);
      if (told.includes(true)) return;
      await pause(IDLE_MS);
    }
  }

  /** True when it was answered. */
  async #tellOnce(verb: ReportVerb): Promise<boolean> {
    const { channel, history } = this.#parts;
    const leaseId = this.#taskId;
    const token = `done by ${leaseId}`;
    const failure = { code: TaskErrorCode.COMPONENT_FAILED, message: `planned failure of ${leaseId}` };
    const result = verb === "complete" ? { response: { output: { token } } } : { error: failure };
    history.write({ kind: "report-sent", leaseId, verb, token: verb === "complete" ? token : undefined });
    try {
      const { status } = await answered(async () => {
        const request = { taskId: leaseId, ...result, ...this.#whose() };
        await channel.unary(OrchestratorService.CompleteTask, request, { timeoutMs: ANSWER_MS_MAX });
        return { status: 200 };
      });
      history.write({ kind: "report-got", leaseId, verb, status });
      return true;
    } catch (error) {
      history.write({ kind: "report-unanswered", leaseId, verb, why: String(error) });
      return false;
    }
  }

  async #listComponents(): Promise<void> {
    const listComponents = { components: [{ componentId: "work", path: "/work" }] };
    const request = { taskId: this.#taskId, listComponents };
    // The report is sent again when it did not arrive.
    await this.#parts.channel.unary(OrchestratorService.CompleteTask, request, { timeoutMs: ANSWER_MS_MAX }).catch(() => undefined);
  }

  #whose(): { runId?: string } {
    return this.#runId === undefined ? {} : { runId: this.#runId };
  }
}

/** Of TaskStatus. */
const IN_PROGRESS = 1;

/** NOT_FOUND is an answer: the task is not this worker's any more. Everything else may or may not have been carried out. */
async function answered<T extends { status: number }>(call: () => Promise<T>): Promise<T | { status: number }> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof GrpcError && error.code === GrpcCode.NOT_FOUND) return { status: 409 };
    throw error;
  }
}

/** An assignment is an offer: it becomes a hold with the first heartbeat. */
function offerIn({ taskId, execute }: TaskAssignment): Claim {
  const { attempt = 0, observability, input } = execute ?? {};
  const now = Date.now();
  const upstream = Object.entries((input ?? {}) as JsonObject).map(([step, output]) => [
    step,
    (output as { token?: string } | null)?.token,
  ]);
  return {
    leaseId: taskId,
    runId: idOfUuid(observability?.runId ?? "") ?? "",
    step: observability?.stepId ?? "",
    attempt,
    ttlMs: STEPFLOW_TERM_MS,
    grantedAt: now,
    expiresAt: now,
    upstream: Object.fromEntries(upstream) as Claim["upstream"],
    grant: Number(taskId.slice(taskId.lastIndexOf("-") + 1)),
    offerMs: OFFER_SECS * 1_000,
  };
}

/** The pause was cut short because the task is over, which the caller notices itself. */
function ignoreAbort(): void {}
