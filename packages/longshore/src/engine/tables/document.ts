// The table of documents.

import type { TableSpec } from "../rows.ts";
import type { Document } from "../run/documents.ts";
import { plainTable } from "./plain-table.ts";

export const documentTable: TableSpec<Document> = plainTable<Document>("document", ["kind", "name", "version"], {
  kind: "kind",
  name: "name",
  version: "version",
  body: "body",
  createdAt: "created_at",
  updatedAt: "updated_at",
});
