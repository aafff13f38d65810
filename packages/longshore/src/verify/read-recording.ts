// Reads recordings. A last line without a line end was cut off when its process ended; the process had not acted on it.

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { LongshoreError, toError } from "../core/errors.ts";
import { isObject } from "../core/json/json.ts";
import type { PlacedLine } from "./recorded-rules.ts";

const kinds = ["taken", "reported", "run-started", "run-ordered", "run-ended"];

export function readRecording(path: string): PlacedLine[] {
  const lines = textOf(path).split("\n");
  lines.pop();
  return lines.map((text, at) => lineOf(text, `${basename(path)}:${at + 1}`));
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `The recording ${path} cannot be read: ${toError(cause).message}.`, { cause });
  }
}

function lineOf(text: string, where: string): PlacedLine {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    // Invalid JSON is reported below, with what was expected.
  }
  if (isObject(line) && kinds.includes(String(line.kind)) && typeof line.at === "number" && typeof line.runId === "string") {
    return { ...line, where } as unknown as PlacedLine;
  }
  throw new LongshoreError("LONGSHORE_BAD_INPUT", `${where} is not a line of a recording, expected what --record writes.`, {
    detail: { field: where, expected: `a JSON object whose kind is one of ${kinds.join(", ")}` },
  });
}
