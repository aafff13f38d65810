// The form in which flows are kept: compact JSON, in the order in which it was written. A flow's id is made from it.

import { createHash } from "node:crypto";
import { deeperThan, type Json, type JsonObject, jsonDepthMax } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import { parseInSlices } from "../../../core/json/json-slices.ts";
import type { Sliced } from "../../../core/slices/slice-work.ts";
import { type Flow, type Refuse, readInSlices, refuse } from "./flow.ts";

export const dialectName = "stepflow";

export function encodeFlow(document: JsonObject): string {
  return writeExact(document);
}

/** 64 hexadecimal digits. */
export function flowIdOf(source: string): string {
  return createHash("sha256").update(source).digest("hex");
}

/** For texts that `encodeFlow` made, from any request. */
export function* decodeInSlices(source: string, refused: Refuse = refuse): Sliced<Flow> {
  if (deeperThan(source)) throw refused([], "The flow is nested too deeply.", `at most ${jsonDepthMax} levels`);
  return yield* readInSlices((yield* parseInSlices(source)) as Json, refused);
}

/** A definition needs a name; a flow need not have one. */
export function nameOf(flow: Pick<Flow, "name">, flowId: string): string {
  return flow.name?.trim() || `flow-${flowId.slice(0, 12)}`;
}
