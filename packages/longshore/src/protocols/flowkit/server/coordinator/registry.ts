// The workers, their roles and their free capacity, from their announcements. They are stored, because workers announce themselves rarely
// and must be known after a restart. A worker that misses three announcements is gone. A worker that lost a hold gets no task until it
// sends something again. A worker that sends only events of tasks is stored for its stop signals. It has no capacity, and is shown only
// while it holds a task.

import type { JsonObject } from "../../../../core/json/json.ts";
import type { TaskRow } from "../../../../engine/board/task.ts";
import type { Sign } from "../../../../engine/board/worker-view.ts";
import type { Announcement } from "../../wire/shapes.ts";
import type { CoordinatorEngine, CoordinatorLog } from "./parts.ts";
import { RoleFigures } from "./role-figures.ts";

export interface RegistryDeps extends Pick<CoordinatorEngine, "clock" | "workers" | "documents"> {
  readonly log: CoordinatorLog;
  /** Called when there is a new role, or when the free capacity of a worker has changed. */
  changed(roles: readonly string[]): void;
  /** Called when a worker of these roles has connected. */
  came?(roles: readonly string[]): void;
}

interface Worker {
  readonly id: string;
  roles: readonly string[];
  capacity: number;
  version: string;
  seenAt: number;
  /** The worker has announced itself. */
  announced: boolean;
  /** The worker lost a hold, and has sent nothing since. */
  suspected: boolean;
  readonly held: Set<string>;
}

const kind = "flowkit-worker";
/** The default interval of announcements. */
const announceMs = 60_000;
const silentMs = 3 * announceMs;
/** Maximum numbers of workers and roles. Any program that can write to the topic can name some; larger numbers are a mistake. */
const workersMax = 10_000;
const rolesMax = 1_000;
/** Maximum number of roles of all workers together. Each is stored with its worker. */
const mentionsMax = 100_000;
const roleShape = /^[\w.-]{1,200}$/;
const workerIdCharsMax = 512;
/** Maximum length of texts that workers choose: their version, and their reason for leaving. */
const workerTextCharsMax = 200;
/** Maximum number of concurrent tasks of one worker. */
const capacityMax = 10_000;

export class Registry {
  readonly #deps: RegistryDeps;
  readonly #workers = new Map<string, Worker>();
  readonly #holders = new Map<string, string>();
  readonly #roles = new Set<string>();
  readonly #figures = new RoleFigures();
  /** When each worker last sent an announcement, by its own clock; the oldest first. */
  readonly #saidAt = new Map<string, number>();
  #stopTimer: () => void = () => {};

  constructor(deps: RegistryDeps) {
    this.#deps = deps;
  }

  /** Reads the stored workers. Those that are gone are removed after three missed announcements. */
  async load(): Promise<void> {
    const { documents, workers, clock } = this.#deps;
    for await (const { name, body } of documents.eachDocument(kind)) {
      const { roles = [], capacity = 1, version = "" } = JSON.parse(body) as Partial<Worker>;
      const worker = this.#add({ id: name, roles, capacity, version });
      if (worker === undefined) continue;
      worker.seenAt = clock.now();
      workers.recall(name, signOf(worker));
    }
    this.#arm();
  }

  close(): void {
    this.#stopTimer();
  }

  get roles(): ReadonlySet<string> {
    return this.#roles;
  }

  roster(): { worker_id: string; roles: readonly string[]; version: string; capacity: number; status: "online"; seenAt: number }[] {
    const announced = [...this.#workers.values()].filter((worker) => worker.announced);
    return announced.map(({ id: worker_id, roles, version, capacity, seenAt }) => {
      return { worker_id, roles, version, capacity, status: "online", seenAt };
    });
  }

  knows(workerId: string): boolean {
    return this.#workers.has(workerId);
  }

  /** How many tasks of this role could start now. A worker with several roles counts for each of them: see the dispatcher. */
  room(role: string): number {
    return this.#figures.room(role);
  }

  /** How many workers of this role have announced themselves. */
  countOf(role: string): number {
    return this.#figures.countOf(role);
  }

  /** Handles an announcement. `saidAt` is its time by the worker's own clock. The change is durable when this resolves. */
  async announced(announcement: Announcement, saidAt: number): Promise<void> {
    const { worker_id: id } = announcement;
    if (id.length > workerIdCharsMax || this.#isPast(id, saidAt)) return;
    if (announcement.kind === "WORKER_OFFLINE") return this.#leave(id, (announcement.reason ?? "it said so").slice(0, workerTextCharsMax));
    const { capabilities, type, capacity } = announcement;
    const version = announcement.version.slice(0, workerTextCharsMax);
    const announced = (capabilities?.roles ?? type.split(",")).map((role) => role.trim()).filter((role) => roleShape.test(role));
    const known = this.#workers.get(id);
    // A periodic announcement of the reference has no capabilities, but the same roles in `type`.
    const roles = announced.length > 0 ? [...new Set(announced)] : (known?.roles ?? []);
    const next = { id, roles, capacity: Math.min(capacityMax, Math.max(0, capacity.tasks)), version };
    if (known?.announced && same(known, next)) return this.#heard(known);
    const worker = this.#add(next);
    if (worker === undefined) return;
    this.#deps.workers.register(id, "flowkit", []);
    this.#heard(worker);
    this.#deps.log.info("A FlowKit worker has come", { event: "coord.worker.online", worker_id: id, type: roles.join(","), version });
    await this.#keep(worker);
    this.#deps.changed(worker.roles);
    this.#deps.came?.(worker.roles);
  }

  /** Announcements have no key, so they may arrive out of order. An announcement that is older than the last one is ignored. */
  #isPast(id: string, saidAt: number): boolean {
    const before = this.#saidAt.get(id) ?? Number.NEGATIVE_INFINITY;
    // A larger difference means another clock: a worker of this name now runs on another machine.
    if (saidAt < before && before - saidAt < silentMs) return true;
    this.#saidAt.delete(id);
    const [oldest] = this.#saidAt.keys();
    if (oldest !== undefined && this.#saidAt.size >= workersMax) this.#saidAt.delete(oldest);
    this.#saidAt.set(id, saidAt);
    return false;
  }

  /** The worker has sent an event of a task of this role. */
  heard(id: string, role: string): void {
    const known = this.#workers.get(id);
    if (known !== undefined) return this.#heard(known);
    if (id.length > workerIdCharsMax || !roleShape.test(role) || this.#workers.size >= workersMax) return;
    const stranger = {
      id,
      roles: [role],
      capacity: 0,
      version: "",
      announced: false,
      suspected: false,
      seenAt: 0,
      held: new Set<string>(),
    };
    this.#workers.set(id, stranger);
    this.#heard(stranger);
  }

  /** Must be called for each task that a commit changed, and at the start for each held task. */
  taskChanged(task: TaskRow): void {
    const holder = task.state === "held" || task.state === "cancelling" ? task.holder : null;
    const before = this.#holders.get(task.id) ?? null;
    if (before === holder) return;
    const roles = new Set<string>();
    if (before !== null) {
      const worker = this.#workers.get(before);
      this.#holders.delete(task.id);
      worker?.held.delete(task.id);
      if (worker?.announced === false && worker.held.size === 0) this.#deps.workers.left(before);
      if (worker !== undefined && task.closedBy === "expire") {
        worker.suspected = true;
        this.#deps.workers.left(before);
      }
      if (worker !== undefined) this.#figures.update(worker);
      for (const role of worker?.roles ?? []) roles.add(role);
    }
    const worker = holder === null ? undefined : this.#workers.get(holder);
    if (worker !== undefined) {
      this.#holders.set(task.id, worker.id);
      worker.held.add(task.id);
      this.#figures.update(worker);
      // Other workers are shown when they send something; a hold from before a restart is not enough.
      if (!worker.announced) this.#show(worker);
      for (const role of worker.roles) roles.add(role);
    }
    if (roles.size > 0) this.#deps.changed([...roles]);
  }

  #heard(worker: Worker): void {
    worker.seenAt = this.#deps.clock.now();
    this.#show(worker);
    if (!worker.suspected) return;
    worker.suspected = false;
    this.#figures.update(worker);
    this.#deps.changed(worker.roles);
  }

  #show(worker: Worker): void {
    if (worker.announced || worker.held.size > 0) this.#deps.workers.seen(worker.id, signOf(worker));
  }

  #add(announced: Pick<Worker, "id" | "roles" | "capacity" | "version">): Worker | undefined {
    const known = this.#workers.get(announced.id);
    if (known === undefined && this.#workers.size >= workersMax) return undefined;
    const room = mentionsMax - this.#figures.mentions + (known?.roles.length ?? 0);
    if (announced.roles.length > room) return undefined;
    const roles = announced.roles.filter((role) => this.#roles.has(role) || this.#roles.size < rolesMax);
    for (const role of roles) this.#roles.add(role);
    const worker = Object.assign(known ?? { held: new Set<string>(), suspected: false, seenAt: 0 }, {
      ...announced,
      roles,
      announced: true,
    }) as Worker;
    this.#workers.set(worker.id, worker);
    this.#figures.update(worker);
    return worker;
  }

  async #keep({ id, roles, capacity, version }: Worker): Promise<void> {
    const body = JSON.stringify({ roles, capacity, version } as unknown as JsonObject);
    await this.#deps.documents.keepDocument({ kind, name: id, version: 1, body }, { own: true });
  }

  async #leave(id: string, why: string): Promise<void> {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    this.#workers.delete(id);
    this.#figures.remove(id);
    for (const taskId of worker.held) this.#holders.delete(taskId);
    this.#deps.workers.left(id);
    if (!worker.announced) return;
    this.#deps.log.info("A FlowKit worker has gone", { event: "coord.worker.offline", worker_id: id, why });
    await this.#deps.documents.removeDocument(kind, id);
    this.#deps.changed(worker.roles);
  }

  #arm(): void {
    const { clock } = this.#deps;
    this.#stopTimer = clock.at(clock.now() + announceMs, () => {
      const before = clock.now() - silentMs;
      for (const worker of [...this.#workers.values()]) {
        // If the store cannot be written now, the document stays and the worker is missed again after the next start.
        if (worker.seenAt <= before) void this.#leave(worker.id, "it was silent").catch(() => {});
      }
      this.#arm();
    });
  }
}

function signOf({ roles, capacity, version, announced }: Worker): Sign {
  const said = announced ? { slots: capacity, version } : {};
  return { protocol: "flowkit", reach: { names: roles, labels: [] }, everyMs: announceMs, ...said };
}

function same(known: Worker, announced: Pick<Worker, "roles" | "capacity" | "version">): boolean {
  return known.capacity === announced.capacity && known.version === announced.version && known.roles.join() === announced.roles.join();
}
