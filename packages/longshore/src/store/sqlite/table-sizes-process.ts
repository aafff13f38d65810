// The program that measures the tables of a data file: their pages and those of their indexes.

import { answerParent } from "./child.ts";
import { openDatabase } from "./driver.ts";

const sizes = `
  SELECT coalesce(tbl_name, 'sqlite_schema') AS part, sum(pgsize) AS bytes
  FROM dbstat LEFT JOIN sqlite_schema USING (name) WHERE aggregate = TRUE GROUP BY part ORDER BY bytes DESC`;

await answerParent(async (file) => {
  const db = await openDatabase(file as string, { readOnly: true });
  try {
    return db
      .prepare(sizes)
      .all()
      .map(({ part, bytes }) => ({ part: String(part), bytes: Number(bytes) }));
  } finally {
    db.close();
  }
});
