// Sends a script of requests to the real server and compares its responses with the committed fixtures.
import { existsSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import type { Recorded } from "../../src/differential/compare.ts";
import { type Chapter, play } from "../../src/differential/script.ts";
import { fixtureFile, PEER, recorded, withoutLostUpdates } from "./fixtures.ts";

/** `changing` are chapters to which the real server responds differently from run to run. They are played, and not compared. */
export function fixtureSuite(chapters: readonly Chapter[], changing: ReadonlySet<string>, start: () => Promise<{ url: string }>): void {
  const answers = new Map<string, Recorded[]>();
  const waitedInVain: string[] = [];

  beforeAll(async () => {
    const server = await start();
    for (const chapter of chapters) {
      const played = await play(server.url, chapter);
      answers.set(chapter.name, withoutLostUpdates(recorded(played)));
      if (changing.has(chapter.name)) continue;
      for (const { step, met } of played) if (!met) waitedInVain.push(`${chapter.name} / ${step.name}`);
    }
  });

  describe("the committed fixtures are what the real server returns", () => {
    it.each(chapters.filter(({ name }) => !changing.has(name)))("$name", async ({ name }) => {
      const file = fixtureFile(name);
      const committed = existsSync(file) ? readFileSync(file, "utf8") : "null";
      const seen = { peer: PEER, chapter: name, exchanges: answers.get(name) };
      // The order of keys changes with each start of the real server, so it is not compared.
      const text = isDeepStrictEqual(JSON.parse(committed), seen) ? committed : `${JSON.stringify(seen, null, 2)}\n`;
      await expect(text).toMatchFileSnapshot(file);
    });

    it("every step that waits has received what it waits for", () => {
      expect(waitedInVain).toEqual([]);
    });

    it("every step of a chapter has a different name", () => {
      for (const { name, steps } of chapters) expect(new Set(steps.map((step) => step.name)).size, name).toBe(steps.length);
    });
  });
}
