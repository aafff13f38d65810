// Records the real programs and compares the recording with the committed fixtures. The protocol's unit tests read those fixtures, so this
// test keeps them correct. `npm run conformance -- stepflow/fixtures -u` writes them again.
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { play } from "../src/differential/script.ts";
import { openFileStage, openStage } from "../src/stage.ts";
import { chapters } from "./differential/chapters.ts";
import { config } from "./differential/config.ts";
import { fixtureFile, PEER } from "./differential/fixtures.ts";
import { recorded } from "./differential/mask.ts";
import { releases } from "./fetch.ts";
import { startOrchestrator } from "./orchestrator.ts";
import { recordGrpc, recordHttp } from "./recording.ts";

const fixture = (name: string): string => fileURLToPath(new URL(`../../longshore/test/fixtures/stepflow/${name}.json`, import.meta.url));
const asText = (content: unknown): string => `${JSON.stringify(content, null, 2)}\n`;

const stage = openFileStage();
const waitedInVain: string[] = [];

describe("the committed API fixtures are what the real orchestrator returns", () => {
  let url = "";
  beforeAll(async () => {
    ({ url } = await startOrchestrator(stage, "0.13", { config }));
  });

  it.each(chapters)("$name", async (chapter) => {
    const played = await play(url, chapter);
    for (const { step, met } of played) if (!met) waitedInVain.push(`${chapter.name} / ${step.name}`);
    const file = fixtureFile(chapter.name);
    const committed = existsSync(file) ? readFileSync(file, "utf8") : "null";
    const seen = { peer: PEER, chapter: chapter.name, exchanges: recorded(played) };
    // The order of keys changes each time, so it is not compared.
    const text = isDeepStrictEqual(JSON.parse(committed), seen) ? committed : asText(seen);
    await expect(text).toMatchFileSnapshot(file);
  });

  it("every step that waits has received what it waits for", () => {
    expect(waitedInVain).toEqual([]);
  });

  it("every step of a chapter has a different name", () => {
    for (const { name, steps } of chapters) expect(new Set(steps.map((step) => step.name)).size, name).toBe(steps.length);
  });
});

describe("the committed fixtures are what the real programs return", () => {
  it.each(["0.9", "0.11"] as const)("%s over HTTP", async (release) => {
    const exchanges = await recordHttp(openStage({ onTestFinished }), release);
    const peer = `stepflow-orchestrator ${releases[release].orchestrator}, stepflow-py ${releases[release].sdk}`;
    await expect(asText({ peer, exchanges })).toMatchFileSnapshot(fixture(`http-${release}`));
  });

  it("0.12 and 0.13 over gRPC", async (context) => {
    const messages = [...(await recordGrpc(openStage(context), "0.12")), ...(await recordGrpc(openStage(context), "0.13"))];
    await expect(asText(messages)).toMatchFileSnapshot(fixture("messages"));
  });
});
