import { describe, expect, it, vi } from "vitest";
import { ListTexts, listBytesMax, shortBytes } from "./list-text.ts";
import { LongBytes } from "./long-bytes.ts";
import { pieceBytes } from "./paced-write.ts";
import { rowBytes, Slices } from "./slices/slices.ts";

/** The items of one list. Counts the characters of all lists that are in memory; the characters of a dropped list do not count. */
function counted(count: number, chars: number, held: { now: number; most: number }) {
  return async function* items() {
    let own = 0;
    let isWhole = false;
    try {
      for (let at = 0; at < count; at++) {
        own += chars;
        held.now += chars;
        held.most = Math.max(held.most, held.now);
        yield JSON.stringify("x".repeat(chars - 2));
      }
      isWhole = true;
    } finally {
      if (!isWhole) held.now -= own;
    }
  };
}

describe("the text of a list", () => {
  it("has all items of the list", async () => {
    const lists = new ListTexts(new Slices());
    expect(await lists.of(() => [])).toBe("[]");
    expect(await lists.of(() => ["1", '{"a":2}'])).toBe('[1,{"a":2}]');
  });

  it("is never joined when it is long, also with what is around it", async () => {
    const lists = new ListTexts(new Slices());
    const around = () => ['{"results":[', "]}"] as const;
    expect(await lists.of(() => ["1", "2"], { around })).toBe('{"results":[1,2]}');
    const turns = vi.spyOn(Slices.prototype, "turn");
    const items = Array.from({ length: 100 }, () => JSON.stringify("x".repeat(65_536)));
    const body = await lists.of(() => items, { around });
    expect(body).toBeInstanceOf(LongBytes);
    expect(Math.max(...turns.mock.calls.map(([rows]) => rows))).toBeLessThanOrEqual((2 * pieceBytes) / rowBytes);
    expect(JSON.parse(Buffer.from((body as LongBytes).subarray(0, body.length)).toString())).toEqual({
      results: items.map((item) => JSON.parse(item)),
    });
  });

  it("is built for one long list at a time, for any number of readers", async () => {
    const lists = new ListTexts(new Slices());
    const held = { now: 0, most: 0 };
    const read = () => lists.of(counted(20, 100_000, held)).then(() => (held.now -= 20 * 100_000));
    await Promise.all(Array.from({ length: 10 }, read));
    // One whole list is in memory. The next may begin before the reader has received the end of it. The others hold nothing.
    expect(held.most).toBeLessThanOrEqual(21 * 100_000);
    expect(held.now).toBe(0);
  });

  it("holds nothing while it waits, also when its first item is large", async () => {
    const lists = new ListTexts(new Slices());
    let holding = 0;
    let most = 0;
    const read = () =>
      lists.text(async (growth) => {
        holding++;
        try {
          growth.count(12_000_000);
          await growth.turn();
          await new Promise(setImmediate);
          most = Math.max(most, holding);
          return "done";
        } finally {
          holding--;
        }
      });
    expect(await Promise.all(Array.from({ length: 300 }, read))).toEqual(Array.from({ length: 300 }, () => "done"));
    expect(most).toBe(1);
  });

  it("is read once when no other list waits", async () => {
    const lists = new ListTexts(new Slices());
    let begun = 0;
    for (let at = 0; at < 3; at++) {
      const items = () => {
        begun++;
        return ["x".repeat(shortBytes + 1), "1"];
      };
      await lists.of(items);
    }
    expect(begun).toBe(3);
  });

  it("waits before its first item when the source loads all items at once", async () => {
    const lists = new ListTexts(new Slices());
    let reading = 0;
    let most = 0;
    async function* items() {
      most = Math.max(most, ++reading);
      yield "1";
      await null;
      reading--;
    }
    await Promise.all(Array.from({ length: 10 }, () => lists.of(items, { alone: true })));
    expect(most).toBe(1);
  });

  it("ends before the item that exceeds the limit when it may be cut, but has at least one item", async () => {
    const lists = new ListTexts(new Slices());
    const piece = "1".repeat(listBytesMax / 4);
    const cut = await lists.of(() => [piece, piece, piece, piece, "1", "1"], { cut: true });
    expect(cut).toHaveLength(listBytesMax + "[,,,]".length);
    await expect(lists.of(() => [piece.repeat(5)], { cut: true })).rejects.toThrow(`more than ${listBytesMax} characters`);
    expect(await lists.of(() => ["1"], { alone: true })).toBe("[1]");
  });

  it("frees the place for the next list when a list fails or is too long", async () => {
    const lists = new ListTexts(new Slices());
    async function* failing() {
      yield "x".repeat(shortBytes + 1);
      throw new Error("gone");
    }
    const piece = "x".repeat(1_048_576);
    const long = Array.from({ length: listBytesMax / piece.length + 1 }, () => piece);
    await expect(lists.of(failing)).rejects.toThrow("gone");
    await expect(lists.of(() => long)).rejects.toThrow(`more than ${listBytesMax} characters`);
    expect(await lists.of(() => ["1"], { alone: true })).toBe("[1]");
  });
});
