// Sends the same requests to the real server and to ours. The responses must have the same status, headers and body, except for the
// differences that differences.ts lists with their reasons.
import { describe, expect, it, onTestFinished } from "vitest";
import { startOurServer } from "../../src/longshore.ts";
import { openStage } from "../../src/stage.ts";
import { startReferenceServer } from "../reference.ts";
import { chapters } from "./chapters.ts";
import { compare, type Difference } from "./compare.ts";
import { intended } from "./differences.ts";
import { play } from "./script.ts";

describe("our server compared with the real one", () => {
  it.each(chapters.map((chapter) => [chapter.name, chapter] as const))("gives the same response: %s", async (_name, chapter) => {
    const stage = openStage({ onTestFinished });
    const [reference, ours] = await Promise.all([startReferenceServer(stage), startOurServer(stage)]);
    const [theirAnswers, ourAnswers] = await Promise.all([play(reference.url, chapter), play(ours.url, chapter)]);

    const seen: Record<string, readonly Difference[]> = {};
    const expected: Record<string, readonly Difference[]> = {};
    for (const [index, { step, answer }] of theirAnswers.entries()) {
      const name = `${chapter.name} / ${step.name}`;
      const ourAnswer = ourAnswers[index]?.answer;
      if (!ourAnswer) throw new Error(`no answer of ours for ${name}`);
      seen[name] = compare(answer, ourAnswer, { page: step.headers?.origin !== undefined });
      expected[name] = intended[name]?.differences ?? [];
    }
    expect(sorted(seen)).toEqual(sorted(expected));
  });

  it("lists no difference for a step that does not exist", () => {
    const steps = new Set(chapters.flatMap((chapter) => chapter.steps.map((step) => `${chapter.name} / ${step.name}`)));
    expect(Object.keys(intended).filter((name) => !steps.has(name))).toEqual([]);
  });

  it("every step of a chapter has a different name", () => {
    for (const { name, steps } of chapters) expect(new Set(steps.map((step) => step.name)).size, name).toBe(steps.length);
  });
});

/** The order in which differences are found does not matter. */
function sorted(differences: Record<string, readonly Difference[]>): Record<string, readonly Difference[]> {
  const byPlace = (one: Difference, other: Difference): number => (one.at < other.at ? -1 : 1);
  return Object.fromEntries(Object.entries(differences).map(([name, found]) => [name, found.toSorted(byPlace)]));
}
