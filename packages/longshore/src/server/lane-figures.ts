// The metrics of lanes. Labels create lanes, so there may be very many: only the fullest get a series of their own.

import type { Sample } from "../core/metrics.ts";
import { Heap } from "../engine/board/heap.ts";
import type { LaneQueue } from "../engine/board/lanes.ts";
import { lanesAfter, type QueueState, stateOf } from "../engine/board/queue-state.ts";
import type { Engine } from "./engine.ts";

/** How many lanes get a series of their own; the ready tasks of the others are summed up as `other`. */
const lanesMax = 100;

export class LaneFigures {
  readonly #engine: Engine;
  #states: QueueState[] = [];
  #readyElsewhere: number | null = null;
  #counting: Promise<void> | null = null;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Concurrent reads share one count. */
  count(): Promise<void> {
    this.#counting ??= this.#countNow().finally(() => {
      this.#counting = null;
    });
    return this.#counting;
  }

  ready(): Sample[] {
    const samples = this.#states.map((state) => sampleOf(state, state.ready));
    return this.#readyElsewhere === null ? samples : [...samples, { labels: ["other", ""], value: this.#readyElsewhere }];
  }

  pollers(): Sample[] {
    return this.#states.map((state) => sampleOf(state, state.pollers));
  }

  async #countNow(): Promise<void> {
    /** The fullest lanes so far, the least full first. */
    const fullest = new Heap<LaneQueue>((a, b) => a.ready.size < b.ready.size);
    let elsewhere: number | null = null;
    for await (const queue of lanesAfter(this.#engine)) {
      fullest.push(queue);
      if (fullest.size > lanesMax) elsewhere = (elsewhere ?? 0) + (fullest.pop()?.ready.size ?? 0);
    }
    const states: QueueState[] = [];
    for (const queue of fullest.values()) states.push(await stateOf(this.#engine, queue));
    this.#states = states.sort((a, b) => b.ready - a.ready);
    this.#readyElsewhere = elsewhere;
  }
}

function sampleOf({ lane }: QueueState, value: number): Sample {
  return { labels: [lane.name, lane.labels.join(",")], value };
}
