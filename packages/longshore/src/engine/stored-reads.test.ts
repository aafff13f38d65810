import { expect, it } from "vitest";
import { Missing } from "../core/missing.ts";
import { NeedsOwner } from "./needs-owner.ts";
import { storedReads } from "./stored-reads.ts";
import type { ReadTx } from "./tx.ts";

/** Each load returns rows of a later state. */
function setup() {
  let state = 0;
  const loads: string[][] = [];
  const read = storedReads({
    async load(tx, missing) {
      state++;
      const keys = missing.map((each) => each.read as string);
      loads.push(keys);
      for (const key of keys) tx.loaded.set(key, `${key} of state ${state}`);
      return undefined;
    },
  });
  const get = (tx: ReadTx, key: string): unknown => {
    if (!tx.loaded.has(key)) throw new Missing(key);
    return tx.loaded.get(key);
  };
  return { read, get, loads };
}

it("a read that finds out step by step what it needs sees one state", async () => {
  const { read, get, loads } = setup();
  expect(await read((tx) => [get(tx, "task"), get(tx, "run"), get(tx, "definition")])).toEqual([
    "task of state 3",
    "run of state 3",
    "definition of state 3",
  ]);
  expect(loads).toEqual([["task"], ["task", "run"], ["task", "run", "definition"]]);
});

it("a read without rows loads nothing", async () => {
  const { read, loads } = setup();
  expect(await read(() => 5)).toBe(5);
  expect(loads).toEqual([]);
});

it("a read that needs more and more rows is left to the owner", async () => {
  const { read, get } = setup();
  const endless = read((tx) => {
    for (let n = 0; ; n++) get(tx, String(n));
  });
  await expect(endless).rejects.toBeInstanceOf(NeedsOwner);
});

it("a read is left to the owner while the store is away", async () => {
  const read = storedReads({ load: () => Promise.reject(new Error("away")) });
  const failed = read(() => {
    throw new Missing("row");
  });
  await expect(failed).rejects.toMatchObject({ constructor: NeedsOwner, cause: { message: "away" } });
});

it("an error of the work reaches its caller", async () => {
  const { read } = setup();
  await expect(read(() => Promise.reject(new Error("no such run")))).rejects.toThrow("no such run");
});
