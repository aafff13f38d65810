// The default id of a worker contains the id of its process. So people see which process it is, and its parent finds the tasks that it
// held.

import { randomBytes } from "node:crypto";
import { hostname } from "node:os";

/** The beginning of the default ids of the workers of a process on this machine. */
export function workerIdPrefix(pid: number = process.pid): string {
  return `${hostname()}-${pid}-`;
}

/** A new id for a worker of this process. */
export function processWorkerId(): string {
  return `${workerIdPrefix()}${randomBytes(4).toString("hex")}`;
}
