// Records what a server replied to a worker or a client, one JSON object per line. `longshore verify` compares it with what the server
// stored. Each line goes to the kernel in one synchronous write, so `kill -9` loses nothing. Several processes may append to one file.

import { randomUUID } from "node:crypto";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { LongshoreError, toError } from "./errors.ts";
import type { Verdict } from "./verdict.ts";

/** The ids of a piece of work, in the form of its orchestrator. */
export interface RecordedWork {
  readonly transport: string;
  readonly task: string;
  readonly runId: string;
  readonly stepId: string;
  readonly taskId: string;
  readonly grantId: string;
  /** From 1. */
  readonly attempt: number;
}

/** The stored row that recorded work belongs to, as far as its ids show it. */
export interface Address {
  readonly taskId?: string;
  readonly grant?: number;
  /** From 0. */
  readonly attempt?: number;
}

/** Reads the ids of a protocol; returns undefined when they do not have its form. */
export type ReadAddress = (work: RecordedWork) => Address | undefined;

/** Splits an id that ends with a number; returns undefined for other ids. */
export function numbered(text: string, separator: string): { before: string; number: number } | undefined {
  const at = text.lastIndexOf(separator);
  const digits = text.slice(at + 1);
  return at > 0 && /^\d{1,15}$/.test(digits) ? { before: text.slice(0, at), number: Number(digits) } : undefined;
}

export type Recorded =
  /** A worker starts a task that it received. */
  | ({ readonly kind: "taken" } & RecordedWork)
  /** The server replied to a report; `verdict` is null when no reply arrived. */
  | ({
      readonly kind: "reported";
      readonly outcome: "done" | "failed" | "deferred" | "lost";
      readonly verdict: Verdict | null;
    } & RecordedWork)
  /** The server acknowledged a client's request, or reported to the client how a run ended. */
  | {
      readonly kind: "run-started" | "run-ordered" | "run-ended";
      readonly runId: string;
      readonly workflow: string;
      readonly state: string;
    };

/** `session` identifies the process that wrote the line. */
export type RecordedLine = Recorded & { readonly at: number; readonly session: string };

export interface Recorder {
  write(recorded: Recorded): void;
  close(): void;
}

/** Payloads are never written, so a recording can be shared. */
export function openRecorder(path: string, now: () => number = Date.now): Recorder {
  const session = randomUUID();
  let file: number | undefined;
  try {
    file = openForWriting(path);
  } catch (cause) {
    const isUnread = (cause as NodeJS.ErrnoException).code === "ENXIO";
    const reason = isUnread ? "it is a pipe that no program reads" : toError(cause).message;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `The recording ${path} cannot be written: ${reason}.`, {
      cause,
      detail: { field: "record", expected: "a file that this user may write" },
    });
  }
  return {
    write(recorded) {
      if (file !== undefined) writeSync(file, `${JSON.stringify({ at: now(), session, ...recorded })}\n`);
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
    },
  };
}

/** Throws ENXIO for a pipe without a reader. A normal open would block the process, which could not even react to a signal. */
function openForWriting(path: string): number {
  const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK = 0 } = constants;
  const probe = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0o600);
  try {
    // Opens the file again in blocking mode, so that writes wait for a slow reader. The first handle stays open until then: to the reader
    // of a pipe, a pipe without a writer has ended.
    return openSync(path, "a", 0o600);
  } finally {
    closeSync(probe);
  }
}
