// The script of requests, played on our server; each answer is held against the recorded one of the real orchestrator. `fixtures.test.ts` keeps
// the recording true. A difference that is not listed fails, and so does a listed one that is gone.
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { createComparison, type Difference, type Recorded } from "../../src/differential/compare.ts";
import { play } from "../../src/differential/script.ts";
import { startOurServer } from "../../src/longshore.ts";
import { openFileStage } from "../../src/stage.ts";
import { chapters } from "./chapters.ts";
import { config } from "./config.ts";
import { type Accepted, acceptedBy, differences } from "./differences.ts";
import { fixtureFile } from "./fixtures.ts";
import { comparable, recorded } from "./mask.ts";

const stage = openFileStage();
const used = new Set<Accepted>();
let url = "";

beforeAll(async () => {
  ({ url } = await startOurServer(stage, { stepflow: config }));
});

describe("our server answers as the real orchestrator does", () => {
  it.each(chapters)("$name", async (chapter) => {
    const { exchanges } = JSON.parse(readFileSync(fixtureFile(chapter.name), "utf8")) as { exchanges: Recorded[] };
    const ours = recorded(await play(url, chapter)).map(comparable);
    expect(ours.map(({ step }) => step)).toEqual(exchanges.map(({ step }) => step));

    const compare = createComparison();
    const unexpected: (Difference & { step: string })[] = [];
    for (const [index, reference] of exchanges.entries()) {
      for (const difference of compare(comparable(reference), ours[index] as Recorded)) {
        const accepted = acceptedBy(chapter.name, reference, ours[index] as Recorded, difference);
        if (accepted) used.add(accepted);
        else unexpected.push({ step: reference.step, ...difference });
      }
    }
    expect(unexpected).toEqual([]);
  });

  it("tells every difference in the protocol's README, with its reason", () => {
    const readme = readFileSync(new URL("../../../longshore/src/protocol/stepflow/README.md", import.meta.url), "utf8").replace(
      /\s+/g,
      " ",
    );
    expect(differences.map(({ reason }) => reason).filter((reason) => !readme.includes(reason))).toEqual([]);
  });

  it("lists no difference that is gone", () => {
    expect(differences.filter((one) => !used.has(one)).map(({ reason }) => reason)).toEqual([]);
  });
});
