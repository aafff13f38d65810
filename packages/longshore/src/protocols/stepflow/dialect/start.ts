// Prepares a run of a flow. With overrides, the run gets its own definition. Variables and limits are stored with the run.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { parseInSlices } from "../../../core/json/json-slices.ts";
import { atOnce, type Sliced } from "../../../core/slices/slice-work.ts";
import type { NewRun } from "../../../engine/run/store.ts";
import { compileInSlices } from "./compile.ts";
import type { Flow } from "./flow.ts";
import { applyOverrides } from "./overrides.ts";
import { type FlowSettings, maxConcurrencyDefault } from "./settings.ts";
import { decodeInSlices, dialectName, encodeFlow, flowIdOf, nameOf } from "./source.ts";
import { resolveVariables, type VariableSources } from "./start-variables.ts";

export interface RunOptions {
  /** The stored form of the flow: compact JSON. */
  readonly source: string;
  /** The parsed source and its id, when they are known. */
  readonly known?: { readonly flow: Flow; readonly flowId: string };
  readonly input: Json;
  readonly overrides?: Json;
  readonly variables?: Json;
  readonly maxConcurrency?: number;
  /** For variables that the request does not set. */
  readonly environment?: VariableSources["environment"];
  /** Whether `environment` is also searched for `STEPFLOW_VAR_` and the name of the variable. */
  readonly prefixed?: boolean;
  /** For sub-runs. */
  readonly sub?: Omit<FlowSettings, "flowId" | "maxConcurrency" | "sub">;
}

export interface PreparedRun {
  readonly flowId: string;
  /**
   * The definition: the flow, or the flow with its overrides. It must be stored under this id before the run starts. Runs find it by its
   * id, not its name.
   */
  readonly definition: { readonly id: string; readonly name: string; readonly dialect: string; readonly source: string };
  readonly run: Pick<NewRun, "workflow" | "definitionId" | "input"> & { readonly settings: string; readonly variables: string | null };
  /** The settings of the run. */
  readonly settings: FlowSettings;
}

/** The highest `maxConcurrency` that a request may set. A higher number would in practice be no limit. */
const concurrencyMax = 1_000_000;

/** Throws LONGSHORE_BAD_INPUT or LONGSHORE_BAD_DEFINITION that names the field. */
export function prepareRun(options: RunOptions): PreparedRun {
  return atOnce(prepareInSlices(options));
}

export function* prepareInSlices(options: RunOptions): Sliced<PreparedRun> {
  const { flow, flowId } = options.known ?? { flow: yield* decodeInSlices(options.source), flowId: flowIdOf(options.source) };
  const name = nameOf(flow, flowId);
  const source = yield* patched(options);
  const id = source === options.source ? flowId : flowIdOf(source);
  const definition = { id, name: id === flowId ? name : `.${name}+${id.slice(0, 12)}`, dialect: dialectName, source };
  const { environment, prefixed } = options;
  const given = variablesIn(options.variables ?? null);
  const variables = resolveVariables(flow.schemas, { given, environment, prefixed });
  const settings: FlowSettings = {
    flowId,
    maxConcurrency: concurrencyOf(options.maxConcurrency),
    ...(options.sub === undefined ? {} : { ...options.sub, sub: true }),
  };
  const run = {
    workflow: name,
    definitionId: definition.id,
    input: writeExact(options.input),
    settings: JSON.stringify(settings),
    variables: Object.keys(variables).length === 0 ? null : writeExact(variables),
  };
  return { flowId, definition, run, settings };
}

/** Applies the overrides. The result must still be a flow that can run. */
function* patched({ source, overrides = null }: RunOptions): Sliced<string> {
  if (overrides === null) return source;
  const document = (yield* parseInSlices(source)) as JsonObject;
  const changed = applyOverrides(document, overrides);
  if (changed === document) return source;
  const text = encodeFlow(changed);
  try {
    yield* compileInSlices(text);
  } catch (error) {
    if (!(error instanceof LongshoreError)) throw error;
    const { field = "", ...detail } = error.detail;
    const message = `With its overrides the flow cannot be run: ${error.message}`;
    throw new LongshoreError("LONGSHORE_BAD_INPUT", message, { cause: error, detail: { ...detail, field: `overrides: ${field}` } });
  }
  return text;
}

function variablesIn(value: Json): JsonObject {
  if (value === null) return {};
  if (isObject(value)) return value as JsonObject;
  throw new LongshoreError("LONGSHORE_BAD_INPUT", "The variables are not an object.", {
    detail: { field: "variables", expected: "an object" },
  });
}

function concurrencyOf(value: number | undefined): number {
  if (value === undefined) return maxConcurrencyDefault;
  if (Number.isInteger(value) && value >= 1 && value <= concurrencyMax) return value;
  throw new LongshoreError("LONGSHORE_BAD_INPUT", `maxConcurrency is ${value}.`, {
    detail: { field: "maxConcurrency", expected: `a whole number from 1 to ${concurrencyMax}` },
  });
}
