// Finds the run for an id on this wire. The same place of a path can have one of three kinds of ids: the id of a workflow, which means its
// newest run; the alias under which a run was claimed; or the id of a run, which claims contain when two runs of one workflow overlap.

import { WeightedCache } from "../../../core/weighted-cache.ts";
import { DefinitionCache } from "../../../engine/run/definition-cache.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import { isRunOpen, type Run, taskIdOf } from "../../../engine/run/run.ts";
import { type View, viewOf } from "./view.ts";

/**
 * Maximum number of cached runs, for claims and for newest runs. Each takes some hundred bytes. Other runs are read from the store again,
 * in microseconds.
 */
const runsMax = 10_000;

export interface RunLookupDeps {
  runs: {
    run(id: string): Promise<Run | undefined>;
    definition(name: string): Promise<Definition | undefined>;
    definitionById(id: string): Promise<Definition | undefined>;
  };
  reader: {
    newestRun(workflow: string): Promise<Run | undefined>;
    runByAlias(alias: string): Promise<Run | undefined>;
  };
  plan(definition: Definition): Plan;
}

export interface Found {
  workflow: string;
  view: View;
  /** Undefined for a workflow that has not run since it was defined. */
  run: Run | undefined;
}

/** The fields of a run that the response to a claim needs. */
export interface ClaimedRun {
  view: View;
  ids: RunIds;
}

interface RunIds {
  definitionId: string;
  /** JSON texts. */
  workflowId: string;
  runId: string;
}

/** The fields of the run before it that a start needs. */
type NewestRun = Pick<Run, "id" | "state">;

export class RunLookup {
  readonly #deps: RunLookupDeps;
  readonly #views = new DefinitionCache<View>();
  readonly #ids = new WeightedCache<RunIds>(runsMax);
  /** The newest run of each workflow that was started again lately. */
  readonly #newest = new WeightedCache<NewestRun>(runsMax);

  constructor(deps: RunLookupDeps) {
    this.#deps = deps;
  }

  /** For people: finds the newest run of a workflow, else the run with this alias or id. */
  async find(id: string): Promise<Found | undefined> {
    const definition = await this.#deps.runs.definition(id);
    if (definition === undefined) return this.#ofRun(await this.#runOf(id));
    const newest = await this.#deps.reader.newestRun(id);
    // After a new definition was stored, the definition is shown, and not a run of the old one.
    const run = newest?.definitionId === definition.id ? newest : undefined;
    return { workflow: id, view: this.view(definition), run };
  }

  /** The newest definition of the workflow that an id means; reads no runs. */
  async definition(id: string): Promise<Definition | undefined> {
    const definition = await this.#deps.runs.definition(id);
    if (definition !== undefined) return definition;
    const run = await this.#runOf(id);
    return run === undefined ? undefined : this.#deps.runs.definition(run.workflow);
  }

  /**
   * The newest run of a workflow, from memory when it was read before: a start waits for this. The run may have been removed since then.
   */
  newest(workflow: string): NewestRun | undefined | Promise<NewestRun | undefined> {
    return this.#newest.get(workflow) ?? this.#readNewest(workflow);
  }

  async #readNewest(workflow: string): Promise<NewestRun | undefined> {
    const newest = await this.#deps.reader.newestRun(workflow);
    return newest === undefined ? undefined : this.#newest.set(workflow, { id: newest.id, state: newest.state });
  }

  /**
   * For workers: the run to which an id from the response to a claim belongs. Aliases come first, because a newer run may have another id.
   */
  async claimedUnder(id: string): Promise<Run | undefined> {
    return (await this.#runOf(id)) ?? (await this.#deps.reader.newestRun(id));
  }

  async viewOfRun(run: Run): Promise<View | undefined> {
    const definition = await this.#deps.runs.definitionById(run.definitionId);
    return definition === undefined ? undefined : this.view(definition);
  }

  view(definition: Definition): View {
    const known = this.#views.get(definition.id);
    if (known !== undefined) return known;
    const view = viewOf(definition, this.#deps.plan(definition));
    return this.#views.set(definition.id, view, definition);
  }

  /** Must be called for each run that a commit changed. The first steps of a run are often claimed within the commit that starts it. */
  changed(run: Run): void {
    const newest = this.#newest.get(run.workflow);
    if (newest !== undefined && run.id >= newest.id) this.#newest.set(run.workflow, { id: run.id, state: run.state });
    if (isRunOpen(run.state) && this.#views.get(run.definitionId) !== undefined && this.#ids.get(run.id) === undefined) this.#keep(run);
  }

  /** The constant parts of a run in the response to a claim. Synchronous once the run is cached: this is the hot path. */
  claimed(runId: string): ClaimedRun | Promise<ClaimedRun | undefined> {
    const ids = this.#ids.get(runId);
    const view = ids === undefined ? undefined : this.#views.get(ids.definitionId);
    return ids === undefined || view === undefined ? this.#learn(runId) : { view, ids };
  }

  async #learn(runId: string): Promise<ClaimedRun | undefined> {
    const run = await this.#deps.runs.run(runId);
    const view = run === undefined ? undefined : await this.viewOfRun(run);
    if (run === undefined || view === undefined) return undefined;
    return { view, ids: this.#keep(run) };
  }

  #keep(run: Run): RunIds {
    const ids = { definitionId: run.definitionId, workflowId: JSON.stringify(run.alias ?? run.id), runId: JSON.stringify(run.id) };
    return this.#ids.set(run.id, ids);
  }

  async #runOf(id: string): Promise<Run | undefined> {
    return (await this.#deps.reader.runByAlias(id)) ?? (await this.#deps.runs.run(id));
  }

  async #ofRun(run: Run | undefined): Promise<Found | undefined> {
    const view = run === undefined ? undefined : await this.viewOfRun(run);
    return run === undefined || view === undefined ? undefined : { workflow: run.workflow, view, run };
  }
}

/** The id of a job's record in a run; undefined when the workflow has no such job. */
export function taskIdIn(view: View, run: Run, jobId: string): string | undefined {
  const node = view.index.get(jobId);
  return node === undefined ? undefined : taskIdOf(run.id, node);
}
