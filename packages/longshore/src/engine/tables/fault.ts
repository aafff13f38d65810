// The fault of a task or an attempt as one text: `failed`, or with the deadline that was missed, `timed-out:claimBy`.

import type { Deadline, Fault, TaskRow } from "../board/task.ts";

type Faulty = Pick<TaskRow, "fault" | "overdue">;

export function faultText({ fault, overdue }: Faulty): string | null {
  return fault === null || overdue === null ? fault : `${fault}:${overdue}`;
}

/** `error` is the text in the same row. Rows of earlier versions name no deadline: there the error text shows it. */
export function faultOfText(text: string | null, error: string | null): Faulty {
  if (text === null) return { fault: null, overdue: null };
  const [fault, overdue] = text.split(":") as [Fault, Deadline | undefined];
  return { fault, overdue: overdue ?? earlierOverdue(fault, error) };
}

function earlierOverdue(fault: Fault, error: string | null): Deadline | null {
  if (fault === "lost") return error === null || error === "lease expired" ? "holdUntil" : null;
  if (fault !== "timed-out") return null;
  if (error?.includes("nobody took it") || error?.includes("(claimBy)")) return "claimBy";
  return error?.includes("the task took too long") || error?.includes("(totalBy)") ? "totalBy" : "endBy";
}
