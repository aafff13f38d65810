// Searching runs on SQLite: a question is put together from its parts, every value bound. It looks at a bounded number of runs.

import { pageMax, type RunSearch, searchMax } from "../../run/reader.ts";
import type { Run } from "../../run/run.ts";
import type { Database } from "./driver.ts";
import { runColumns, runOf } from "./run-rows.ts";

type Value = string | number;

const orders = { ended: "ended_at", workflow: "workflow", state: "state" } as const;

export function searchRuns(db: Database, search: RunSearch): { total: number; runs: Run[] } {
  const parts: string[] = [];
  const values: Value[] = [];
  const where = (sql: string, ...bound: Value[]) => {
    parts.push(sql);
    values.push(...bound);
  };
  const oneOf = (column: string, wanted: readonly string[] | undefined) => {
    if (wanted !== undefined) where(`${column} IN (SELECT value FROM json_each(?))`, JSON.stringify(wanted));
  };
  oneOf("id", search.ids);
  oneOf("workflow", search.workflows);
  oneOf("state", search.states);
  oneOf("alias", search.aliases);
  // Not the character 0 between them below: a comparison ends at it.
  for (const column of ["id", "workflow", "alias"] as const) {
    const pattern = search.like?.[column];
    if (pattern !== undefined) where(`${column} LIKE ? ESCAPE '\\'`, escaped(pattern).replaceAll("*", "%"));
  }
  if (search.created?.after !== undefined) where("created_at > ?", search.created.after);
  if (search.created?.before !== undefined) where("created_at < ?", search.created.before);
  if (search.ended?.after !== undefined) where("ended_at > ?", search.ended.after);
  if (search.ended?.before !== undefined) where("ended_at < ?", search.ended.before);
  if (search.text !== undefined)
    where(
      `(id || char(10) || workflow || ${["alias", "input", "output", "error"].map((c) => `char(10) || ifnull(${c}, '')`).join(" || ")}) LIKE ? ESCAPE '\\'`,
      like(search.text),
    );
  const condition = parts.length === 0 ? "" : `WHERE ${parts.join(" AND ")}`;
  const total = db.prepare(`SELECT count(*) AS count FROM (SELECT 1 FROM run ${condition} LIMIT ${searchMax})`).get(...values)
    ?.count as number;
  const { by, down } = search.order ?? { by: "created", down: true };
  const direction = down ? "DESC" : "ASC";
  // Ids rise with time, and are in order already.
  const order = by === "created" ? `id ${direction}` : `${orders[by]} ${direction}, id ${direction}`;
  const rows = db.prepare(`SELECT ${runColumns} FROM run ${condition} ORDER BY ${order} LIMIT ? OFFSET ?`);
  return { total, runs: rows.all(...values, Math.min(search.limit, 5 * pageMax), search.offset).map(runOf) };
}

function like(text: string): string {
  return `%${escaped(text)}%`;
}

function escaped(text: string): string {
  return text.replace(/[\\%_]/g, (sign) => `\\${sign}`);
}
