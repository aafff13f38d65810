// The program of a backup: copies a data file, as of one moment, into a new one.

import { answerParent } from "./child.ts";
import { openDatabase } from "./driver.ts";

await answerParent(async (source, target) => {
  const db = await openDatabase(source as string, { readOnly: true });
  // The file is opened for reading, so it cannot be changed; the copy is another file.
  db.exec("PRAGMA query_only=OFF");
  db.prepare("VACUUM INTO ?").run(target as string);
  db.close();
});
