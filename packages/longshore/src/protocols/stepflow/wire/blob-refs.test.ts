import { describe, expect, it } from "vitest";
import { LongshoreError } from "../../../core/errors.ts";
import type { Json } from "../../../core/json/json.ts";
import { replaceLarge, resolveBlobs } from "./blob-refs.ts";

const id = (n: number) => n.toString(16).padStart(64, "0");
const ref = (n: number) => ({ $blob: id(n) });

function setup(kept: { readonly [n: number]: Json | undefined }) {
  const fetched: string[] = [];
  let busy = 0;
  let busyMax = 0;
  const fetch = async (asked: string) => {
    fetched.push(asked);
    busyMax = Math.max(busyMax, ++busy);
    await new Promise((resolve) => setImmediate(resolve));
    busy--;
    const found = Object.entries(kept).find(([n]) => id(Number(n)) === asked);
    if (found === undefined) throw new LongshoreError("LONGSHORE_NOT_FOUND", "no such blob");
    return found[1];
  };
  return { fetch, fetched, busyMax: () => busyMax };
}

describe("references in an input", () => {
  it("are replaced at every place, also in fetched values, and each blob is fetched once", async () => {
    const s = setup({ 1: { deep: [ref(2)] }, 2: "text", 3: ref(2), 4: null });
    const input = { a: ref(1), b: { $blob: `sha256:${id(1)}`, blobType: "data", size: 3 }, c: [ref(3), 1], d: ref(4) };
    expect(await resolveBlobs(input as Json, s.fetch)).toEqual({ a: { deep: ["text"] }, b: { deep: ["text"] }, c: ["text", 1], d: null });
    expect(s.fetched.sort()).toEqual([1, 2, 3, 4].map(id));
    expect(await resolveBlobs(ref(3), s.fetch)).toBe("text");
  });

  it("become copies, so that a change in one place does not affect another", async () => {
    const s = setup({ 1: { n: 1 } });
    const [a, b] = (await resolveBlobs([ref(1), ref(1)], s.fetch)) as [{ n: number }, { n: number }];
    a.n = 2;
    expect(b).toEqual({ n: 1 });
  });

  it.each([
    [{ $blob: id(1), blobType: "binary" }],
    [{ $blob: id(1), other: 1 }],
    [{ $blob: "short" }],
    [{ $blob: 7 }],
    [{ plain: "x" }],
    [null],
  ])("are looked for, and a value that is no valid reference to JSON stays as it is: %j", async (value) => {
    const s = setup({});
    expect(await resolveBlobs(value as Json, s.fetch)).toBe(value);
    expect(s.fetched).toEqual([]);
  });

  it("stay references when the blob is not JSON", async () => {
    expect(await resolveBlobs({ a: ref(1) }, setup({ 1: undefined }).fetch)).toEqual({ a: ref(1) });
  });

  it("are fetched at most 16 at a time", async () => {
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [n, n]));
    const s = setup(many);
    expect(
      await resolveBlobs(
        Object.keys(many).map((n) => ref(Number(n))),
        s.fetch,
      ),
    ).toEqual(Object.values(many));
    expect(s.busyMax()).toBe(16);
  });

  it("are refused permanently when one is unknown, when they are too deep, and when they are too many", async () => {
    const refused = (value: Json, kept: { readonly [n: number]: Json }) => expect(resolveBlobs(value, setup(kept).fetch)).rejects;
    const final = (message: string) => ({
      name: "TerminalError",
      message,
      cause: { code: "LONGSHORE_BAD_INPUT", detail: { field: "input" } },
    });
    await refused({ a: ref(7) }, {}).toMatchObject(final(`The input refers to blob ${id(7)}, which does not exist.`));
    const deep = Object.fromEntries(Array.from({ length: 9 }, (_, n) => [n, { next: ref(n + 1) }]));
    await refused(ref(0), deep).toMatchObject(final("The input has blobs that refer to blobs, nested deeper than 8 levels."));
    const many = Array.from({ length: 1_001 }, (_, n) => ref(n));
    await refused(many, {}).toMatchObject(final("The input refers to more than 1000 blobs."));
  });

  it("pass on other errors, which may be transient", async () => {
    const away = new LongshoreError("LONGSHORE_UNREACHABLE", "away");
    await expect(resolveBlobs(ref(1), () => Promise.reject(away))).rejects.toBe(away);
  });
});

describe("large fields of an output", () => {
  it("are stored as blobs and replaced by references, at the top level only", async () => {
    const kept: Json[] = [];
    const put = async (value: Json) => id(kept.push(value));
    const output = { small: 1, large: "x".repeat(20), nested: { large: "y".repeat(5) } };
    expect(await replaceLarge(output, 20, put)).toEqual({ ...output, large: { $blob: id(1), blobType: "data", size: 22 } });
    expect(kept).toEqual(["x".repeat(20)]);
    expect(await replaceLarge(output, 22, put)).toBe(output);
    expect(await replaceLarge("x".repeat(50), 1, put)).toBe("x".repeat(50));
    expect(await replaceLarge([1, 2, 3], 1, put)).toEqual([1, 2, 3]);
  });
});
