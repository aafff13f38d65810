// Flows, stored as definitions under the SHA-256 of their compact JSON as received. Callers that may run anything can also read and run a
// flow that was stored as a blob. It becomes a definition with its first run, not when it is read.

import { uuidOf } from "../../../../core/ids.ts";
import { isObject, type JsonObject } from "../../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../../core/json/json-exact.ts";
import { inTurns } from "../../../../core/slices/slice-work.ts";
import { DefinitionCache } from "../../../../engine/run/definition-cache.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import { diagnoseInSlices } from "../../dialect/diagnose.ts";
import { type Diagnostic, diagnosticLevels } from "../../dialect/diagnostic.ts";
import type { Flow } from "../../dialect/flow.ts";
import type { RouteFacts } from "../../dialect/route-facts.ts";
import { decodeInSlices, dialectName, flowIdOf, nameOf } from "../../dialect/source.ts";
import { declaredVariables } from "../../dialect/variables.ts";
import type { ExampleInput, FlowVariable, StoreFlowResponse } from "../../wire/api-messages.ts";
import { blobIdIn } from "../../wire/blob-id.ts";
import type { BlobLibrary } from "../blob-library.ts";
import { invalid, notFound } from "../refuse.ts";

export interface FlowDeps {
  readonly runs: Runs;
  /** Where workers may have stored flows. */
  readonly blobs: BlobLibrary;
  /** Components and routes for diagnostics. */
  routes?(): RouteFacts | undefined;
  /** Whether diagnostics also check types. */
  readonly typeCheck?: boolean;
}

/** A stored flow. */
export interface KeptFlow {
  readonly flowId: string;
  /** The compact JSON, and its parsed form. */
  readonly source: string;
  readonly flow: Flow;
  /** False for a flow that is only a blob, because workers may store any blob. */
  readonly stored: boolean;
}

export class Flows {
  readonly #deps: FlowDeps;
  /** Parsed flows, so that most starts need not read and parse theirs. */
  readonly #known = new DefinitionCache<KeptFlow>();

  constructor(deps: FlowDeps) {
    this.#deps = deps;
  }

  /** `text` is the flow as compact JSON. A fatal finding prevents storing it; all findings are returned either way. */
  async store(text: string, dryRun: boolean): Promise<Encodable<typeof StoreFlowResponse>> {
    const flow = await inTurns(decodeInSlices(text));
    const flowId = flowIdOf(text);
    const { typeCheck = false } = this.#deps;
    const routes = this.#deps.routes?.();
    const found = await inTurns(diagnoseInSlices(flow, routes === undefined ? { typeCheck } : { routes, typeCheck }));
    const stored = !dryRun && !found.some(({ level }) => level === "fatal");
    if (stored) await this.#define(text, flow, flowId);
    const count = (level: Diagnostic["level"]) => found.filter((each) => each.level === level).length;
    return {
      flowId,
      stored,
      diagnostics: {
        diagnostics: found.map(renderDiagnostic),
        numFatal: count("fatal"),
        numError: count("error"),
        numWarning: count("warning"),
      },
    };
  }

  /** Stores an inline flow of a step and returns its id. Throws a GrpcError when the flow cannot run. */
  async keepInline(document: JsonObject): Promise<string> {
    const text = writeExact(document);
    const flowId = flowIdOf(text);
    if ((await this.#find(flowId))?.stored !== true) await this.#define(text, await inTurns(decodeInSlices(text)), flowId);
    return flowId;
  }

  async get(id: string): Promise<{ flow: JsonObject; flowId: string; allExamples: Encodable<typeof ExampleInput>[] }> {
    const { source, flow, flowId } = await this.known(id);
    const allExamples = flow.examples.map(({ name, description, input }) => {
      return { name, ...(description === null ? {} : { description }), input };
    });
    return { flow: parseExact(source) as JsonObject, flowId, allExamples };
  }

  async variables(id: string): Promise<{ variables: { [name: string]: Encodable<typeof FlowVariable> }; flowId: string }> {
    const { flow, flowId } = await this.known(id);
    const declared = [...(declaredVariables(flow.schemas)?.values() ?? [])].map((variable) => {
      const { name, description, required, schema, envVar } = variable;
      const shown: Encodable<typeof FlowVariable> = {
        ...(description === null ? {} : { description }),
        ...(variable.default === undefined ? {} : { defaultValue: variable.default }),
        required,
        ...(isObject(schema) ? { schema: schema as JsonObject } : {}),
        ...(envVar === null ? {} : { envVar }),
      };
      return [name, shown] as const;
    });
    return { variables: Object.fromEntries(declared), flowId };
  }

  /** Checks only the form of the id. */
  checkId(id: string): string {
    // A flow from a file was not stored over this API. Its id is that of its definition, and so is the flow id of its runs.
    const flowId = uuidOf(id) === undefined ? blobIdIn(id) : id;
    if (flowId === undefined) throw invalid("flow_id", `is ${JSON.stringify(id.slice(0, 100))}, expected 64 hexadecimal digits`);
    return flowId;
  }

  async known(id: string): Promise<KeptFlow> {
    const flowId = this.checkId(id);
    const found = await this.#find(flowId);
    if (found === undefined) throw notFound("flow", flowId);
    return found;
  }

  /** False when the flow does not exist or is only a blob. */
  async isStored(id: string): Promise<boolean> {
    const flowId = this.checkId(id);
    return this.#known.has(flowId) || (await this.text(flowId)) !== undefined;
  }

  /** Stores a flow that was only a blob, because it is about to run. */
  async keep(kept: KeptFlow): Promise<void> {
    if (!kept.stored) await this.#define(kept.source, kept.flow, kept.flowId);
  }

  /** The text of a flow that is stored as a definition. */
  async text(flowId: string): Promise<string | undefined> {
    const definition = await this.#deps.runs.definitionById(flowId);
    return definition?.dialect === dialectName ? definition.source : undefined;
  }

  async #find(flowId: string): Promise<KeptFlow | undefined> {
    const known = this.#known.get(flowId);
    if (known !== undefined) return known;
    const text = await this.text(flowId);
    if (text !== undefined) return this.#remember({ flowId, source: text, flow: await inTurns(decodeInSlices(text)), stored: true });
    const blob = await this.#deps.blobs.find(flowId);
    const put = blob === undefined ? undefined : await this.#deps.blobs.jsonText(blob);
    return put === undefined ? undefined : { flowId, source: put, flow: await inTurns(decodeInSlices(put)), stored: false };
  }

  async #define(source: string, flow: Flow, flowId: string): Promise<KeptFlow> {
    await this.#deps.runs.define({ id: flowId, name: nameOf(flow, flowId), dialect: dialectName, source });
    return this.#remember({ flowId, source, flow, stored: true });
  }

  #remember(kept: KeptFlow): KeptFlow {
    return this.#known.set(kept.flowId, kept, kept);
  }
}

function renderDiagnostic({ kind, code, level, message, path, experimental }: Diagnostic) {
  return { kind, code, level: diagnosticLevels[level], formatted: message, path, experimental };
}
