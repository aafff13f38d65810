// The program of a thread that reads one definition file, posts the result, and ends.

import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { LongshoreError } from "../core/errors.ts";
import type { DefinitionText } from "../protocols/server-half.ts";
import { definitionParser } from "./definition-file.ts";
import type { ReadOutcome } from "./definition-reader.ts";

const parseDefinition = await definitionParser();

function outcomeOf({ text, file }: DefinitionText): ReadOutcome {
  try {
    return { parsed: parseDefinition(text, file) };
  } catch (error) {
    if (!(error instanceof LongshoreError)) throw error;
    const { code, message, detail } = error;
    return { refused: { code, message, detail } };
  }
}

(parentPort as MessagePort).postMessage(outcomeOf(workerData as DefinitionText));
