import { describe, expect, it } from "vitest";
import { ListTexts, listBytesMax, shortBytes } from "./list-text.ts";
import { Slices } from "./slices.ts";

/** Items of one list, with how many are in memory of all lists together. */
function counted(count: number, chars: number, held: { now: number; most: number }) {
  return async function* items() {
    for (let at = 0; at < count; at++) {
      held.now += chars;
      held.most = Math.max(held.most, held.now);
      yield JSON.stringify("x".repeat(chars - 2));
    }
  };
}

describe("the text of a list", () => {
  it("is the list", async () => {
    const lists = new ListTexts(new Slices());
    expect(await lists.of([])).toBe("[]");
    expect(await lists.of(["1", '{"a":2}'])).toBe('[1,{"a":2}]');
  });

  it("is made of one long list at a time, whatever the number of readers", async () => {
    const lists = new ListTexts(new Slices());
    const held = { now: 0, most: 0 };
    const chars = 1_000_000;
    const read = () => lists.of(counted(20, 100_000, held)()).then(() => (held.now -= 20 * 100_000));
    await Promise.all(Array.from({ length: 10 }, read));
    // One whole list, and of each other one the item that made it a long one.
    expect(held.most).toBeLessThanOrEqual(2 * chars + 9 * 100_000);
  });

  it("waits before its first item where that has all of them in memory", async () => {
    const lists = new ListTexts(new Slices());
    let reading = 0;
    let most = 0;
    async function* items() {
      most = Math.max(most, ++reading);
      yield "1";
      await null;
      reading--;
    }
    await Promise.all(Array.from({ length: 10 }, () => lists.of(items(), { alone: true })));
    expect(most).toBe(1);
  });

  it("ends before the item that exceeds the limit where it may be cut, but not before the first", async () => {
    const lists = new ListTexts(new Slices());
    const piece = "1".repeat(listBytesMax / 4);
    const cut = await lists.of([piece, piece, piece, piece, "1", "1"], { cut: true });
    expect(cut).toHaveLength(listBytesMax + "[,,,]".length);
    await expect(lists.of([piece.repeat(5)], { cut: true })).rejects.toThrow(`more than ${listBytesMax} characters`);
    expect(await lists.of(["1"], { alone: true })).toBe("[1]");
  });

  it("lets the next one begin when a list fails or is too long", async () => {
    const lists = new ListTexts(new Slices());
    async function* failing() {
      yield "x".repeat(shortBytes + 1);
      throw new Error("gone");
    }
    const piece = "x".repeat(1_048_576);
    const long = Array.from({ length: listBytesMax / piece.length + 1 }, () => piece);
    await expect(lists.of(failing())).rejects.toThrow("gone");
    await expect(lists.of(long)).rejects.toThrow(`more than ${listBytesMax} characters`);
    expect(await lists.of(["1"], { alone: true })).toBe("[1]");
  });
});
