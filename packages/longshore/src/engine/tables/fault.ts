// The fault of a task or an attempt as one text: `failed`, or with the deadline that passed, `timed-out:claimBy`.

import type { Deadline, Fault, TaskRow } from "../board/task.ts";

type Faulty = Pick<TaskRow, "fault" | "overdue">;

export function faultText({ fault, overdue }: Faulty): string | null {
  return fault === null || overdue === null ? fault : `${fault}:${overdue}`;
}

/** The row that a fault is read from. */
export interface FaultRow {
  readonly fault: string | null;
  readonly error: string | null;
  /** How often the task was handed out. */
  readonly grants: number;
}

/** Rows of earlier versions name neither the deadline nor a task that could not be made: for them the error text is compared. */
export function faultOfRow({ fault: text, error, grants }: FaultRow): Faulty {
  if (text === null) return { fault: null, overdue: null };
  const [fault, overdue] = text.split(":") as [Fault, Deadline | undefined];
  if (grants === 0 && isEarlierUnmade(fault, error)) return { fault: "unmade", overdue: null };
  return { fault, overdue: overdue ?? earlierOverdue(fault, error) };
}

const earlierUnmade = ["Cannot map a dynamic task", "No evaluator registered", "Fork task definition is not"];

function isEarlierUnmade(fault: Fault, error: string | null): boolean {
  return (fault === "final" || fault === "failed") && error !== null && earlierUnmade.some((text) => error.startsWith(text));
}

function earlierOverdue(fault: Fault, error: string | null): Deadline | null {
  if (fault === "lost") return error === null || error === "lease expired" ? "holdUntil" : null;
  if (fault !== "timed-out") return null;
  if (error?.includes("nobody took it") || error?.includes("(claimBy)")) return "claimBy";
  return error?.includes("the task took too long") || error?.includes("(totalBy)") ? "totalBy" : "endBy";
}
