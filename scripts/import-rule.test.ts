import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { findImportViolations, findNamedProtocols } from "./import-rule.ts";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Writes a small source tree and returns the problems that the rule reports for it. */
function check(files: Record<string, string>, rule = findImportViolations): string[] {
  const root = mkdtempSync(join(tmpdir(), "longshore-imports-"));
  folders.push(root);
  for (const [path, body] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), body);
  }
  return rule(root);
}

const clean = {
  "core/clock.ts": `import { Schema } from "./schema/schema.ts";`,
  "core/schema/schema.ts": "",
  "engine/board/board.ts": `import { now } from "../../core/clock.ts";`,
  "engine/board/local-board.ts": `import type { Board } from "./board.ts";`,
  "runner/runner.ts": `import { now } from "../core/clock.ts";`,
  "protocols/alpha/wire/shapes.ts": `import { now } from "../../../core/clock.ts";`,
  "protocols/alpha/worker/worker.ts": `import { run } from "../../../runner/runner.ts";\nimport { shape } from "../wire/shapes.ts";`,
  "protocols/alpha/server/routes.ts": `import { board } from "../../../engine/board/board.ts";\nimport { shape } from "../wire/shapes.ts";`,
  "protocols/alpha/dialect/parse.ts": `import { shape } from "../wire/shapes.ts";`,
  "protocols/alpha/protocol.ts": `import type { Protocol } from "../protocol.ts";\nconst half = () => import("./server/routes.ts");`,
  "protocols/protocol.ts": `import type { Half } from "./server-half.ts";`,
  "protocols/server-half.ts": `import type { Board } from "../engine/board/board.ts";`,
  "protocols/index.ts": `import { alpha } from "./alpha/protocol.ts";`,
  "engine/rows.ts": "",
  "engine/tables/task.ts": `import type { TableSpec } from "../rows.ts";`,
  "store/sqlite/row-store.ts": `import type { RowStore } from "../../engine/rows.ts";\nimport { taskOf } from "../../engine/tables/task.ts";`,
  "server/server.ts": `import { open } from "../store/sqlite/row-store.ts";\nimport { LocalBoard } from "../engine/board/local-board.ts";\nimport { protocols } from "../protocols/index.ts";`,
};

describe("import rule", () => {
  it("accepts a tree that follows the layers", () => {
    expect(check(clean)).toEqual([]);
  });

  it("allows the command line to import the message formats of our own API, but of no other protocol", () => {
    const own = {
      ...clean,
      "protocols/longshore/wire/shapes.ts": "",
      "cli/api.ts": `import type { Run } from "../protocols/longshore/wire/shapes.ts";`,
    };
    expect(check(own)).toEqual([]);
    expect(check({ ...clean, "cli/api.ts": `import type { Run } from "../protocols/alpha/wire/shapes.ts";` })).toEqual([
      "cli/api.ts: may not import protocols/alpha/wire/shapes.ts, which belongs to another protocol or store",
    ]);
  });

  it("refuses a file of engine/ that imports more than core/ and engine/, in each of its layers", () => {
    for (const file of ["engine/board/lanes.ts", "engine/bus/local-bus.ts", "engine/tables/bus.ts"]) {
      for (const target of ["bus/kafka.ts", "net/http/send.ts", "runner/runner.ts", "store/scan-sql.ts"]) {
        expect(check({ ...clean, [file]: `import { x } from "../../${target}";` }), `${file} imports ${target}`).toHaveLength(1);
      }
    }
  });

  it("refuses a value import that points upwards", () => {
    expect(check({ ...clean, "engine/board/lanes.ts": `import { LocalBoard } from "./local-board.ts";` })).toEqual([
      "engine/board/lanes.ts: the engine layer may not import engine/board/local-board.ts (operations)",
    ]);
  });

  it("refuses a store that imports decisions about rows", () => {
    const store = `import type { LocalBoard } from "../../engine/board/local-board.ts";`;
    expect(check({ ...clean, "store/sqlite/reader.ts": store })).toEqual([
      "store/sqlite/reader.ts: the store layer may not import engine/board/local-board.ts (operations)",
    ]);
    expect(
      check({ ...clean, "store/sqlite/reader.ts": `import { GroupCommit } from "../../engine/commit.ts";`, "engine/commit.ts": "" }),
    ).toEqual(["store/sqlite/reader.ts: the store layer may not import engine/commit.ts (operations)"]);
    expect(check({ ...clean, "store/sqlite/reader.ts": `import { decide } from "../../engine/run/decide.ts";` })).toEqual([
      "store/sqlite/reader.ts: the store layer may not import engine/run/decide.ts (engine)",
    ]);
  });

  it("refuses a type-only import that points upwards", () => {
    expect(check({ ...clean, "runner/execute.ts": `import type { Board } from "../engine/board/board.ts";` })).toHaveLength(1);
  });

  it("refuses a dynamic import that points upwards", () => {
    expect(check({ ...clean, "work.ts": `const server = await import("./server/server.ts");` })).toHaveLength(1);
  });

  it("refuses a re-export that points upwards", () => {
    expect(check({ ...clean, "core/backoff.ts": `export { board } from "../engine/board/board.ts";` })).toHaveLength(1);
  });

  it("refuses a type written as an inline import", () => {
    expect(check({ ...clean, "core/json.ts": `export type B = import("../engine/board/board.ts").Board;` })).toHaveLength(1);
  });

  it("refuses an import that spans several lines", () => {
    expect(check({ ...clean, "engine/board/limits.ts": `import {\n  one,\n  two,\n} from "../../server/server.ts";` })).toHaveLength(1);
  });

  it("refuses a store outside the server", () => {
    const store = `import { open } from "../store/sqlite/row-store.ts";`;
    expect(check({ ...clean, "cli/doctor.ts": store })).toHaveLength(1);
    expect(check({ ...clean, "engine/commit.ts": store })).toHaveLength(1);
  });

  it("refuses a protocol that imports operations", () => {
    const local = `import { LocalBoard } from "../../../engine/board/local-board.ts";`;
    expect(check({ ...clean, "protocols/alpha/server/helper.ts": local })).toHaveLength(1);
  });

  it("refuses a protocol that imports another one, in each of its folders", () => {
    const shape = `import { shape } from "../../alpha/wire/shapes.ts";`;
    for (const folder of ["wire", "worker", "server", "dialect"]) {
      expect(check({ ...clean, [`protocols/beta/${folder}/one.ts`]: shape })).toEqual([
        `protocols/beta/${folder}/one.ts: may not import protocols/alpha/wire/shapes.ts, which belongs to another protocol or store`,
      ]);
    }
  });

  it("refuses a worker half that imports the engine, its dialect or its server half", () => {
    for (const [target, layer] of [
      ["engine/board/board.ts", "engine"],
      ["protocols/alpha/dialect/parse.ts", "dialect"],
      ["protocols/alpha/server/routes.ts", "serving"],
    ]) {
      expect(check({ ...clean, "protocols/alpha/worker/deep/one.ts": `import { x } from "../../../../${target}";` })).toEqual([
        `protocols/alpha/worker/deep/one.ts: the worker layer may not import ${target} (${layer})`,
      ]);
    }
  });

  it("refuses a server half that imports the runner or its worker half", () => {
    for (const [target, layer] of [
      ["runner/runner.ts", "runner"],
      ["protocols/alpha/worker/worker.ts", "worker"],
    ]) {
      expect(check({ ...clean, "protocols/alpha/server/one.ts": `import type { Slot } from "../../../${target}";` })).toEqual([
        `protocols/alpha/server/one.ts: the serving layer may not import ${target} (${layer})`,
      ]);
    }
  });

  it("refuses a server or a command that imports a protocol without the registry", () => {
    for (const target of ["wire/shapes.ts", "worker/worker.ts", "server/routes.ts", "dialect/parse.ts", "protocol.ts"]) {
      for (const file of ["server/door.ts", "cli/work.ts"]) {
        expect(check({ ...clean, [file]: `import { x } from "../protocols/alpha/${target}";` })).toHaveLength(1);
      }
    }
  });

  it("refuses a protocol that imports another one through its `protocol.ts` or the registry", () => {
    const value = `import { alpha } from "../alpha/protocol.ts";`;
    expect(check({ ...clean, "protocols/beta/protocol.ts": value })).toHaveLength(1);
    const registry = `import { protocols } from "../../index.ts";`;
    for (const folder of ["worker", "server", "dialect", "wire"]) {
      expect(check({ ...clean, [`protocols/beta/${folder}/one.ts`]: registry })).toHaveLength(1);
    }
  });

  it("refuses a `wire/` that imports a half, so that no half imports the other through it", () => {
    for (const target of ["worker/worker.ts", "server/routes.ts", "dialect/parse.ts"]) {
      expect(check({ ...clean, "protocols/alpha/wire/one.ts": `import { x } from "../${target}";` })).toHaveLength(1);
    }
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

  it("refuses a file directly in src/ that is not part of the public API", () => {
    expect(check({ ...clean, "thing.ts": "" })).toHaveLength(1);
  });

  it("refuses an empty tree, so that a wrong path cannot look like success", () => {
    expect(check({})).toHaveLength(1);
  });

  it("accepts the real source", () => {
    expect(findImportViolations(fileURLToPath(new URL("../packages/longshore/src", import.meta.url)))).toEqual([]);
  });
});

describe("names of protocols", () => {
  const named = (files: Record<string, string>) =>
    check({ ...clean, "protocols/two-words/protocol.ts": "", ...migration, ...files }, findNamedProtocols);
  const migration = { "store/sqlite/schema.ts": "WHERE dialect = 'alpha'" };

  it("may be in the folders of protocols, in the registry and in tests", () => {
    expect(named({ "core/clock.test.ts": "alpha" })).toEqual([]);
  });

  it("are refused elsewhere, also in comments and in any spelling", () => {
    expect(named({ "core/clock.ts": "// As Alpha does.", "cli/work.ts": "x\nconst twoWords = 1;", "net/a.ts": "TWO_WORDS_URL" })).toEqual([
      "cli/work.ts:2: names a protocol (twoWords); its folder must bring this",
      "core/clock.ts:1: names a protocol (Alpha); its folder must bring this",
      "net/a.ts:1: names a protocol (TWO_WORDS); its folder must bring this",
    ]);
  });

  it("may be in a file of the list, and each file of the list must contain one", () => {
    expect(named({ "store/sqlite/schema.ts": "" })).toEqual([
      "store/sqlite/schema.ts: names no protocol; remove it from the list in scripts/import-rule.ts",
    ]);
  });

  it("are searched in a tree that has protocols", () => {
    expect(check({ "protocols/index.ts": "", "core/clock.ts": "" }, findNamedProtocols)).toEqual([
      expect.stringContaining("no protocols found, so nothing was checked"),
    ]);
  });

  it("are in no other file of our source", () => {
    expect(findNamedProtocols(fileURLToPath(new URL("../packages/longshore/src", import.meta.url)))).toEqual([]);
  });
});
