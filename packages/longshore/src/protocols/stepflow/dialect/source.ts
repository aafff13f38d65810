// The stored form of flows: compact JSON with its original key order. The flow's id is the hash of it.

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

/** Reads a text that `encodeFlow` has written. */
export function* decodeInSlices(source: string, refused: Refuse = refuse): Sliced<Flow> {
  if (deeperThan(source)) throw refused([], "The flow is nested too deeply.", `at most ${jsonDepthMax} levels`);
  return yield* readInSlices((yield* parseInSlices(source)) as Json, refused);
}

/** A definition needs a name, but a flow may have none. */
export function nameOf(flow: Pick<Flow, "name">, flowId: string): string {
  return flow.name?.trim() || `flow-${flowId.slice(0, 12)}`;
}
