import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../test/support/parts.ts";
import { startGraphServer } from "../../test/support/workflow-graph.ts";
import { serve } from "./server.ts";

const good = "name: CI\non: push\njobs:\n  a: { run: 'true' }\n";
const bad = "name: CI\non: push\njobs:\n  a: { run: 'true', needs: b }\n";

function folderOf(files: Record<string, string>): string {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

describe("a folder of definition files", () => {
  it("is defined at the start, each file under its own name", async () => {
    const workflows = folderOf({
      "ci.yml": good,
      "ship.json": JSON.stringify({ name: "S", on: "push", jobs: { a: { run: "x" } } }),
      "notes.txt": "no",
    });
    mkdirSync(join(workflows, "nested.yml"));
    const { server, get } = await startGraphServer({ workflows });
    expect(server.workflows.defined.map(({ definition }) => definition.name)).toEqual(["ci", "ship"]);
    expect(JSON.parse((await get("/api/workflows")).text).map(({ id }: { id: string }) => id)).toEqual(["ci", "ship"]);
  });

  it("starts its workflows by the schedules of files and modules", async () => {
    const files = {
      "ci.yml": good.replace("on: push", 'on: { schedule: [{ cron: "0 3 * * *", timezone: Asia/Tokyo }, { every: 1h }] }'),
      "extra.mjs":
        'const job = { name: "job", source: { name: "job", steps: [], output: 1 } };\n' +
        'export const each = { name: "each", workflow: job, rules: { workflow: "job", every: "5m" }, input: { n: 1 } };\n',
    };
    const workflows = folderOf(files);
    const data = temporaryFolder();
    const first = await startGraphServer({ workflows, ephemeral: false, data });
    const names = async (get: typeof first.get) =>
      JSON.parse((await get("/api/longshore/v1/schedules")).text).items.map(({ name, source }: { name: string; source: string }) => [
        name,
        source,
      ]);
    expect(first.server.workflows.schedules.map(({ schedule }) => schedule)).toMatchObject([{ name: "each", created: true }]);
    expect(await names(first.get)).toEqual([
      ["ci", "ci"],
      ["ci-2", "ci"],
      ["each", null],
    ]);
    await first.server.close();
    // A schedule that was removed from its file no longer exists after the next start.
    writeFileSync(join(workflows, "ci.yml"), good);
    const second = await startGraphServer({ workflows, ephemeral: false, data });
    expect(await names(second.get)).toEqual([["each", null]]);
  });

  it("is refused completely when the times of a schedule are invalid, with the place", async () => {
    const workflows = folderOf({ "ci.yml": good.replace("on: push", "on:\n  schedule:\n    - cron: 61 * * * *") });
    const error = await serve({ ephemeral: true, port: null, workflows }).catch((thrown: Error) => thrown);
    expect((error as Error).message).toMatch(/ci\.yml:4:7: cron is "61 \* \* \* \*"/);
  });

  it("may contain Stepflow flows, which are started by name", async () => {
    const workflows = folderOf({
      "ci.yml": good,
      "ask.yaml": "steps:\n  - { id: a, component: /python/udf, input: { $input: q } }\noutput: { answer: { $input: q } }\n",
    });
    const { server } = await startGraphServer({ workflows, logger: { level: "silent" } });
    expect(server.workflows.defined.map(({ definition }) => [definition.name, definition.dialect])).toEqual([
      ["ask", "stepflow"],
      ["ci", "workflow-graph"],
    ]);
    expect(server.workflows.warnings).toContainEqual(expect.stringMatching(/ask\.yaml:2:5: Step 'a' is not referenced/));
    const { id } = await server.start("ask", { q: 42 });
    expect(await server.result(id)).toMatchObject({ state: "succeeded", output: { answer: 42 } });
  });

  it("may contain modules, whose workflows are defined together with the workflows that they run", async () => {
    const leaf = { name: "leaf", source: { name: "leaf", steps: [], output: 1 } };
    const root = {
      name: "root",
      source: { name: "root", steps: [{ id: "a", workflow: "leaf", input: null }], output: { $ref: { step: "a", path: [] } } },
    };
    const workflows = folderOf({
      "ci.yml": good,
      "app.mjs": `const leaf = ${JSON.stringify(leaf)};\nexport const root = { ...${JSON.stringify(root)}, uses: [leaf] };\nexport const x = 1;\n`,
      "same.mjs": `export default ${JSON.stringify(leaf)};\n`,
      "helper.mjs": "export const y = 1;\n",
      "app.test.mjs": "throw new Error('a test is not loaded');\n",
      "app.d.ts": "export {};\n",
      "package.json": '{"name":"app"}',
      "tsconfig.json": "{}",
    });
    const { server } = await startGraphServer({ workflows });
    expect(server.workflows.defined.map(({ definition }) => [definition.name, definition.dialect])).toEqual([
      ["leaf", "code"],
      ["root", "code"],
      ["ci", "workflow-graph"],
    ]);
    const { id } = await server.start("root", {});
    expect(await server.result(id)).toMatchObject({ state: "succeeded", output: 1 });
  });

  it("with a module that cannot be loaded is refused, or is served without the module", async () => {
    const workflows = folderOf({ "ci.yml": good, "broken.mjs": "throw new Error('no database');\n" });
    await expect(serve({ port: null, ephemeral: true, workflows })).rejects.toThrow(/broken\.mjs could not be loaded: Error: no database/);
    const { server } = await startGraphServer({ workflows, badWorkflows: "skip", logger: { level: "silent" } });
    expect(server.workflows.defined.map(({ definition }) => definition.name)).toEqual(["ci"]);
    expect(server.workflows.bad.map(({ message }) => message)).toEqual([expect.stringContaining("broken.mjs could not be loaded")]);
  });

  it("leaves out a program that calls work(), with a warning", async () => {
    const calls = new URL("../work.ts", import.meta.url).href;
    const program = `import { work } from ${JSON.stringify(calls)};\nawait work({ tasks: [], on: "http://127.0.0.1:9" });\n`;
    const { server } = await startGraphServer({
      workflows: folderOf({ "ci.yml": good, "worker.mjs": program }),
      logger: { level: "silent" },
    });
    expect(server.workflows.defined.map(({ definition }) => definition.name)).toEqual(["ci"]);
    expect(server.workflows.warnings).toEqual([expect.stringMatching(/worker\.mjs is left out: it calls work\(\)/)]);
  });

  it("shows the steps of a flow, but not the hidden nodes of its choices", async () => {
    const flow = {
      steps: ["a", "b", "c"].map((id) => ({
        id,
        component: "/builtin/noop",
        input: id === "c" ? { $coalesce: [{ $step: "a" }, { $step: "b" }] } : 1,
      })),
      output: { $step: "c" },
    };
    const { server, get } = await startGraphServer({
      workflows: folderOf({ "f.json": JSON.stringify(flow) }),
      logger: { level: "silent" },
    });
    const { id } = await server.start("f", {});
    await server.result(id);
    const listed = async (path: string) =>
      (JSON.parse((await get(`/api/longshore/v1${path}`)).text) as { items: { id: string; step: string; after: string[] }[] }).items;
    expect((await listed(`/runs/${id}/tasks`)).map(({ step }) => step)).toEqual(["a", "c"]);
    expect((await listed(`/runs/${id}/steps`)).map(({ id: step, after }) => [step, after])).toEqual([
      ["a", []],
      ["b", []],
      ["c", ["b", "a"]],
    ]);
  });

  it("with a flow that cannot run is refused like any other mistake", async () => {
    const workflows = folderOf({ "ask.yaml": "steps:\n  - { id: a, component: /x, input: { $step: b } }\n" });
    const start = serve({ ephemeral: true, port: null, workflows });
    await expect(start).rejects.toMatchObject({ code: "LONGSHORE_BAD_DEFINITION", detail: { line: 2, field: "steps[0].input" } });
  });

  it("creates no new version of unchanged files", async () => {
    const workflows = folderOf({ "ci.yml": good });
    const before = await startGraphServer({ workflows });
    await before.close();
    const { server } = await startGraphServer({ workflows }, before);
    expect(server.workflows.defined).toMatchObject([{ definition: { version: 1 } }]);
  });

  it("with a mistake in it prevents the start; the error names file, line and column once", async () => {
    const workflows = folderOf({ "bad.yml": bad, "ci.yml": good });
    const start = serve({ ephemeral: true, port: null, workflows });
    await expect(start).rejects.toMatchObject({ code: "LONGSHORE_BAD_DEFINITION", detail: { line: 4 } });
    const error = (await start.catch((thrown: unknown) => thrown)) as Error;
    expect(error.message.startsWith(`${join(workflows, "bad.yml")}:4:`)).toBe(true);
    expect(error.message).not.toContain("line 4");
  });

  it("with a mistake in it is loaded without that file when `skip` is set", async () => {
    const workflows = folderOf({ "bad.yml": bad, "ci.yml": good });
    const lines: string[] = [];
    const { server } = await startGraphServer({ workflows, badWorkflows: "skip", logger: { write: (line) => lines.push(line) } });
    expect(server.workflows.defined.map(({ definition }) => definition.name)).toEqual(["ci"]);
    expect(server.workflows.bad).toMatchObject([{ code: "LONGSHORE_BAD_DEFINITION" }]);
    expect(lines.join("\n")).toContain(`${join(workflows, "bad.yml")}:4:`);
  });

  it("causes a warning for unknown content, and is not refused", async () => {
    const workflows = folderOf({ "ci.yml": `${good}colour: red\n` });
    const { server } = await startGraphServer({ workflows, logger: { level: "silent" } });
    expect(server.workflows.warnings).toEqual([expect.stringMatching(/ci\.yml:5:\d+: /)]);
  });

  it("must not contain one name twice, and must exist", async () => {
    const twice = folderOf({ "ci.yml": good, "ci.yaml": good });
    await expect(serve({ ephemeral: true, port: null, workflows: twice })).rejects.toThrow(/taken by .*ci\.yaml/);
    const missing = join(twice, "nope");
    await expect(serve({ ephemeral: true, port: null, workflows: missing })).rejects.toMatchObject({ code: "LONGSHORE_BAD_CONFIG" });
  });
});
