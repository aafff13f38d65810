// Sends the script of requests to the real server and compares its responses with the committed fixtures. The protocol's unit tests and the
// differential test read those fixtures, so this test keeps them correct. `npm run conformance -- conductor/fixtures -u` writes them again.
import { existsSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import type { Recorded } from "../src/differential/compare.ts";
import { play } from "../src/differential/script.ts";
import { openFileStage } from "../src/stage.ts";
import { chapters } from "./differential/chapters.ts";
import { fixtureFile, PEER, recorded, withoutLostUpdates } from "./differential/fixtures.ts";
import { startReferenceServer } from "./reference.ts";

/**
 * What the real server returns here changes from run to run, because it checks a JOIN in the background: its status after a failure, and the output of
 * a run that has not ended. These fixtures are one of its possible responses.
 */
const changing = new Set(["control-children"]);

const stage = openFileStage();
const answers = new Map<string, Recorded[]>();
const waitedInVain: string[] = [];

beforeAll(async () => {
  const server = await startReferenceServer(stage, { transactions: "deferred" });
  for (const chapter of chapters) {
    const played = await play(server.url, chapter);
    answers.set(chapter.name, withoutLostUpdates(recorded(played)));
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
