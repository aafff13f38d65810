// The model server as a process that can be killed: `node --import tsx model-process.ts durable|volatile --port P --data DIR`.
// The volatile one keeps its definitions, as a server that loads them from files would, and forgets its runs.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Journal } from "./model-board.ts";
import { startModelServer } from "./model-server.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: { type: "string" }, data: { type: "string" }, workflows: { type: "string" }, json: { type: "boolean" } },
});

const directory = values.data ?? ".";
mkdirSync(directory, { recursive: true });
const file = join(directory, "state.json");
const journal: Journal = {
  load() {
    if (!existsSync(file)) return undefined;
    const state = readFileSync(file, "utf8");
    return positionals[0] === "durable"
      ? state
      : JSON.stringify({ ...(JSON.parse(state) as object), runs: [], keys: [], told: [], lines: [] });
  },
  save(state) {
    // When the process dies in the middle of a write, the state before it must remain.
    writeFileSync(`${file}.new`, state);
    renameSync(`${file}.new`, file);
  },
};
const server = await startModelServer("none", Number(values.port), journal);
process.stdout.write(`${JSON.stringify({ ready: true, url: server.url })}\n`);
