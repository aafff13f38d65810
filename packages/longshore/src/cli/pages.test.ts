import { expect, it } from "vitest";
import type { Client, Query } from "./client.ts";
import { readList } from "./pages.ts";

/** A list of numbers from 0, in pages of at most 1,000. The second page is empty. */
function listOf(count: number) {
  const asked: Query[] = [];
  const get = async (_path: string, query: Query = {}) => {
    asked.push(query);
    const size = Number(query.limit);
    if (size > 1_000) throw new Error("Too big: expected number to be <=1000");
    if (asked.length === 2) return { items: [], next: String(query.after) };
    const from = Number(query.after ?? 0);
    const to = Math.min(count, from + size);
    const items = Array.from({ length: to - from }, (_, at) => from + at);
    return { items, next: to < count ? String(to) : null };
  };
  return { client: { get } as unknown as Client, asked };
}

it("a list longer than a page of the server is read in several pages, up to the limit", async () => {
  const { client, asked } = listOf(2_500);
  const { items, next } = await readList<number>(client, { path: "/x", cursor: "after", limit: 2_100, query: { state: "failed" } });
  expect(items).toEqual(Array.from({ length: 2_100 }, (_, at) => at));
  expect(next).toBe("2100");
  expect(asked).toEqual([
    { state: "failed", limit: 1_000 },
    { state: "failed", limit: 1_000, after: "1000" },
    { state: "failed", limit: 1_000, after: "1000" },
    { state: "failed", limit: 100, after: "2000" },
  ]);
});

it("a list that ends before the limit has no next", async () => {
  const { client } = listOf(3);
  expect(await readList<number>(client, { path: "/x", cursor: "after", limit: 5_000 })).toEqual({ items: [0, 1, 2], next: null });
});
