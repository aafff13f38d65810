// Sends the script of requests to our server and compares each response with the recorded one of the real server. A protocol's
// `fixtures.test.ts` keeps the recording up to date. A difference that is not listed fails the test, and so does a listed difference that no
// longer exists.
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { openFileStage, type Stage } from "../stage.ts";
import { type Accepted, acceptedBy } from "./accepted.ts";
import { createComparison, type Difference, type Recorded } from "./compare.ts";
import { type Chapter, type Played, play } from "./script.ts";

export interface Differential {
  /** The folder of the protocol; its README lists the differences. */
  protocol: string;
  chapters: readonly Chapter[];
  differences: readonly Accepted[];
  start(stage: Stage): Promise<{ url: string }>;
  fixtureFile(chapter: string): string;
  recorded(played: readonly Played[]): Recorded[];
  /** Removes what may differ. */
  comparable?(exchange: Recorded): Recorded;
}

export function differentialSuite(differential: Differential): void {
  const { protocol, chapters, differences, start, fixtureFile, recorded, comparable = (exchange) => exchange } = differential;
  const stage = openFileStage();
  const used = new Set<Accepted>();
  let url = "";

  beforeAll(async () => {
    ({ url } = await start(stage));
  });

  describe("our server sends the same responses as the real one", () => {
    it.each(chapters)("$name", async (chapter) => {
      const { exchanges } = JSON.parse(readFileSync(fixtureFile(chapter.name), "utf8")) as { exchanges: Recorded[] };
      const answers = recorded(await play(url, chapter)).map(comparable);
      expect(answers.map(({ step }) => step)).toEqual(exchanges.map(({ step }) => step));

      const compare = createComparison();
      const unexpected: (Difference & { step: string })[] = [];
      for (const [index, reference] of exchanges.entries()) {
        const ours = answers[index] as Recorded;
        for (const difference of compare(comparable(reference), ours)) {
          const accepted = acceptedBy(differences, chapter.name, { reference, ours }, difference);
          if (accepted) used.add(accepted);
          else unexpected.push({ step: reference.step, ...difference });
        }
      }
      expect(unexpected).toEqual([]);
    });

    it("lists every difference in the protocol's README, with its reason", () => {
      const file = new URL(`../../../longshore/src/protocols/${protocol}/README.md`, import.meta.url);
      const readme = readFileSync(file, "utf8").replace(/\s+/g, " ");
      expect(differences.map(({ reason }) => reason).filter((reason) => !readme.includes(reason))).toEqual([]);
    });

    it("lists no difference that no longer exists", () => {
      expect(differences.filter((one) => !used.has(one)).map(({ reason }) => reason)).toEqual([]);
    });
  });
}
