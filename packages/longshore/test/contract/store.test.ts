import { afterAll } from "vitest";
import { sqliteFiles, sqliteMemory } from "./sqlite.ts";
import { storeContract } from "./store.ts";

const files = sqliteFiles();
afterAll(() => files.clean());

storeContract("SQLite in a file", files);
storeContract("SQLite in memory", sqliteMemory);
