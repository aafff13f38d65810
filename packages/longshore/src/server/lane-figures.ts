// The metrics of lanes. Labels create lanes, so there may be very many. Only the fullest lanes get a separate series.

import type { Clock } from "../core/clock.ts";
import type { Sample } from "../core/metrics.ts";
import { wholeRow } from "../core/slices/slices.ts";
import { Heap } from "../engine/board/heap.ts";
import type { LaneQueue, Place } from "../engine/board/lanes.ts";
import { lanesAfter, type QueueState, type StateDeps, stateOf } from "../engine/board/queue-state.ts";
import type { TaskRow } from "../engine/board/task.ts";

/** How many lanes get a separate series. The ready tasks of all other lanes are added up as `other`. */
const lanesMax = 100;
/** Places of other lanes that are checked for the oldest task: some may be of tasks that have been cancelled. */
const looksMax = 100;
/** Places that are passed without a pause. */
const pieceMax = 500;

export interface LaneFiguresDeps extends StateDeps {
  readonly clock: Clock;
}

export class LaneFigures {
  readonly #deps: LaneFiguresDeps;
  #states: QueueState[] = [];
  #readyElsewhere: number | null = null;
  #oldestElsewhere: TaskRow | null = null;
  #counting: Promise<void> | null = null;

  constructor(deps: LaneFiguresDeps) {
    this.#deps = deps;
  }

  /** Concurrent reads share one result. */
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

  /** How long the oldest ready task of each lane has waited, in seconds. */
  ages(): Sample[] {
    const now = this.#deps.clock.now();
    const age = ({ queuedAt, dueAt }: TaskRow) => Math.max(0, now - Math.max(queuedAt, dueAt)) / 1_000;
    const samples = this.#states.flatMap((state) => (state.oldest === null ? [] : [sampleOf(state, age(state.oldest))]));
    return this.#oldestElsewhere === null ? samples : [...samples, { labels: ["other", ""], value: age(this.#oldestElsewhere) }];
  }

  async #countNow(): Promise<void> {
    /** The fullest lanes so far, the least full first. */
    const fullest = new Heap<LaneQueue>((a, b) => a.ready.size < b.ready.size);
    let elsewhere: number | null = null;
    const oldest = new OldestPlaces();
    for await (const queue of lanesAfter(this.#deps)) {
      fullest.push(queue);
      if (fullest.size <= lanesMax) continue;
      const { ready } = fullest.pop() as LaneQueue;
      elsewhere = (elsewhere ?? 0) + ready.size;
      for (const place of ready.values()) if (oldest.add(place)) await this.#deps.slices.turn(pieceMax);
    }
    const task = await this.#firstQueued(oldest.inOrder());
    const states: QueueState[] = [];
    for (const queue of fullest.values()) states.push(await stateOf(this.#deps, queue));
    this.#states = states.sort((a, b) => b.ready - a.ready);
    this.#readyElsewhere = elsewhere;
    this.#oldestElsewhere = task;
  }

  async #firstQueued(places: readonly Place[]): Promise<TaskRow | null> {
    const { reader, slices } = this.#deps;
    for (const place of places) {
      await slices.turn(wholeRow);
      const task = await reader.task(place.id);
      if (task?.state === "queued" && task.sequence === place.sequence) return task;
    }
    return null;
  }
}

/** The places with the smallest sequences. Sequences rise with time. */
class OldestPlaces {
  /** The newest place comes first. */
  readonly #places = new Heap<Place>((a, b) => a.sequence > b.sequence);
  #passed = 0;

  /** Returns true when it is time for a pause. */
  add(place: Place): boolean {
    this.#places.push(place);
    if (this.#places.size > looksMax) this.#places.pop();
    return ++this.#passed % pieceMax === 0;
  }

  inOrder(): Place[] {
    return [...this.#places.values()].sort((a, b) => a.sequence - b.sequence);
  }
}

function sampleOf({ lane }: QueueState, value: number): Sample {
  return { labels: [lane.name, lane.labels.join(",")], value };
}
