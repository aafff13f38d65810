// Conductor identifies each attempt of a task by its own id. Ours is the task's id and the number of the attempt, so that it needs no
// table.

export interface AttemptId {
  readonly taskId: string;
  readonly attempt: number;
}

export function attemptIdOf(taskId: string, attempt: number): string {
  return `${taskId}.${attempt}`;
}

/** Undefined for a text that is not one of our ids. */
export function parseAttemptId(text: string): AttemptId | undefined {
  const dot = text.lastIndexOf(".");
  const number = text.slice(dot + 1);
  if (dot <= 0 || !/^(0|[1-9]\d{0,8})$/.test(number)) return undefined;
  return { taskId: text.slice(0, dot), attempt: Number(number) };
}
