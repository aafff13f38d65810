import { closeSync, mkdirSync, mkdtempSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { answersFirstMs, looksPerCheck, restMs, watchIdentity } from "./identity.ts";

describe("the files that a server has open", () => {
  let folder: string;
  let at: number;
  let isGone: ReturnType<typeof watchIdentity>;
  /** What waits for the next turn of the event loop. */
  let later: (() => void)[];

  beforeEach(() => {
    folder = join(mkdtempSync(join(tmpdir(), "longshore-identity-")), "data");
    mkdirSync(folder);
    for (const name of ["longshore.db", "longshore.db-wal"]) writeFileSync(join(folder, name), "x");
    at = 1_000;
    later = [];
    isGone = watchIdentity(
      join(folder, "longshore.db"),
      () => at,
      (then) => later.push(then),
    );
    expect(isGone()).toBeNull();
  });

  afterEach(() => rmSync(join(folder, ".."), { recursive: true, force: true }));

  it("are checked after the answer when the last check is some milliseconds old", () => {
    rmSync(folder, { recursive: true });
    at += restMs - 1;
    expect([isGone(), later.length]).toEqual([null, 0]);
    at += 1;
    expect([isGone(), isGone(), later.length]).toEqual([null, null, 1]);
    later.pop()?.();
    expect(isGone()).toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
  });

  it("are checked before the answer when the last check is a tenth of a second old", () => {
    rmSync(folder, { recursive: true });
    at += answersFirstMs;
    expect(isGone()).toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
    expect(later).toEqual([]);
  });

  it("are checked each time while they are not in their place", () => {
    renameSync(folder, `${folder}-away`);
    at += answersFirstMs;
    expect(isGone()?.message).toMatch(/longshore\.db was removed or replaced/);
    expect(isGone()).not.toBeNull();
    renameSync(`${folder}-away`, folder);
    expect(isGone()).toBeNull();
  });

  it("are noticed when the log alone is replaced", () => {
    const log = join(folder, "longshore.db-wal");
    const open = openSync(log, "r");
    rmSync(log);
    writeFileSync(log, "x");
    at += answersFirstMs;
    // The folder's time of change is coarse: it may look the same until the files are looked at in any case.
    let found = isGone();
    for (let looks = 0; found === null && looks < looksPerCheck; looks++) {
      at += answersFirstMs;
      found = isGone();
    }
    closeSync(open);
    expect(found?.message).toMatch(/longshore\.db-wal was removed or replaced/);
  });
});
