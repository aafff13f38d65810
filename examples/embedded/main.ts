// Durable work inside one program: no socket, no other process. Kill it in the middle and start it again: with a data folder instead of
// `ephemeral`, what was finished stays finished.

import { graph, type Ref, task, work } from "longshore";
import { serve } from "longshore/server";

const measure = task("measure", async ({ text }: { text: string }) => ({ words: text.split(/\s+/).length }));
const report = task("report", async ({ words }: { words: number }) => `${words} words`);

const count = graph("count", (g, input: Ref<{ text: string }>) => {
  const measured = g.step(measure, { text: input.text });
  return g.step(report, { words: measured.words });
});

await using server = await serve({ port: null, ephemeral: true });
await using _worker = await work({ tasks: [measure, report], on: server });

const { id } = await server.start(count, { text: "one handler, every orchestrator" });
const { state, output } = await server.result(id);
console.log(`${state}: ${output}`);
