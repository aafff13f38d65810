// The environment variables that a worker looks at. What the code says goes before them.

export type Environment = { readonly [name: string]: string | undefined };

/** The value of a variable; blank counts as absent. */
export function textOf(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

/** 1, true, yes and on mean yes, as in the reference; anything else means no. */
export function flagOf(env: Environment, name: string): boolean {
  return /^(1|true|yes|on)$/i.test(textOf(env, name) ?? "");
}
