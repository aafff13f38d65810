// Discovery: requests the components of a worker. On the wire it is an assignment like any other, but not a task of the board. It needs no
// heartbeat. The caller repeats it when it is not answered in time.

import type { Clock } from "../../../../core/clock.ts";
import type { MakeId } from "../../../../core/ids.ts";
import { deeperThan, type Json, jsonDepthMax } from "../../../../core/json/json.ts";
import { JsonScan } from "../../../../core/json/json-scan.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import type { ComponentInfo, TaskAssignment } from "../../wire/messages.ts";
import { componentsMax, pathOf, type RegisteredComponent } from "../config/registered-components.ts";
import { invalid } from "../refuse.ts";

const prefix = "discovery-";
/** How many answered questions are remembered. When the response to a call was lost, the call comes again within seconds. */
const answeredMax = 1_000;
/** Maximum number of JSON values in all schemas of one list. A report has the same limit. */
const schemaValuesMax = 131_072;

export interface Question {
  readonly id: string;
  readonly assignment: Encodable<typeof TaskAssignment>;
  /** Resolves with true when the answer is stored; with false when no answer came in time, or the worker could not list its components. */
  readonly answered: Promise<boolean>;
  /** Stops waiting for the answer. */
  drop(): void;
}

/** Stores an answer. Rejects when that fails: the worker must send it again. */
type Keep = (components: readonly RegisteredComponent[]) => Promise<void>;

interface Open {
  readonly keep: Keep;
  end(answered: boolean): void;
}

export class Discoveries {
  readonly #clock: Clock;
  readonly #makeId: MakeId;
  readonly #open = new Map<string, Open>();
  /** For each question, the call that has answered it; the oldest first. */
  readonly #answered = new Map<string, string>();

  constructor(clock: Clock, makeId: MakeId) {
    this.#clock = clock;
    this.#makeId = makeId;
  }

  /** Whether a wire id belongs to a discovery. */
  static owns(wireId: string): boolean {
    return wireId.startsWith(prefix);
  }

  ask(orchestratorServiceUrl: string, patienceMs: number, keep: Keep): Question {
    // Ids are never reused: this process must not accept an answer to an earlier process.
    const id = `${prefix}${this.#makeId(this.#clock.now())}`;
    let end: Open["end"] = () => {};
    const answered = new Promise<boolean>((resolve) => {
      const stop = this.#clock.at(this.#clock.now() + patienceMs, () => end(false));
      end = (outcome) => {
        stop();
        this.#open.delete(id);
        resolve(outcome);
      };
    });
    this.#open.set(id, { keep, end });
    const assignment = { taskId: id, listComponents: {}, context: { orchestratorServiceUrl, rootRunId: "" }, heartbeatIntervalSecs: 0 };
    return { id, assignment, answered, drop: () => end(false) };
  }

  isOpen(id: string): boolean {
    return this.#open.has(id);
  }

  /** Returns whether the same call has already answered the question. A call is performed again when its response was lost. */
  wasAnsweredBy(id: string, call: string): boolean {
    return this.#answered.get(id) === call;
  }

  /** Returns false when no discovery waits for this answer. Null means that the worker cannot list its components. */
  async answer(id: string, components: readonly ComponentInfo[] | null, call?: string): Promise<boolean> {
    const open = this.#open.get(id);
    if (open === undefined) return false;
    if (components !== null) await open.keep(registeredOf(components));
    open.end(components !== null);
    if (call !== undefined) this.#note(id, call);
    return true;
  }

  #note(id: string, call: string): void {
    this.#answered.set(id, call);
    const [oldest] = this.#answered.keys();
    if (this.#answered.size > answeredMax && oldest !== undefined) this.#answered.delete(oldest);
  }
}

/** Releases before 0.13 send an id and no path. */
function registeredOf(components: readonly ComponentInfo[]): RegisteredComponent[] {
  const field = "list_components.components";
  if (components.length > componentsMax) throw invalid(field, `has ${components.length} entries, expected at most ${componentsMax}`);
  const scan = new JsonScan();
  return components.map(({ componentId, path, description, inputSchema, outputSchema }, at) => {
    if (componentId === "") throw invalid(`${field}[${at}].component_id`, "is empty, expected the component's id");
    return {
      id: componentId,
      path: pathOf(componentId, path),
      ...(description === undefined ? {} : { description }),
      ...(inputSchema === undefined ? {} : { inputSchema: schemaIn(inputSchema, `${field}[${at}].input_schema`, scan) }),
      ...(outputSchema === undefined ? {} : { outputSchema: schemaIn(outputSchema, `${field}[${at}].output_schema`, scan) }),
    };
  });
}

/** Schemas are texts, so the message's own limit does not count their values. `scan` counts the values of all schemas. */
function schemaIn(text: string, field: string, scan: JsonScan): Json {
  scan.push(Buffer.from(text));
  if (scan.values > schemaValuesMax)
    throw invalid(field, `is one schema too many, expected at most ${schemaValuesMax} values in all of them`);
  if (deeperThan(text)) throw invalid(field, `is nested deeper than ${jsonDepthMax} levels`);
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw invalid(field, `is ${JSON.stringify(text.slice(0, 80))}, expected a JSON Schema as JSON text`);
  }
}
