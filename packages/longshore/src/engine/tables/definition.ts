// The table of definitions.

import type { Definition } from "../run/dialect.ts";
import { plainTable } from "./plain.ts";

export const definitionTable = plainTable<Definition>("definition", ["id"], {
  id: "id",
  name: "name",
  version: "version",
  dialect: "dialect",
  source: "source",
  createdAt: "created_at",
});

/** For lists of names. */
export type DefinitionName = Pick<Definition, "name" | "dialect" | "createdAt">;

export const definitionNameTable = plainTable<DefinitionName>("definition", ["id"], {
  name: "name",
  dialect: "dialect",
  createdAt: "created_at",
});

/** What lists of runs show of a definition: not its source, which may have megabytes. */
export type DefinitionHead = Pick<Definition, "id" | "version" | "dialect">;

export const definitionHeadTable = plainTable<DefinitionHead>("definition", ["id"], { id: "id", version: "version", dialect: "dialect" });

/** Whether there is one. */
export const definitionIdTable = plainTable<Pick<Definition, "id">>("definition", ["id"], { id: "id" });
