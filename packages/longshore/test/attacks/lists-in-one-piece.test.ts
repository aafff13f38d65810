// The attacker holds an operator token and has stored very many event handlers and workflows. Conductor's lists of event handlers, and of the
// names and versions of workflows, were collected in memory and written in one piece: 20,000 handlers took 24 to 28 ms in a turn of the event
// loop, and a list had no limit.

import { expect, it, vi } from "vitest";
import { ListTexts } from "../../src/core/list-text.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";

it("lists of event handlers and of workflows' names are written one entry at a time", async () => {
  const c = await startConductor();
  const handler = (name: string) => ({
    name,
    event: `conductor:w:${name}`,
    actions: [{ action: "start_workflow", start_workflow: { name: "a" } }],
    active: true,
  });
  for (const name of ["h1", "h2", "h3"]) await c.ask("POST", "/event", handler(name));
  for (const [name, version] of [
    ["a", 1],
    ["a", 2],
    ["b", 7],
  ] as const)
    await c.workflow({ name, version, tasks: [simple("t")] });
  const texts: string[] = [];
  const { of } = ListTexts.prototype;
  vi.spyOn(ListTexts.prototype, "of").mockImplementation(function (this: ListTexts, items, options) {
    texts.length = 0;
    const noted = async function* () {
      for await (const text of items()) {
        texts.push(text);
        yield text;
      }
    };
    return of.call(this, noted, options);
  });
  const names = (await c.read<{ name: string }[]>("/event")).map(({ name }) => name);
  expect([names, texts.length]).toEqual([["h1", "h2", "h3"], 3]);
  expect([(await c.read<object[]>("/event/conductor:w:h2")).length, texts.length]).toEqual([1, 1]);
  expect([await c.read("/metadata/workflow/names"), texts]).toEqual([
    ["a", "b"],
    ['"a"', '"b"'],
  ]);
  const versions = await c.read<object>("/metadata/workflow/names-and-versions");
  expect(versions).toMatchObject({ a: [{ name: "a", version: 1 }, { version: 2 }], b: [{ version: 7 }] });
  expect([Object.keys(versions), texts.length]).toEqual([["a", "b"], 3]);
});
