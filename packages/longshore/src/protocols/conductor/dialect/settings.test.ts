import { expect, it } from "vitest";
import { settingsOf } from "./settings.ts";

it("a run of another dialect has the settings that every Conductor run has", () => {
  expect(settingsOf({ settings: JSON.stringify({ flowId: "f", maxConcurrency: 10 }) })).toMatchObject({ version: 1, priority: 0 });
  expect(settingsOf({ settings: null })).toEqual({ version: 1, priority: 0 });
  expect(settingsOf({ settings: JSON.stringify({ version: 3, priority: 7 }) })).toEqual({ version: 3, priority: 7 });
});
