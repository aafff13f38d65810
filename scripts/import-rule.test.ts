import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { findImportViolations } from "./import-rule.ts";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Writes a small source tree and answers what the rule says about it. */
function check(files: Record<string, string>): string[] {
  const root = mkdtempSync(join(tmpdir(), "longshore-imports-"));
  folders.push(root);
  for (const [path, body] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), body);
  }
  return findImportViolations(root);
}

const clean = {
  "clock.ts": `import { Schema } from "./schema/schema.ts";`,
  "schema/schema.ts": "",
  "engine/board/board.ts": `import { now } from "../../clock.ts";`,
  "engine/board/local-board.ts": `import type { Board } from "./board.ts";`,
  "runner/runner.ts": `import { now } from "../clock.ts";`,
  "protocol/alpha/wire.ts": `import { now } from "../../clock.ts";`,
  "protocol/alpha/worker.ts": `import { run } from "../../runner/runner.ts";\nimport { shape } from "./wire.ts";`,
  "protocol/alpha/routes.ts": `import { board } from "../../engine/board/board.ts";\nimport { shape } from "./wire.ts";`,
  "dialect/alpha/parse.ts": `import { shape } from "../../protocol/alpha/wire.ts";`,
  "store/sqlite/store.ts": `import { LocalBoard } from "../../engine/board/local-board.ts";`,
  "server/server.ts": `import { open } from "../store/sqlite/store.ts";`,
};

describe("import rule", () => {
  it("accepts a tree that follows the layers", () => {
    expect(check(clean)).toEqual([]);
  });

  it("refuses a value import that points upwards", () => {
    expect(check({ ...clean, "engine/board/lanes.ts": `import { LocalBoard } from "./local-board.ts";` })).toEqual([
      "engine/board/lanes.ts: the engine layer may not import engine/board/local-board.ts (operations)",
    ]);
  });

  it("refuses a type-only import that points upwards", () => {
    expect(check({ ...clean, "runner/execute.ts": `import type { Board } from "../engine/board/board.ts";` })).toHaveLength(1);
  });

  it("refuses a dynamic import that points upwards", () => {
    expect(check({ ...clean, "work.ts": `const server = await import("./server/server.ts");` })).toHaveLength(1);
  });

  it("refuses a re-export that points upwards", () => {
    expect(check({ ...clean, "backoff.ts": `export { board } from "./engine/board/board.ts";` })).toHaveLength(1);
  });

  it("refuses a type written as an inline import", () => {
    expect(check({ ...clean, "json.ts": `export type B = import("./engine/board/board.ts").Board;` })).toHaveLength(1);
  });

  it("refuses an import that spans several lines", () => {
    expect(check({ ...clean, "engine/board/limits.ts": `import {\n  one,\n  two,\n} from "../../server/server.ts";` })).toHaveLength(1);
  });

  it("refuses a store outside the server", () => {
    const store = `import { open } from "../store/sqlite/store.ts";`;
    expect(check({ ...clean, "cli/doctor.ts": store })).toHaveLength(1);
    expect(check({ ...clean, "engine/commit.ts": store })).toHaveLength(1);
  });

  it("refuses a protocol that takes part in operations", () => {
    const local = `import { LocalBoard } from "../../engine/board/local-board.ts";`;
    expect(check({ ...clean, "protocol/alpha/helper.ts": local })).toHaveLength(1);
  });

  it("refuses one protocol that knows another", () => {
    expect(check({ ...clean, "protocol/beta/routes.ts": `import { shape } from "../alpha/wire.ts";` })).toEqual([
      "protocol/beta/routes.ts: may not import protocol/alpha/wire.ts, which belongs to another protocol or store",
    ]);
  });

  it("refuses a dialect that knows a foreign protocol", () => {
    expect(check({ ...clean, "dialect/beta/parse.ts": `import { shape } from "../../protocol/alpha/wire.ts";` })).toHaveLength(1);
  });

  it("refuses a worker half that reaches the board through another file of its folder", () => {
    const tree = {
      ...clean,
      "protocol/alpha/worker.ts": `import { help } from "./helper.ts";`,
      "protocol/alpha/helper.ts": `import { board } from "../../engine/board/board.ts";`,
    };
    expect(check(tree)).toEqual(["protocol/alpha/worker.ts: reaches engine/board/board.ts (engine) through protocol/alpha/helper.ts"]);
  });

  it("follows a half through all folders of its protocol", () => {
    const tree = {
      ...clean,
      "protocol/alpha/grpc/worker.ts": `import { help } from "../helper.ts";`,
      "protocol/alpha/helper.ts": `import { post } from "../../engine/board/board.ts";`,
    };
    expect(check(tree)).toEqual(["protocol/alpha/grpc/worker.ts: reaches engine/board/board.ts (engine) through protocol/alpha/helper.ts"]);
  });

  it("refuses a server half that knows the runner", () => {
    const tree = { ...clean, "protocol/alpha/routes.ts": `import type { Slot } from "../../runner/runner.ts";` };
    expect(check(tree)).toEqual(["protocol/alpha/routes.ts: reaches runner/runner.ts (runner)"]);
  });

  it("refuses a database package outside the store", () => {
    expect(check({ ...clean, "engine/board/lanes.ts": `import { DatabaseSync } from "node:sqlite";` })).toHaveLength(1);
  });

  it("refuses the package's own public name", () => {
    expect(check({ ...clean, "server/admin.ts": `import { task } from "longshore";` })).toHaveLength(1);
  });

  it("refuses a folder it does not know", () => {
    expect(check({ ...clean, "misc/thing.ts": "" })).toHaveLength(1);
  });

  it("refuses an empty tree, so that a wrong path cannot look like success", () => {
    expect(check({})).toHaveLength(1);
  });

  it("holds for the real source", () => {
    expect(findImportViolations(fileURLToPath(new URL("../packages/longshore/src", import.meta.url)))).toEqual([]);
  });
});
