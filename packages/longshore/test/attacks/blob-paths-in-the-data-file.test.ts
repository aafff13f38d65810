// An operator receives a foreign data folder whose data file names a blob `aa/../../victim`. A hash once became a path without a check. So
// a backup overwrote files outside its folder, and retention removed files outside the data folder.

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { serve } from "../../src/server/index.ts";
import { openDataFolder } from "../../src/server/verify-data.ts";
import { BlobFiles } from "../../src/store/sqlite/blob-files.ts";
import { blobPath } from "../../src/store/sqlite/blob-path.ts";
import { openDatabase } from "../../src/store/sqlite/driver.ts";
import { longshore } from "../support/cli.ts";

/** A path from `blobs/aa` of a data folder to a file next to the folder. */
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

it("links and pipes in the place of contents are not followed, and a link in the place of the upload folder is not emptied", async () => {
  const { root, data } = await hostileData();
  const blobs = join(data, "blobs");
  const [link, pipe] = ["ab".repeat(32), "cd".repeat(32)];
  for (const hash of [link, pipe]) mkdirSync(join(blobs, hash.slice(0, 2)), { recursive: true });
  symlinkSync(join(root, "victim"), join(blobs, "ab", link));
  execFileSync("mkfifo", [join(blobs, "cd", pipe)]);
  const files = new BlobFiles(blobs);
  expect(await files.open(link)).toBeNull();
  expect(await files.open(pipe)).toBeNull();
  rmSync(join(blobs, "incoming"), { recursive: true });
  symlinkSync(root, join(blobs, "incoming"));
  expect(() => new BlobFiles(blobs)).toThrow(/incoming is a link, and what it leads to would be emptied/);
  expect(existsSync(join(root, "victim"))).toBe(true);
});

it("verify reports the name and reads no file outside", async () => {
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
