// What the API answers, as types. Only types: the commands load none of the server's code for them.

import type { z } from "zod";
import type { definitionShape, runShape, stepShape } from "../server/admin/shapes.ts";

export type Run = z.output<typeof runShape>;
export type Step = z.output<typeof stepShape>;
export type Definition = z.output<typeof definitionShape>;

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next: string | null;
}
