// Commands for operators: a signal with a wrong name, many runs cancelled at once, a journal saved to a file.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { connect } from "../../src/client/index.ts";
import { serve } from "../../src/server/index.ts";
import { work } from "../../src/work.ts";
import { workflow } from "../../src/workflow.ts";
import { longshore, temporaryFolder } from "../support/cli.ts";
import { untilElsewhere } from "../support/until.ts";

const approval = workflow("approval", async (w, _input: { customer: string }) => w.signal<{ ok: boolean }>("approve"));

async function world() {
  const server = await serve({ ephemeral: true, port: 0, logger: { level: "silent" } });
  onTestFinished(() => server.close(0));
  const worker = await work({ workflows: [approval], on: server, logger: false, signals: false });
  onTestFinished(() => worker.stop({ force: true }));
  const start = async (customer: string) => {
    const run = await server.start(approval, { customer });
    await untilElsewhere(async () => (await run.status()).waiting?.reason === "signal");
    return run;
  };
  const run = (...args: string[]) => longshore([...args, "--on", server.url as string]);
  return { server, start, run };
}

it("a signal that no step waits for is kept, and the response names what the run waits for", async () => {
  const { server, start, run } = await world();
  const { id } = await start("Ada");
  expect(await run("signal", id, "aprove", "1")).toMatchObject({
    code: 0,
    stdout: 'aprove kept: no step waits for it yet; the run waits for approve. Did you mean "approve"?\n',
  });
  const kept = { state: "kept", awaited: ["approve"] };
  expect(
    await connect(server.url as string)
      .run(id)
      .signal("other"),
  ).toMatchObject(kept);
  expect(await server.run(id).signal("another")).toMatchObject(kept);
  expect(await server.run(id).signal("approve")).not.toHaveProperty("awaited");
});

it("cancel and runs select runs by workflow, state and a value in their data", async () => {
  const { start, run } = await world();
  const [ada, bob, eve] = [await start("Ada"), await start("Bob"), await start("Eve")];
  expect((await run("runs", "--where", "input.customer:Ada")).stdout).toMatch(
    new RegExp(`^RUN .*\n${ada.id} .*waiting for signal "approve"\n$`),
  );
  const one = await run("cancel", "--workflow", "approval", "--where", "input.customer:Bob", "--reason", "gone");
  expect(one.stdout).toBe("1 run cancelled\n");
  expect(await bob.status()).toMatchObject({ state: "cancelled", error: "gone" });
  const dry = await run("cancel", "--state", "running", "--dry-run", "--json");
  expect(JSON.parse(dry.stdout).items.map(({ id }: { id: string }) => id)).toEqual([eve.id, ada.id]);
  expect((await run("cancel", "--workflow", "approval")).stdout).toBe("2 runs cancelled\n");
  expect((await run("cancel", "--workflow", "approval")).stdout).toBe("0 runs cancelled\n");
  expect(await run("cancel")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("needs the id of a run, or at least one of --workflow"),
  });
  expect(await run("cancel", ada.id, "--state", "running")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("filters choose runs"),
  });
});

it("history saves a journal that replay reads without a server", async () => {
  const { start, run, server } = await world();
  const { id, ...handle } = await start("Ada");
  await server.run(id).signal("approve", { ok: true });
  await server.run(id).result();
  const folder = temporaryFolder();
  const out = join(folder, "approval.history.json");
  expect((await run("history", id, "--out", out)).stdout).toBe(`approval ${id}: 1 command saved in ${out}\n`);
  expect((await run("history", id)).stdout).toBe(readFileSync(out, "utf8"));
  const module = join(folder, "app.mjs");
  const code = (signal: string) =>
    `import { workflow } from "longshore";\nexport const approval = workflow("approval", async (w) => w.signal("${signal}"));\n`;
  const replay = () => longshore(["replay", out, module, "--on", "http://127.0.0.1:1"], { cwd: folder });
  writeFileSync(module, code("approve"));
  expect((await replay()).stdout).toBe(`approval matches run ${id}: 1 commands, then done\n`);
  writeFileSync(module, code("decide"));
  expect(await replay()).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("the journal has signal approve, the code asks for signal decide"),
  });
  writeFileSync(out, "{}");
  expect((await replay()).stderr).toContain("is not a history of a run");
  expect(handle).toBeDefined();
});
