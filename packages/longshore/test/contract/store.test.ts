import { afterAll } from "vitest";
import { missingRows } from "./missing-rows.ts";
import { sqliteFiles, sqliteMemory } from "./sqlite.ts";
import { storeContract } from "./store.ts";

const files = sqliteFiles();
const missing = sqliteFiles((rows) => missingRows(rows));
afterAll(() => {
  files.clean();
  missing.clean();
});

storeContract("SQLite in a file", files);
storeContract("SQLite in memory", sqliteMemory);
storeContract("rows that are read later", missing);
