// The attacker holds a read token, and lists schedules or signals with a thousand on a page, many times at once. A page of schedules had 60
// MB: one page blocked the event loop for 270 ms; six blocked it for 1.6 s and used 730 MB of memory. A page with a thousand small schedules
// blocked it for 50 ms. A page of signals had 8 MB, and many were built in one turn.

import { expect, it, vi } from "vitest";
import { LocalSignals } from "../../src/engine/signal/local-signals.ts";
import { startFunctions } from "../support/function-world.ts";
import { countTurns } from "../support/turn-count.ts";

const value = "v".repeat(60_000);
const count = 40;
/** A page ends after the row that reaches this size. */
const pageChars = 1_048_576;

type Functions = Awaited<ReturnType<typeof startFunctions>>;

async function lists({ api }: Functions, path: string): Promise<number[]> {
  const sizes: number[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const page = (await (await api("GET", `${path}?limit=1000${after === "" ? "" : `&after=${after}`}`)).json()) as {
      items: unknown[];
      next: string | null;
    };
    expect(JSON.stringify(page).length).toBeLessThan(pageChars + 2 * value.length);
    sizes.push(page.items.length);
    after = page.next;
  }
  return sizes;
}

it("a page of schedules has a limited number of characters, and the next page continues", async () => {
  const functions = await startFunctions();
  for (let at = 0; at < count; at++)
    await functions.api("PUT", `/schedules/s${at}`, { workflow: "f", input: { value }, cron: "0 0 29 2 *" });
  expect((await lists(functions, "/schedules")).reduce((sum, size) => sum + size, 0)).toBe(count);
});

it("a page of schedules is read in slices: each schedule remembers its last ticks", async () => {
  const functions = await startFunctions();
  const many = 300;
  for (let at = 0; at < many; at++) await functions.api("PUT", `/schedules/s${at}`, { workflow: "f", input: {}, cron: "0 0 29 2 *" });
  const turns = countTurns();
  const { parse } = JSON;
  const spy = vi.spyOn(JSON, "parse").mockImplementation((text, ...more) => {
    if (String(text).startsWith('{"lastAt"')) turns.add();
    return parse(text, ...more);
  });
  const page = await functions.api("GET", "/schedules?limit=1000");
  spy.mockRestore();
  expect(((await page.json()) as { items: unknown[] }).items.length).toBe(many);
  expect([turns.total, turns.most <= 150 ? "few" : turns.most]).toEqual([many, "few"]);
});

it("a page of signals has a limited number of characters, and pages are built in different turns of the event loop", async () => {
  const functions = await startFunctions();
  const { id } = await functions.begin();
  for (let at = 0; at < count; at++) await functions.api("POST", `/runs/${id}/signals`, { name: "n", value });
  expect((await lists(functions, `/runs/${id}/signals`)).reduce((sum, size) => sum + size, 0)).toBe(count);
  const turns = countTurns();
  const { list } = LocalSignals.prototype;
  vi.spyOn(LocalSignals.prototype, "list").mockImplementation(async function (this: LocalSignals, ...given) {
    const page = await list.apply(this, given);
    turns.add();
    return page;
  });
  await Promise.all(Array.from({ length: 8 }, () => functions.api("GET", `/runs/${id}/signals?limit=1000`).then((reply) => reply.text())));
  expect([turns.total, turns.most]).toEqual([8, 1]);
});
