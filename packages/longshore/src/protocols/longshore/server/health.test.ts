import { describe, expect, it } from "vitest";
import { openParts } from "../../../../test/support/parts.ts";
import { StoreState } from "../../../engine/store-state.ts";
import { HealthCheck } from "./health.ts";

/** A disk that refuses while `full` is set, and counts the writes. */
async function setup() {
  const { clock, db, stored, commit, define } = await openParts("a file");
  const disk = { full: false, writes: 0 };
  const { transaction } = db;
  db.transaction = (work) => {
    disk.writes++;
    if (disk.full) throw Object.assign(new Error("database or disk is full"), { errcode: 13 });
    transaction(work);
  };
  const closing = new AbortController();
  const health = new HealthCheck({ storage: new StoreState({ commit, stored }), clock, version: "1.2.3", closing: closing.signal });
  return { clock, commit, disk, define, health, closing };
}

describe("readiness", () => {
  it("ends when the store cannot be written, and when the server closes", async () => {
    const { clock, disk, health, closing } = await setup();
    expect(await health.ready()).toMatchObject({ status: "ok" });
    disk.full = true;
    await clock.advance(10_000);
    expect(await health.ready()).toMatchObject({ status: "unavailable", store: "unavailable", message: expect.stringContaining("disk") });
    disk.full = false;
    await clock.advance(1_000);
    expect(await health.ready()).toMatchObject({ status: "ok" });
    closing.abort();
    expect(await health.ready()).toMatchObject({ status: "unavailable", store: "ok", message: "The server is closing." });
    expect(await health.look()).toMatchObject({ status: "ok" });
  });
});

describe("health", () => {
  it("of an idle server is proved by a write, at most every ten seconds", async () => {
    const { clock, disk, health } = await setup();
    expect(await health.look()).toEqual({ status: "ok", version: "1.2.3", store: "ok", message: undefined, uptimeSeconds: 0 });
    expect(disk.writes).toBe(1);
    await clock.advance(9_999);
    await health.look();
    expect(disk.writes).toBe(1);
    await clock.advance(1);
    await health.look();
    expect(disk.writes).toBe(2);
  });

  it("of a server that is written to costs nothing", async () => {
    const { clock, disk, define, health } = await setup();
    for (let at = 0; at < 3; at++) {
      await clock.advance(20_000);
      await define(`w${at}`, ["a"]);
      expect(await health.look()).toMatchObject({ status: "ok" });
    }
    expect(disk.writes).toBe(3);
  });

  it("is unavailable while the disk refuses, and available again afterwards", async () => {
    const { clock, disk, define, health } = await setup();
    await define("w", ["a"]);
    disk.full = true;
    await expect(define("x", ["a"])).rejects.toMatchObject({ code: "LONGSHORE_STORE_UNAVAILABLE" });
    expect(await health.look()).toMatchObject({
      status: "unavailable",
      store: "unavailable",
      message: expect.stringContaining("cannot be written"),
    });
    disk.full = false;
    await clock.advance(1_000);
    expect(await health.look()).toMatchObject({ status: "ok", store: "ok" });
  });

  it("notices a full disk that was not written to", async () => {
    const { clock, disk, health } = await setup();
    await health.look();
    disk.full = true;
    await clock.advance(10_000);
    expect(await health.look()).toMatchObject({ status: "unavailable" });
  });
});
