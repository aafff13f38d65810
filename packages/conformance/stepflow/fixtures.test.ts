// Records the real programs and holds the committed fixtures against the recording. The protocol's unit tests read those fixtures, so this
// is what keeps them true. `npm run conformance -- stepflow/fixtures -u` writes them anew.
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { openStage } from "../src/stage.ts";
import { releases } from "./fetch.ts";
import { recordGrpc, recordHttp } from "./recording.ts";

const fixture = (name: string): string => fileURLToPath(new URL(`../../longshore/test/fixtures/stepflow/${name}.json`, import.meta.url));
const asText = (content: unknown): string => `${JSON.stringify(content, null, 2)}\n`;

describe("the committed fixtures are what the real programs say", () => {
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
