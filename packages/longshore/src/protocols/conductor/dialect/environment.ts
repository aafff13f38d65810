// The part of the process's environment that definitions may read: only variables that are meant for Conductor's definitions and workers.

/** `${workflow.env.NAME}`; null when there is none. */
export function environmentValue(name: string): string | null {
  return process.env[`CONDUCTOR_ENV_${name}`] ?? null;
}

/** `${workflow.secrets.NAME}`, which is never stored; null when there is none. */
export function secretValue(name: string): string | null {
  return process.env[`CONDUCTOR_SECRET_${name}`] ?? null;
}
