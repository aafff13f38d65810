// Starts runs of flows: for a client, for a step, or on behalf of a step. One item is one run on the board. Several items, or none, are a
// run that starts a run for each item (api/items.ts).

import type { Clock } from "../../../../core/clock.ts";
import { idFrom, type MakeId } from "../../../../core/ids.ts";
import type { Json, JsonObject } from "../../../../core/json/json.ts";
import { writeExact } from "../../../../core/json/json-exact.ts";
import { inTurns } from "../../../../core/slices/slice-work.ts";
import type { Run } from "../../../../engine/run/run.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import { itemsDefinition } from "../../dialect/items.ts";
import { type FlowSettings, settingsOf } from "../../dialect/settings.ts";
import { prepareInSlices, type RunOptions } from "../../dialect/start.ts";
import { invalid, precondition } from "../refuse.ts";
import { itemsMax } from "../run-id.ts";
import type { Flows } from "./flows.ts";

export interface SubmitDeps {
  readonly clock: Clock;
  readonly makeId: MakeId;
  readonly runs: Runs;
  readonly flows: Flows;
  /** Reads a variable of the server's environment, for flow variables that name one. */
  environment(name: string): string | undefined;
}

export interface RunRequest {
  readonly flowId: string;
  readonly inputs: readonly Json[];
  readonly overrides?: JsonObject;
  readonly variables?: JsonObject;
  readonly maxConcurrency?: number;
  readonly parent?: Parent;
}

/** The run and step on whose behalf a run is started. */
export interface Parent {
  readonly run: Run;
  /** The step that starts the run, if known. The run is cancelled with the step. */
  readonly taskId?: string;
  /** Two requests with the same key start one run. Without a key, each request starts a run. */
  readonly key?: string;
}

/** Maximum nesting of runs: a flow that starts itself would never end. */
const depthMax = 100;

export class Submitter {
  readonly #deps: SubmitDeps;

  constructor(deps: SubmitDeps) {
    this.#deps = deps;
  }

  /** Starts the run, or returns the run that was started with the same key. Throws an error for the client. */
  async submit(request: RunRequest): Promise<Run> {
    const { flows, runs, clock, environment } = this.#deps;
    const { parent, inputs } = request;
    if (inputs.length > itemsMax) throw invalid("input", `has ${inputs.length} items, expected at most ${itemsMax}`);
    const kept = await flows.known(request.flowId);
    const wanted: RunOptions = {
      source: kept.source,
      known: kept,
      input: inputs[0] ?? null,
      environment,
      prefixed: true,
      ...(request.overrides === undefined ? {} : { overrides: request.overrides }),
      ...(request.variables === undefined ? {} : { variables: request.variables }),
      ...(request.maxConcurrency === undefined ? {} : { maxConcurrency: request.maxConcurrency }),
      ...(parent === undefined ? {} : { sub: familyOf(parent) }),
    };
    const { definition, run, settings } = await inTurns(prepareInSlices(wanted));
    await flows.keep(kept);
    if (definition.id !== kept.flowId) await runs.define(definition);
    const id = parent?.key === undefined ? this.#deps.makeId(clock.now()) : subRunId(parent.run, parent.key);
    const base = { ...run, id, unlessThere: parent?.key !== undefined, alias: settings.rootRunId ?? null, ...rootOf(settings) };
    if (inputs.length === 1) return (await runs.begin(base)).run;
    await this.#knowItems();
    const withItems: FlowSettings = { ...settings, items: inputs.length, itemDefinitionId: definition.id };
    const given = { definitionId: itemsDefinition.id, input: writeExact(inputs), settings: writeExact(withItems) };
    return (await runs.begin({ ...base, ...given })).run;
  }

  /** Stores the definition that all runs with items share, if it is missing. */
  async #knowItems(): Promise<void> {
    const { runs } = this.#deps;
    if ((await runs.definitionById(itemsDefinition.id)) === undefined) await runs.define(itemsDefinition);
  }
}

function rootOf({ rootRunId }: FlowSettings): { rootId?: string } {
  return rootRunId === undefined ? {} : { rootId: rootRunId };
}

/** The id is known before the run exists, and is the same for the same parent and key. */
function subRunId(parent: Run, key: string): string {
  return idFrom(`${parent.id}\n${key}`, parent.createdAt);
}

function familyOf(parent: Parent): NonNullable<RunOptions["sub"]> {
  const { rootRunId = parent.run.id, depth = 0, parentRunId, item } = settingsOf(parent.run);
  if (depth >= depthMax) {
    throw precondition("RUNS_NESTED_TOO_DEEP", `${depthMax} runs are around this one already, which is the limit`);
  }
  // Item runs are not visible on the wire, so the parent is the run that the item belongs to.
  const requester = item === undefined ? parent.run.id : (parentRunId ?? rootRunId);
  const { taskId } = parent;
  return { rootRunId, parentRunId: requester, depth: depth + 1, ...(taskId === undefined ? {} : { parentTaskId: taskId }) };
}
