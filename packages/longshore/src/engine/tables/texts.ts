// Tables of the columns with texts of unlimited length, to find hashes of blobs in them.

import type { TableSpec, Value } from "../rows.ts";

export type Text = string | null;

/** A row of one of these tables: its position in the order of the scan, and its texts. */
export interface Texts {
  readonly id: string;
  readonly at: readonly Value[];
  readonly texts: readonly Text[];
  /** Set for a run. */
  readonly definitionId?: string;
}

/** Open runs in the order of their index. */
export const runTexts: TableSpec<Texts> = {
  name: "run",
  key: ["id"],
  columns: columns("id", "workflow", "definition_id", "input", "variables", "settings", "backlog"),
  of: (row) => ({
    id: row.id as string,
    at: [row.workflow as string, row.id as string],
    texts: [row.input, row.variables, row.settings, row.backlog] as Text[],
    definitionId: row.definition_id as string,
  }),
};

export const taskTexts: TableSpec<Texts> = {
  name: "task",
  key: ["id"],
  columns: columns("id", "input", "output"),
  of: (row) => ({ id: row.id as string, at: [row.id as string], texts: [row.input, row.output] as Text[] }),
};

export const partTexts: TableSpec<Texts> = {
  name: "part",
  key: ["task_id", "life", "sequence"],
  columns: columns("task_id", "life", "sequence", "value"),
  of: (row) => ({
    id: row.task_id as string,
    at: [row.task_id as string, row.life as number, row.sequence as number],
    texts: [row.value as Text],
  }),
};

export const signalTexts: TableSpec<Texts> = {
  name: "signal",
  key: ["run_id", "number"],
  columns: columns("run_id", "number", "value"),
  of: (row) => ({ id: row.run_id as string, at: [row.run_id as string, row.number as number], texts: [row.value as Text] }),
};

export const messageTexts: TableSpec<Texts> = {
  name: "message",
  key: ["id"],
  columns: columns("id", "body"),
  of: (row) => ({ id: String(row.id), at: [row.id as number], texts: [row.body as Text] }),
};

/** Columns for tables that are only read. */
function columns(...names: string[]): TableSpec<Texts>["columns"] {
  return names.map((name) => [name, () => null] as const);
}
