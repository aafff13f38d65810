// The workers that could take tasks from a lane. There may be thousands of workers and lanes. So workers are found by the names that they
// claim, in slices, once for each lane.

import type { Slices } from "../../core/slices/slices.ts";
import { laneKey } from "./lanes.ts";
import type { Lane } from "./task.ts";
import type { WorkerView } from "./worker-view.ts";
import type { Workers } from "./workers.ts";

/** Maximum number of worker ids in a response; the count includes the others. */
const shownMax = 100;
/** Workers that are checked without a pause. */
const pieceMax = 250;

/** What is known about the live workers of one lane. */
export class Crew {
  readonly lane: Lane;
  /** Live workers of any kind. */
  readonly live: number;
  /** Workers that claim the lane's name, or have not reported any names. */
  near = 0;
  /** Workers that could take from the lane. */
  able = 0;
  idle = 0;
  busy = 0;
  /** Workers that could take from the lane and are cordoned. */
  cordoned = 0;
  /** Ids of some workers that could take from the lane. */
  readonly ids: string[] = [];
  readonly protocols = new Set<string>();
  /** Labels of the lane that no worker counted in `near` has. */
  readonly missing: Set<string>;

  constructor(lane: Lane, live: number) {
    this.lane = lane;
    this.live = live;
    this.missing = new Set(lane.labels);
  }

  /** Adds a live worker that claims the lane's name, or has not reported any names. */
  add({ id, protocol, status, reach, labels, cordoned }: WorkerView): void {
    const has = reach?.labels ?? labels;
    this.near++;
    let missing = 0;
    for (const label of this.lane.labels) {
      if (has.includes(label)) this.missing.delete(label);
      else missing++;
    }
    if (missing > 0) return;
    if (cordoned !== undefined) {
      this.cordoned++;
      return;
    }
    this.able++;
    if (status === "idle") this.idle++;
    if (status === "busy") this.busy++;
    if (this.ids.length < shownMax) this.ids.push(id);
    this.protocols.add(protocol);
  }
}

/** The crews of lanes, computed once for each request. */
export class Crews {
  readonly #workers: Workers;
  readonly #slices: Slices;
  readonly #known = new Map<string, Promise<Crew>>();
  #roll: Promise<Roll> | null = null;

  constructor(workers: Workers, slices: Slices) {
    this.#workers = workers;
    this.#slices = slices;
  }

  of(lane: Lane): Promise<Crew> {
    const key = laneKey(lane);
    let crew = this.#known.get(key);
    if (crew === undefined) {
      crew = this.#gather(lane);
      this.#known.set(key, crew);
    }
    return crew;
  }

  async #gather(lane: Lane): Promise<Crew> {
    this.#roll ??= callRoll(this.#workers, this.#slices);
    const { live, byName, others } = await this.#roll;
    const crew = new Crew(lane, live);
    for (const near of [byName.get(lane.name) ?? [], others]) {
      for (let at = 0; at < near.length; at += pieceMax) {
        const piece = near.slice(at, at + pieceMax);
        await this.#slices.turn(piece.length);
        for (const worker of piece) crew.add(worker);
      }
    }
    return crew;
  }
}

/** Live workers by the names they claim. */
interface Roll {
  live: number;
  readonly byName: Map<string, WorkerView[]>;
  /** Workers that have not claimed since the server started: each may claim any name. */
  readonly others: WorkerView[];
}

async function callRoll(workers: Workers, slices: Slices): Promise<Roll> {
  const roll: Roll = { live: 0, byName: new Map(), others: [] };
  for (const worker of workers.views()) {
    await slices.turn(1 + (worker.reach?.names.length ?? 0));
    if (worker.status === "offline") continue;
    roll.live++;
    if (worker.reach === null) roll.others.push(worker);
    for (const name of worker.reach?.names ?? []) {
      const sameName = roll.byName.get(name);
      if (sameName === undefined) roll.byName.set(name, [worker]);
      else sameName.push(worker);
    }
  }
  return roll;
}
