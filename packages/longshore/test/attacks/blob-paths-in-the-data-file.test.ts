// The attack: an operator gets a data folder from elsewhere whose file names a blob `aa/../../victim`. A hash once became a path as it was, so a backup
// wrote over files outside its folder, and retention removed files outside the data folder.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { serve } from "../../src/server/index.ts";
import { openDataFolder } from "../../src/server/verify-data.ts";
import { BlobFiles } from "../../src/store/sqlite/blob-files.ts";
import { blobPath } from "../../src/store/sqlite/blob-path.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { longshore } from "../support/cli.ts";

/** Leads from `blobs/aa` of a data folder to a file beside it. */
const hostile = "aa/../../../../victim";

async function hostileData() {
  const root = mkdtempSync(join(tmpdir(), "longshore-hostile-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const data = join(root, "data");
  await (await serve({ data, port: null, logger: { level: "silent" } })).close(0);
  const db = await openDatabase(join(data, "longshore.db"));
  db.exec(`INSERT INTO blob (hash, bytes, created_at, used_at) VALUES ('${hostile}', 6, 1, 1)`);
  db.close();
  mkdirSync(join(data, "blobs", "aa"), { recursive: true });
  writeFileSync(join(root, "victim"), "secret");
  return { root, data };
}

it("a backup copies nothing to or from outside its folders", async () => {
  const { root, data } = await hostileData();
  mkdirSync(join(root, "elsewhere"));
  writeFileSync(join(root, "elsewhere", "victim"), "mine");
  const { stdout } = await longshore(["backup", join(root, "elsewhere", "copy"), "--data", data, "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({ blobs: 0, missingBlobs: 1 });
  expect(readFileSync(join(root, "elsewhere", "victim"), "utf8")).toBe("mine");
});

it("no content is read or removed outside the folder of blobs", async () => {
  const { root, data } = await hostileData();
  const files = new BlobFiles(join(data, "blobs"));
  expect(await files.open(hostile)).toBeNull();
  await files.takeAway(hostile)();
  expect(existsSync(join(root, "victim"))).toBe(true);
});

it("verify reports the name and looks at no file outside", async () => {
  const { data } = await hostileData();
  const { source, close } = await openDataFolder(data);
  onTestFinished(close);
  const found = [];
  for await (const each of source.others()) found.push(each);
  expect(found).toMatchObject([
    { rule: "blob-whole", subject: hostile, message: "the name of this blob is not a hash, so it has no file" },
  ]);
});

it("only a SHA-256 in lower case becomes a path", () => {
  const hash = "0123456789abcdef".repeat(4);
  expect(blobPath("blobs", hash)?.file).toBe(join("blobs", "01", hash));
  for (const other of ["", "aa", "..", `${hash}/`, `../${hash.slice(3)}`, hash.toUpperCase(), `${hash}\n`])
    expect(blobPath("blobs", other)).toBeNull();
});
