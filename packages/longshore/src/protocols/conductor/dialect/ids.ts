// Conductor knows each try of a task by an id of its own. Ours is the task's id and the number of the try, so that it needs no table.

export interface AttemptId {
  readonly taskId: string;
  readonly attempt: number;
}

export function attemptIdOf(taskId: string, attempt: number): string {
  return `${taskId}.${attempt}`;
}

/** Undefined for what cannot be an id of ours. */
export function parseAttemptId(text: string): AttemptId | undefined {
  const dot = text.lastIndexOf(".");
  const number = text.slice(dot + 1);
  if (dot <= 0 || !/^(0|[1-9]\d{0,8})$/.test(number)) return undefined;
  return { taskId: text.slice(0, dot), attempt: Number(number) };
}
