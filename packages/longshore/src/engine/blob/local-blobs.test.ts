import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { buffer } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { openParts, places } from "../../../test/support/parts.ts";
import { BlobFiles } from "../../store/sqlite/blob-files.ts";
import { LocalBlobs } from "./local-blobs.ts";

const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const dayMs = 86_400_000;

async function* pieces(...parts: (Uint8Array | Error)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) {
    if (part instanceof Error) throw part;
    yield part;
  }
}

describe.each(places)("blobs with rows in %s", (place) => {
  async function setup(options: { bytesMax?: number } = {}) {
    const parts = await openParts(place);
    const directory = join(parts.folder, "blobs");
    const blobs = new LocalBlobs({ ...parts, contents: new BlobFiles(directory), ...options });
    const path = (hash: string) => join(directory, hash.slice(0, 2), hash);
    const incoming = () => readdirSync(join(directory, "incoming"));
    return { parts, blobs, directory, path, incoming };
  }

  it("content is found by its hash, byte for byte", async () => {
    const { blobs, incoming } = await setup();
    const content = randomBytes(300_000);
    const stored = await blobs.put(pieces(content.subarray(0, 1), content.subarray(1, 200_000), content.subarray(200_000)));
    expect(stored).toEqual({ hash: hashOf(content), bytes: 300_000, note: null });
    expect(await blobs.stat(stored.hash)).toEqual(stored);
    const found = await blobs.get(stored.hash);
    expect(found?.bytes).toBe(300_000);
    expect((await buffer(found!.content)).equals(content)).toBe(true);
    expect(incoming()).toEqual([]);
  });

  it("the same content is stored once, also when it arrives twice at the same time", async () => {
    const { parts, blobs, directory } = await setup();
    const content = randomBytes(1_000);
    const answers = await Promise.all([blobs.put(content), blobs.put(content), blobs.put(pieces(content))]);
    expect(new Set(answers.map((answer) => answer.hash)).size).toBe(1);
    await blobs.put(content);
    expect(parts.db.prepare("SELECT count(*) AS rows FROM blob").get()?.rows).toBe(1);
    expect(readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())).toHaveLength(1);
  });

  it("a note stays with its content until another replaces it", async () => {
    const { blobs } = await setup();
    const content = randomBytes(10);
    const { hash, note } = await blobs.put(content, { note: "first" });
    expect(note).toBe("first");
    expect((await blobs.put(content)).note).toBe("first");
    expect((await blobs.stat(hash))?.note).toBe("first");
    await blobs.put(content, { note: "second" });
    const found = await blobs.get(hash);
    expect(found?.note).toBe("second");
    found?.content.destroy();
  });

  it("empty content is stored like any other", async () => {
    const { blobs } = await setup();
    const { hash, bytes } = await blobs.put(new Uint8Array());
    expect(bytes).toBe(0);
    expect((await buffer((await blobs.get(hash))!.content)).byteLength).toBe(0);
  });

  it("an unknown or malformed hash is not found", async () => {
    const { blobs } = await setup();
    for (const hash of ["0".repeat(64), "", "../../etc/passwd", "0".repeat(63), "A".repeat(64)]) {
      expect(await blobs.get(hash)).toBeUndefined();
      expect(await blobs.stat(hash)).toBeUndefined();
    }
  });

  it("content that does not match the announced hash is refused and leaves nothing", async () => {
    const { blobs, incoming } = await setup();
    const content = randomBytes(100);
    await expect(blobs.put(content, { hash: "0".repeat(64) })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_INPUT",
      detail: { field: "hash" },
    });
    await expect(blobs.put(content, { hash: "short" })).rejects.toMatchObject({ code: "LONGSHORE_BAD_INPUT" });
    expect(await blobs.stat(hashOf(content))).toBeUndefined();
    expect(incoming()).toEqual([]);
    expect((await blobs.put(content, { hash: hashOf(content) })).bytes).toBe(100);
  });

  it("content above the limit is refused while it arrives", async () => {
    const { blobs, incoming } = await setup({ bytesMax: 1_000 });
    let asked = 0;
    async function* endless() {
      for (;;) {
        asked++;
        yield new Uint8Array(400);
      }
    }
    await expect(blobs.put(endless())).rejects.toMatchObject({ code: "LONGSHORE_LIMIT" });
    expect(asked).toBe(3);
    expect(incoming()).toEqual([]);
    expect((await blobs.put(new Uint8Array(1_000))).bytes).toBe(1_000);
  });

  it("an upload that breaks off leaves nothing", async () => {
    const { blobs, incoming } = await setup();
    await expect(blobs.put(pieces(new Uint8Array(10), new Error("connection lost")))).rejects.toThrow("connection lost");
    expect(incoming()).toEqual([]);
  });

  it("a blob is pruned when it was not used for long enough", async () => {
    const { parts, blobs, path } = await setup();
    const old = await blobs.put(randomBytes(10));
    const read = await blobs.put(randomBytes(10));
    const asked = await blobs.put(randomBytes(10));
    parts.clock.jump(2 * dayMs);
    (await blobs.get(read.hash))!.content.destroy();
    await blobs.stat(asked.hash);
    expect(await blobs.prune(parts.clock.now() - dayMs)).toBe(1);
    expect(await blobs.prune(parts.clock.now() - dayMs)).toBe(0);
    expect(await blobs.stat(old.hash)).toBeUndefined();
    expect(existsSync(path(old.hash))).toBe(false);
    expect(await blobs.stat(read.hash)).toBeDefined();
    expect(await blobs.stat(asked.hash)).toBeDefined();
  });

  it("storing the same content again counts as a use", async () => {
    const { parts, blobs } = await setup();
    const content = randomBytes(10);
    const { hash } = await blobs.put(content);
    parts.clock.jump(2 * dayMs);
    await blobs.put(content);
    expect(await blobs.prune(parts.clock.now() - dayMs)).toBe(0);
    expect(await blobs.stat(hash)).toBeDefined();
  });

  it("content that arrives while its older copy is pruned is there afterwards", async () => {
    const { parts, blobs } = await setup();
    for (let round = 0; round < 20; round++) {
      const content = randomBytes(10);
      const { hash } = await blobs.put(content);
      parts.clock.jump(2 * dayMs);
      await Promise.all([blobs.prune(parts.clock.now() - dayMs), blobs.put(content), blobs.prune(parts.clock.now() - dayMs)]);
      expect((await buffer((await blobs.get(hash))!.content)).equals(content)).toBe(true);
    }
  });

  it("a stream that was opened before the pruning can be read to its end", async () => {
    const { parts, blobs } = await setup();
    const content = randomBytes(500_000);
    const { hash } = await blobs.put(content);
    const found = (await blobs.get(hash))!;
    parts.clock.jump(2 * dayMs);
    await blobs.prune(parts.clock.now() - dayMs);
    expect((await buffer(found.content)).equals(content)).toBe(true);
  });

  it("old files without a row are removed, and young files and those with a row stay", async () => {
    const { parts, blobs, path } = await setup();
    const known = await blobs.put(randomBytes(10));
    const litter = path(`00${"1".repeat(62)}`);
    const young = path(`00${"2".repeat(62)}`);
    mkdirSync(dirname(litter), { recursive: true });
    for (const file of [litter, young]) writeFileSync(file, "litter");
    const now = parts.clock.now() / 1_000;
    utimesSync(litter, now - 7_200, now - 7_200);
    utimesSync(young, now - 60, now - 60);
    utimesSync(path(known.hash), now - 7_200, now - 7_200);
    let swept = 0;
    for (let folder = 0; folder < 256; folder++) swept += await blobs.sweep();
    expect(swept).toBe(1);
    expect([existsSync(litter), existsSync(young), existsSync(path(known.hash))]).toEqual([false, true, true]);
  });

  it("a blob whose file was removed is reported as missing", async () => {
    const { blobs, path } = await setup();
    const { hash } = await blobs.put(randomBytes(10));
    rmSync(path(hash));
    expect(await blobs.get(hash)).toBeUndefined();
  });

  it("a blob is refused when its row cannot be written, and can be stored later", async () => {
    const { parts, blobs } = await setup();
    const content = randomBytes(10);
    parts.db.exec("CREATE TRIGGER refuse BEFORE INSERT ON blob BEGIN SELECT raise(FAIL, 'no room'); END");
    await expect(blobs.put(content)).rejects.toThrow("no room");
    expect(await blobs.stat(hashOf(content))).toBeUndefined();
    parts.db.exec("DROP TRIGGER refuse");
    expect((await blobs.put(content)).hash).toBe(hashOf(content));
  });
});

describe("blobs over a restart", () => {
  it("stored blobs are still there, and unfinished uploads are removed", async () => {
    const parts = await openParts("a file");
    const directory = join(parts.folder, "blobs");
    const content = randomBytes(1_000);
    const { hash } = await new LocalBlobs({ ...parts, contents: new BlobFiles(directory) }).put(content);
    writeFileSync(join(directory, "incoming", "cut-off"), "half");
    await parts.close();
    const again = await openParts("a file", parts);
    const blobs = new LocalBlobs({ ...again, contents: new BlobFiles(directory) });
    expect((await buffer((await blobs.get(hash))!.content)).equals(content)).toBe(true);
    expect(readdirSync(join(directory, "incoming"))).toEqual([]);
    expect(hashOf(readFileSync(join(directory, hash.slice(0, 2), hash)))).toBe(hash);
  });

  it("an ephemeral store without a blob makes no folder", async () => {
    const contents = new BlobFiles(null);
    expect(existsSync(contents.directory)).toBe(false);
    contents.close();
  });

  it("an ephemeral store that closes during an upload leaves no folder", async () => {
    const parts = await openParts("memory");
    const contents = new BlobFiles(null);
    const blobs = new LocalBlobs({ ...parts, contents });
    async function* content() {
      yield randomBytes(10);
      await parts.commit.close();
      contents.close();
      yield randomBytes(10);
    }
    await expect(blobs.put(content())).rejects.toThrow();
    expect(existsSync(contents.directory)).toBe(false);
  });

  it("an ephemeral store removes its folder when it closes", async () => {
    const parts = await openParts("memory");
    const contents = new BlobFiles(null);
    const blobs = new LocalBlobs({ ...parts, contents });
    const { hash } = await blobs.put(randomBytes(10));
    expect(existsSync(contents.directory)).toBe(true);
    contents.close();
    contents.close();
    expect(await blobs.get(hash)).toBeUndefined();
    expect(existsSync(contents.directory)).toBe(false);
  });
});
