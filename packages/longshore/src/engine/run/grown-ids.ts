// The ids of definitions that have grown in a run (plan.ts, `Grown`). They contain the id of the definition that they have grown from. If
// no other run can use a definition, its id begins with the id of the run: both are removed together (remains.ts).

import type { Grown } from "./plan.ts";
import type { Run } from "./run.ts";

type Defined = Pick<Run, "id" | "definitionId">;

const grownFrom = /^(.*)\+grown-[0-9a-f]+$/s;

export function grownIdOf(run: Defined, { hash, own }: Pick<Grown, "hash" | "own">): string {
  return `${own ? `${run.id}.` : ""}${originIdOf(run)}+grown-${hash}`;
}

/** The id of the definition that a run has started with. */
export function originIdOf({ id, definitionId }: Defined): string {
  const origin = grownFrom.exec(definitionId)?.[1];
  if (origin === undefined) return definitionId;
  return origin.startsWith(`${id}.`) ? origin.slice(id.length + 1) : origin;
}

export function isGrown(definitionId: string): boolean {
  return grownFrom.test(definitionId);
}
