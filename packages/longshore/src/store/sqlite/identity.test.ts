import { closeSync, mkdirSync, mkdtempSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { looksPerCheck, restMs, watchIdentity } from "./identity.ts";

describe("the files that a server has open", () => {
  let folder: string;
  let at: number;
  let isGone: ReturnType<typeof watchIdentity>;

  beforeEach(() => {
    folder = join(mkdtempSync(join(tmpdir(), "longshore-identity-")), "data");
    mkdirSync(folder);
    for (const name of ["longshore.db", "longshore.db-wal"]) writeFileSync(join(folder, name), "x");
    at = 1_000;
    isGone = watchIdentity(join(folder, "longshore.db"), () => at);
    expect(isGone()).toBeNull();
  });

  afterEach(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

  it("are checked again when the last check is some milliseconds old", () => {
    rmSync(folder, { recursive: true });
    at += restMs - 1;
    expect(isGone()).toBeNull();
    at += 1;
    expect(isGone()).toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
  });

  it("are checked each time while they are not in their place", () => {
    renameSync(folder, `${folder}-away`);
    at += restMs;
    expect(isGone()?.message).toMatch(/longshore\.db was removed or replaced/);
    expect(isGone()).not.toBeNull();
    renameSync(`${folder}-away`, folder);
    expect(isGone()).toBeNull();
  });

  it("count as replaced when only the log is replaced", () => {
    const log = join(folder, "longshore.db-wal");
    const open = openSync(log, "r");
    rmSync(log);
    writeFileSync(log, "x");
    at += restMs;
    // The folder's modification time is coarse, so it may be unchanged until the files themselves are checked.
    let found = isGone();
    for (let looks = 0; found === null && looks < looksPerCheck; looks++) {
      at += restMs;
      found = isGone();
    }
    closeSync(open);
    expect(found?.message).toMatch(/longshore\.db-wal was removed or replaced/);
  });
});
