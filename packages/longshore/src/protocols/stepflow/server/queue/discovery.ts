// Requesting the components of workers: an assignment like any other on the wire, but no task of the board. It needs no heartbeat, and one
// that is not answered in time is repeated by its caller.

import type { Clock } from "../../../../core/clock.ts";
import type { MakeId } from "../../../../core/ids.ts";
import { deeperThan, type Json, jsonDepthMax } from "../../../../core/json/json.ts";
import { JsonScan } from "../../../../core/json/json-scan.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import type { ComponentInfo, TaskAssignment } from "../../wire/messages.ts";
import { componentsMax, pathOf, type RegisteredComponent } from "../config/registered-components.ts";
import { invalid } from "../refuse.ts";

const prefix = "discovery-";
/** JSON values in all schemas of one list: as many as a report may hold. */
const schemaValuesMax = 131_072;

export interface Question {
  readonly id: string;
  readonly assignment: Encodable<typeof TaskAssignment>;
  /** True once the answer is kept; false when none came in time, or the worker had none. */
  readonly answered: Promise<boolean>;
  /** No answer will come any more. */
  drop(): void;
}

/** Handles an answer. Rejects when it cannot be stored: the worker has to send it again. */
type Keep = (components: readonly RegisteredComponent[]) => Promise<void>;

interface Open {
  readonly keep: Keep;
  end(answered: boolean): void;
}

export class Discoveries {
  readonly #clock: Clock;
  readonly #makeId: MakeId;
  readonly #open = new Map<string, Open>();

  constructor(clock: Clock, makeId: MakeId) {
    this.#clock = clock;
    this.#makeId = makeId;
  }

  /** Whether an id on the wire is one of these. */
  static owns(wireId: string): boolean {
    return wireId.startsWith(prefix);
  }

  ask(orchestratorServiceUrl: string, patienceMs: number, keep: Keep): Question {
    // Unique forever: an answer to a question of an earlier process must not be taken for one of this.
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

  /** False when nothing waits for it. With null, the worker has reported that it cannot list them. */
  async answer(id: string, components: readonly ComponentInfo[] | null): Promise<boolean> {
    const open = this.#open.get(id);
    if (open === undefined) return false;
    if (components !== null) await open.keep(registeredOf(components));
    open.end(components !== null);
    return true;
  }
}

/** Releases before 0.13 send an id and no path. */
function registeredOf(components: readonly ComponentInfo[]): RegisteredComponent[] {
  const field = "list_components.components";
  if (components.length > componentsMax) throw invalid(field, `has ${components.length} entries, at most ${componentsMax} are taken`);
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

/** Schemas come as texts, in which the fields of the message do not count what they hold: `scan` counts the values of all of them. */
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
