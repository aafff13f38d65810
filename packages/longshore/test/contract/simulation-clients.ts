// The clients in a simulation: workers and operators that call the server, rely on its answers, and report them to the model.

import { isOpen, type TaskRow } from "../../src/engine/board/task.ts";
import { isRunOpen, type Run } from "../../src/engine/run/run.ts";
import type { Order } from "../../src/engine/run/store.ts";
import type { Random } from "../faults/random.ts";
import { DebouncedStarts } from "./simulation-debounce.ts";
import { keyTaken, limitReached, StartKeys } from "./simulation-keys.ts";
import { BrokenPromise, broken, type KnownHold, type Model, runOf, type Verb } from "./simulation-model.ts";
import { SimulatedNode } from "./simulation-node.ts";
import type { Machine, Process } from "./simulation-process.ts";
import { isTied, label, lanes, makeTask, termMs, type Workflow } from "./simulation-story.ts";
import { turns } from "./world.ts";

/** How many of all calls do this, if they can. Messages seldom wait, and not for long. */
const overtakesNews = 0.2;

export interface Outcome {
  steps: number;
  crashes: number;
  refusals: number;
  takeovers: number;
  runs: number;
  completions: number;
}

/** The state that the clients share with the scheduler. */
export interface Stage {
  readonly random: Random;
  readonly machine: Machine;
  readonly model: Model;
  readonly workflows: readonly Workflow[];
  readonly outcome: Outcome;
  /** The life of the server that calls go to. */
  process(): Process;
  tracing(): boolean;
  say(what: string): void;
  /** Reports a promise that was broken outside of any pending call. */
  failed(error: unknown): void;
}

/** The outcome of a call: an answer, the certainty that nothing was done, or neither. */
type Answer<T> = { value: T; from: Process } | "refused" | "unknown";

interface Sent {
  hold: KnownHold;
  verb: Verb;
}

export class Clients {
  readonly #stage: Stage;
  readonly #keys = new StartKeys();
  /** The holds that the workers believe to have, and the reports that they have sent. */
  #holds: KnownHold[] = [];
  readonly #sent: Sent[] = [];
  #waiting: AbortController[] = [];
  #calls = 0;
  readonly #node: SimulatedNode;
  readonly debounced: DebouncedStarts;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.#node = new SimulatedNode(stage.machine);
    this.debounced = new DebouncedStarts({ random: stage.random, ask: (what, request) => this.#ask(what, request) });
  }

  /** One random action of the clients. */
  call(): Promise<void> {
    if (this.#stage.machine.wire && this.#stage.random.chance(0.15)) return this.#reportWhileRenewing();
    if (this.#stage.machine.wire && this.#stage.random.chance(0.1)) return this.#claimThroughNode();
    if (this.#stage.random.chance(0.08)) return this.#startDebounced();
    if (this.#stage.machine.overtakes && this.#stage.random.chance(overtakesNews)) return this.#overtakeNews();
    const drawn = this.#stage.random.next();
    if (drawn < 0.05) return this.start();
    if (drawn < 0.07) return this.#post();
    if (drawn < 0.3) return this.#claim();
    if (drawn < 0.36) return this.#claimAndWait();
    if (drawn < 0.4) return this.#offer();
    if (drawn < 0.48) return this.#extend();
    if (drawn < 0.82) return this.#report();
    if (drawn < 0.88) return this.#repeat();
    if (drawn < 0.91) return this.#vanish();
    if (drawn < 0.93) return this.#cancelRun();
    if (drawn < 0.95) return this.#cancelTask();
    return this.#retry();
  }

  async start(): Promise<void> {
    // Often, so that runs wait for each other.
    const isLimited = this.#stage.random.chance(0.3);
    const name = isLimited ? "limited" : (this.#stage.random.pick(this.#stage.workflows) as Workflow).name;
    const key = this.#stage.random.chance(0.3) ? `${name}-${this.#stage.random.between(0, 2)}` : undefined;
    const input = JSON.stringify({ go: this.#stage.random.chance(0.5) });
    const delayMs = this.#stage.random.chance(0.2) ? this.#stage.random.between(1, 5_000) : 0;
    const answer = await this.#ask(`start ${name} ${key ?? ""} after ${delayMs} ms`, (process) =>
      process.runs.start({ workflow: name, input, key, delayMs }).catch(keyTaken),
    );
    if (typeof answer === "string") return;
    if ("taken" in answer.value) return this.#keys.refused(key, answer.value.taken, input);
    const { run, created } = answer.value;
    this.#stage.model.started(run.id);
    if (created) this.#stage.outcome.runs++;
    if (!answer.value.skipped) this.#keys.accepted(key, run.id, input);
  }

  async #startDebounced(): Promise<void> {
    const started = await this.debounced.send();
    if (started === undefined) return;
    this.#stage.model.started(started.run.id);
    if (started.created) this.#stage.outcome.runs++;
  }

  async #post(): Promise<void> {
    const task = makeTask(this.#stage.random, this.#stage.machine.makeId(this.#stage.machine.clock.now()));
    const answer = await this.#ask(`post ${task.id}`, (process) => process.board.post([task]).then(() => true));
    if (typeof answer !== "string") this.#stage.model.posted(task.id);
  }

  #reach(): { names: string[]; labels: string[] } {
    const names = lanes.filter(() => this.#stage.random.chance(0.7));
    return { names: names.length === 0 ? [...lanes] : names, labels: this.#stage.random.chance(0.6) ? [label] : [] };
  }

  #holder(): string {
    return `worker-${this.#stage.random.between(1, 3)}`;
  }

  async #claim(): Promise<void> {
    const claim = { reach: this.#reach(), holder: this.#holder(), termMs, max: this.#stage.random.between(1, 2) };
    const answer = await this.#ask("claim", (process) => process.board.claim(claim));
    if (typeof answer !== "string") this.#take(answer.value, answer.from);
  }

  /** The worker is connected to another node than the owner. */
  async #claimThroughNode(): Promise<void> {
    const claim = { reach: this.#reach(), holder: this.#holder(), termMs, max: this.#stage.random.between(1, 2) };
    const answer = await this.#ask("claim through a node", (process) => this.#node.claim(process, claim));
    if (typeof answer !== "string") this.#take(answer.value, answer.from);
  }

  #take(tasks: readonly TaskRow[], { isDeposed }: Process): void {
    for (const task of tasks) {
      const hold = this.#stage.model.handedOut(task);
      // The next owner has given it another full term.
      hold.stretched ||= isDeposed;
      this.#holds.push(hold);
    }
  }

  /** The result is not awaited. At any time at which it is answered in this life of the server, the worker has the task. */
  async #claimAndWait(): Promise<void> {
    const process = this.#stage.process();
    const gone = new AbortController();
    this.#waiting.push(gone);
    const offer = { reach: this.#reach(), termMs, waitMs: this.#stage.random.between(1, 5_000), signal: gone.signal };
    const verb = this.#stage.random.chance(0.5) ? "claim" : "offer";
    this.#stage.say(`${verb} and wait ${offer.waitMs} ms`);
    const waiting = verb === "offer" ? process.board.offer(offer) : process.board.claim({ ...offer, holder: this.#holder() });
    waiting
      .then((tasks) => {
        if (!process.alive) return;
        this.#stage.say(`  a waiting ${verb} got ${tasks.map((task) => `${task.id} grant ${task.grant}`).join(", ") || "nothing"}`);
        this.#take(tasks, process);
      })
      .catch((error: unknown) => {
        if (process.alive && (error as { code?: string }).code !== "LONGSHORE_STORE_UNAVAILABLE") this.#stage.failed(error);
      });
    // Some clients disconnect.
    if (this.#stage.random.chance(0.2)) gone.abort();
  }

  async #offer(): Promise<void> {
    const answer = await this.#ask("offer", (process) => process.board.offer({ reach: this.#reach(), termMs }));
    if (typeof answer !== "string") this.#take(answer.value, answer.from);
  }

  async #extend(): Promise<void> {
    const hold = this.#stage.random.pick(this.#holds);
    if (hold === undefined) return;
    await this.#renew(hold, this.#stage.random.chance(0.3) ? { output: '"so far"' } : {});
  }

  async #renew(hold: KnownHold, progress: { output?: string }): Promise<void> {
    // A worker that accepts an offer sends its name, and keeps this name also when it gets no answer.
    hold.holder ??= this.#holder();
    const options = { ...progress, holder: hold.holder };
    const sentAt = this.#stage.machine.clock.now();
    const answer = await this.#ask(`extend ${hold.taskId} grant ${hold.grant}`, (process) => process.board.extend(proof(hold), options));
    if (answer === "unknown") this.#stage.model.maybeExtended(hold, sentAt);
    if (typeof answer === "string") return;
    this.#stage.model.extended(hold, answer.value.verdict, answer.value.holdUntil, this.#stage.machine.clock.now());
    hold.stretched ||= answer.from.isDeposed;
    if (answer.value.verdict !== "ok") this.#drop(hold);
  }

  async #report(): Promise<void> {
    const hold = this.#stage.random.pick(this.#holds);
    if (hold === undefined) return;
    const drawn = this.#stage.random.next();
    const verb: Verb = drawn < 0.65 ? "complete" : drawn < 0.9 ? "fail" : "defer";
    await this.#send(hold, verb);
  }

  /** A worker reports while its own heartbeat is being sent: the heartbeat arrives in the middle of the report's commit. */
  async #reportWhileRenewing(): Promise<void> {
    const hold = this.#stage.random.pick(this.#holds);
    if (hold === undefined) return;
    const reported = this.#send(hold, "complete");
    const renewed = turns(this.#stage.random.between(1, 6)).then(() => this.#renew(hold, {}));
    await Promise.all([reported, renewed]);
  }

  /** The same report once more, or a late one. */
  async #repeat(): Promise<void> {
    const sent = this.#stage.random.pick(this.#sent);
    if (sent === undefined) return;
    await this.#send(sent.hold, this.#stage.random.chance(0.8) ? sent.verb : "complete");
  }

  async #send(hold: KnownHold, verb: Verb): Promise<void> {
    const output = JSON.stringify(`${hold.taskId}/${hold.grant}`);
    const retryable = this.#stage.random.chance(0.8);
    const delayMs = this.#stage.random.pick([0, 100, 800]) as number;
    this.#sent.push({ hold, verb });
    // Sent together with others, so a concurrent caller must expect its effect.
    const { sure } = hold;
    const answer = await this.#ask(
      `${verb} ${hold.taskId} grant ${hold.grant}`,
      (process) => {
        if (verb === "complete") return process.board.complete(proof(hold), output);
        return verb === "fail" ? process.board.fail(proof(hold), { error: "boom", retryable }) : process.board.defer(proof(hold), delayMs);
      },
      () => this.#stage.model.unknown(hold, verb),
    );
    if (answer === "refused") {
      hold.sure = sure;
      return;
    }
    this.#drop(hold);
    if (answer === "unknown") return;
    if (answer.value === "ok" && verb === "complete") this.#stage.outcome.completions++;
    this.#stage.model.reported(hold, verb, answer.value, output, this.#stage.machine.clock.now());
  }

  async #vanish(): Promise<void> {
    const hold = this.#stage.random.pick(this.#holds);
    if (hold === undefined) return;
    this.#stage.say(`the holder of ${hold.taskId} grant ${hold.grant} vanishes`);
    this.#drop(hold);
  }

  #drop(hold: KnownHold): void {
    this.#holds = this.#holds.filter((other) => other !== hold);
  }

  async #cancelRun(run = this.#anyRun((state) => state === "running")): Promise<void> {
    if (run === undefined) return;
    this.#stage.model.maybeCancelled({ runId: run });
    const answer = await this.#ask(`cancel ${run}`, (process) => process.runs.cancel(run));
    if (typeof answer === "string" || answer.value === undefined) return;
    this.#stage.model.started(run);
    this.#stage.model.runTold(answer.value);
  }

  async #cancelTask(): Promise<void> {
    const open = [...this.#stage.machine.disk.read().tasks.values()].filter((task) => isOpen(task.state));
    const task = this.#stage.random.pick(open);
    if (task === undefined) return;
    this.#stage.model.maybeCancelled({ taskId: task.id });
    const life = this.#stage.model.lifeOf(runOf(task.id));
    const answer = await this.#ask(`cancel task ${task.id}`, (process) => process.board.cancel(task.id));
    if (typeof answer !== "string" && answer.value) this.#stage.model.taskCancelled(task.id, life);
  }

  /** A run that has ended begins another life, in one of the possible ways. Its parent runs may also begin another life. */
  async #retry(): Promise<void> {
    const run = this.#anyRun((state) => state !== "running");
    if (run !== undefined) await this.#startAgain(this.#stage.random.chance(0.5) ? run : this.#failedInside(run));
  }

  async #startAgain(target: string): Promise<void> {
    const order = this.#restarting(target);
    const forget = () => {
      for (const voided of this.#andAround(target)) this.#stage.model.maybeRetried(voided);
    };
    const tell = async () => {
      forget();
      const answered = this.#stage.model.ordered(this.#andAround(target));
      const answer = await this.#ask(`${order.kind} ${target}`, (process) => process.runs.tell(target, order).catch(limitReached));
      answered();
      forget();
      if (typeof answer !== "string" && answer.value?.state === "running") this.#stage.say(`  ${target} goes on`);
    };
    const answered = tell().catch((error: unknown) => this.#stage.failed(error));
    // While the end of the run is still being performed, the command waits, perhaps for many steps. Meanwhile the caller does other things.
    await Promise.race([answered, this.#quiet()]);
  }

  /**
   * A child begins another life while a message about its earlier life waits: about its end, for its parent, or about the end of its parent's
   * step, for itself. A child that has not ended is cancelled first.
   */
  async #overtakeNews(): Promise<void> {
    const { messages, runs } = this.#stage.machine.disk.read();
    const about = messages.flatMap((message): (Run | undefined)[] => {
      if (message.kind === "settle-task") return [runs.get(message.from ?? "")];
      if (message.kind !== "cancel-child") return [];
      const { parentTaskId, attempt } = message;
      return [[...runs.values()].find((run) => run.parentTaskId === parentTaskId && run.parentAttempt === attempt)];
    });
    const child = this.#stage.random.pick(about);
    if (child === undefined) return;
    if (isRunOpen(child.state)) await this.#cancelRun(child.id);
    await this.#startAgain(child.id);
  }

  /** Resolves when the server has done everything that it can do now. */
  async #quiet(): Promise<void> {
    for (let turn = 0; turn < 3; turn++) {
      await this.#stage.process().store.commit.quiet();
      await turns(1);
    }
  }

  #restarting(runId: string): Order {
    const drawn = this.#stage.random.next();
    const { tasks, runs } = this.#stage.machine.disk.read();
    // A run that succeeded has nothing to retry.
    if (runs.get(runId)?.state === "succeeded" && drawn < 0.75) return { kind: "restart" };
    if (drawn < 0.5) return { kind: "retry" };
    if (drawn < 0.75) return { kind: "restart" };
    // Only Conductor runs can be rerun from a step, and only from a step that has begun.
    const tied = isTied(runs.get(runId)?.workflow ?? "");
    const begun = tied ? [...tasks.values()].filter((task) => task.runId === runId && hadItsTurn(task)) : [];
    const node = this.#stage.random.pick(begun)?.node;
    return node === undefined ? { kind: "restart" } : { kind: "rerun", node };
  }

  /** The run at the bottom that did not succeed, as a retry that resumes children looks for it. */
  #failedInside(runId: string): string {
    const { tasks, runs } = this.#stage.machine.disk.read();
    const child = [...runs.values()].find(({ parentTaskId, parentAttempt, state }) => {
      const task = parentTaskId === null ? undefined : tasks.get(parentTaskId);
      return task?.runId === runId && task.attempt === parentAttempt && !isRunOpen(state) && state !== "succeeded";
    });
    return child === undefined ? runId : this.#failedInside(child.id);
  }

  #andAround(runId: string): string[] {
    const { tasks, runs } = this.#stage.machine.disk.read();
    const around: string[] = [];
    for (let at: string | null = runId; at !== null; ) {
      around.push(at);
      const parent: string | null = runs.get(at)?.parentTaskId ?? null;
      at = parent === null ? null : (tasks.get(parent)?.runId ?? null);
    }
    return around;
  }

  #anyRun(wanted: (state: Run["state"]) => boolean): string | undefined {
    return this.#stage.random.pick([...this.#stage.machine.disk.read().runs.values()].filter((run) => wanted(run.state)))?.id;
  }

  /** `sent` is called when the request is sent: from then on it may have been performed. */
  async #ask<T>(what: string, request: (process: Process) => Promise<T>, sent?: () => void): Promise<Answer<T>> {
    const process = this.#stage.process();
    const call = ++this.#calls;
    this.#stage.say(`#${call} ${what}`);
    const answerIsLost = this.#stage.random.chance(0.04);
    const [wasDeposed, wasOwned] = [process.isDeposed, process.owner?.isOwned()];
    try {
      const answering = request(process);
      sent?.();
      const value = await answering;
      if (this.#stage.tracing()) this.#stage.say(`  #${call} answered ${answerIsLost ? "(lost) " : ""}${JSON.stringify(value, brief)}`);
      if (wasDeposed) this.#judge(what, { isWord: isWordOf(value), wasOwned });
      // Answers of an owner after it was replaced do not count.
      return answerIsLost || wasDeposed ? "unknown" : { value, from: process };
    } catch (error) {
      if (error instanceof BrokenPromise) throw error;
      if (!process.alive) {
        this.#stage.say(`  #${call} never answered`);
        return "unknown";
      }
      if ((error as { code?: string }).code !== "LONGSHORE_STORE_UNAVAILABLE") throw error;
      this.#stage.say(`  #${call} refused`);
      this.#stage.outcome.refusals++;
      // Its last commit may have been performed, but it can no longer query this.
      return process.isDeposed ? "unknown" : "refused";
    }
  }

  /** A replaced owner may return what it has in memory while it trusts its lease, but must accept nothing. */
  #judge(what: string, { isWord, wasOwned }: { isWord: boolean; wasOwned: boolean | undefined }): void {
    if (isWord) throw broken(`${what} was accepted by an owner that had been replaced`);
    if (!wasOwned) throw broken(`${what} was answered by an owner that had been replaced and whose trust was over`);
  }

  /** All callers that wait for a task disconnect. */
  hangUp(): void {
    for (const gone of this.#waiting.splice(0)) gone.abort();
  }
}

export function proof(hold: KnownHold) {
  return { taskId: hold.taskId, grant: hold.grant, holder: hold.holder ?? undefined };
}

function hadItsTurn(task: TaskRow): boolean {
  return task.state !== "forgotten" && task.state !== "skipped";
}

/** Whether an answer promises a permanent change: an accepted report, or tasks that were handed out. */
function isWordOf(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value === "ok" || value === true || (value as { created?: boolean } | undefined)?.created === true;
}

/** The important fields of tasks and runs, for a trace. */
function brief(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("state" in value)) return value;
  const { id, state, grant, attempt, left } = value as { [key: string]: unknown };
  return { id, state, grant, attempt, left };
}
