// The table of definitions.

import type { DefinitionHead, DefinitionName } from "../run/catalogue.ts";
import type { Definition } from "../run/dialect.ts";
import { plainTable } from "./plain-table.ts";

export const definitionTable = plainTable<Definition>("definition", ["id"], {
  id: "id",
  name: "name",
  version: "version",
  dialect: "dialect",
  source: "source",
  createdAt: "created_at",
});

export const definitionNameTable = plainTable<DefinitionName>("definition", ["id"], {
  name: "name",
  dialect: "dialect",
  createdAt: "created_at",
});

export const definitionHeadTable = plainTable<DefinitionHead>("definition", ["id"], {
  id: "id",
  version: "version",
  dialect: "dialect",
  createdAt: "created_at",
});

/** Reads only the id, to find out whether a definition exists. */
export const definitionIdTable = plainTable<Pick<Definition, "id">>("definition", ["id"], { id: "id" });
