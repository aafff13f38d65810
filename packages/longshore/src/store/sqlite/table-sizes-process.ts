// The program that measures the tables of a data file: their pages and those of their indexes.

import { answerParent } from "./child.ts";
import { openDatabase } from "./driver.ts";

const sizes = `
  SELECT coalesce(tbl_name, 'sqlite_schema') AS name, sum(pgsize) AS bytes
  FROM dbstat LEFT JOIN sqlite_schema USING (name) WHERE aggregate = TRUE GROUP BY 1 ORDER BY bytes DESC`;

await answerParent(async (file) => {
  const db = await openDatabase(file as string, { readOnly: true });
  try {
    return db
      .prepare(sizes)
      .all()
      .map(({ name, bytes }) => ({ name: String(name), bytes: Number(bytes) }));
  } finally {
    db.close();
  }
});
