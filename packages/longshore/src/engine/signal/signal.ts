// Signals: values that callers send to a run under a name. A run takes them one by one, oldest first; a signal that no step of the run waits
// for is kept until one does.

import { LongshoreError } from "../../core/errors.ts";
import { checkName, isName } from "../../core/names.ts";
import { shown } from "../../core/text.ts";

/** Names are shown in lists and are part of an index. */
export const signalNameMax = 200;
/** Long enough for a hash, a URL, or the id of a message in another system. */
export const signalKeyMax = 500;
/**
 * Maximum number of signals that one run keeps until a step takes them. A caller that sends more is much faster than the run, or uses a
 * wrong name.
 */
export const keptSignalsMax = 1_000;
/** Bytes of all signals that one run keeps: the same as the largest request with a payload. */
export const keptSignalBytesMax = 16 * 1_048_576;
/**
 * How many signals of a run are remembered, with their keys, after a step has taken them. The rows of older ones are removed, because a run
 * may take any number of signals.
 */
export const rememberedSignalsMax = 10_000;

export interface Signal {
  readonly runId: string;
  /** Place among the signals of its run, from 1. */
  readonly number: number;
  readonly name: string;
  /** A second signal with the same key changes nothing. */
  readonly key: string | null;
  /** JSON text. Null when a step has taken the signal: then the value is the output of the step. */
  readonly value: string | null;
  readonly sentAt: number;
  readonly takenAt: number | null;
  /** The step that has taken it, and its attempt; null for a value that did not fit the schema of the step that waited. */
  readonly taskId: string | null;
  readonly attempt: number | null;
}

export interface NewSignal {
  readonly name: string;
  /** JSON text. */
  readonly value: string;
  readonly key?: string | null;
}

/** The counts of signals in the row of a run. */
export interface SignalCounts {
  /** All that were ever sent. */
  readonly sent: number;
  readonly kept: number;
  /** Bytes of those that are kept. */
  readonly bytes: number;
}

const none: SignalCounts = { sent: 0, kept: 0, bytes: 0 };

export function signalCountsOf({ signals }: { readonly signals: string | null }): SignalCounts {
  if (signals === null) return none;
  const [sent, kept, bytes] = JSON.parse(signals) as [number, number, number];
  return { sent, kept, bytes };
}

export function signalCountsText({ sent, kept, bytes }: SignalCounts): string {
  return JSON.stringify([sent, kept, bytes]);
}

/** Whether a value can be the name of a signal. */
export function isSignalName(name: unknown): name is string {
  return typeof name === "string" && name.length > 0 && name.length <= signalNameMax && isName(name);
}

/** Throws LONGSHORE_BAD_INPUT for a name or key that cannot be stored. */
export function checkSignal({ name, key }: NewSignal): void {
  checkText(name, "name", signalNameMax);
  if (key != null) checkText(key, "key", signalKeyMax);
}

function checkText(text: string, field: string, max: number): void {
  checkName(text, field, "a signal");
  if (text.length > 0 && text.length <= max) return;
  const expected = `1 to ${max} characters`;
  const given = text.length === 0 ? "empty" : `${text.length} characters long (${shown(text)})`;
  throw new LongshoreError("LONGSHORE_BAD_INPUT", `The ${field} of a signal is ${given}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
