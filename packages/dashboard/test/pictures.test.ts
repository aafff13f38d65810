// Pictures of every page in both themes and two widths, to be looked at by a person. They are not compared: fonts differ between machines. They are
// written to LONGSHORE_PICTURES, or to a folder for temporary files.

import { mkdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { chromiumMissing, openPage } from "./support/browser.ts";
import { openTown, type Town } from "./support/port-town.ts";
import { useTown } from "./support/suite.ts";

const folder = process.env.LONGSHORE_PICTURES ?? join(tmpdir(), "longshore-pictures");
const ui = useTown();
let empty: Town;

beforeAll(async () => {
  if (chromiumMissing !== undefined) return;
  mkdirSync(folder, { recursive: true });
  empty = await openTown({}, { isEmpty: true });
});
afterAll(() => empty?.close());

/** The name of the picture, the address, and a text that is there when the page has read its data. */
const pages: readonly (readonly [name: string, path: (runs: Town["runs"]) => string, shows: string])[] = [
  ["overview", () => "/ui", "Needs you"],
  ["runs", () => "/ui/runs", "training"],
  ["run-failed", ({ failed }) => `/ui/runs/${failed}?step=charge`, "ECONNREFUSED"],
  ["run-timeline", ({ failed }) => `/ui/runs/${failed}?pane=timeline`, "charge"],
  ["run-switch", ({ switch: id }) => `/ui/runs/${id}`, "parcel"],
  ["run-log", ({ failed }) => `/ui/runs/${failed}?pane=log`, "Asking the bank"],
  ["run-history", ({ failed }) => `/ui/runs/${failed}?pane=history`, "Created"],
  ["run-function", ({ approval }) => `/ui/runs/${approval}`, 'is waiting for signal "approve"'],
  ["run-stuck", ({ stuck }) => `/ui/runs/${stuck}`, "no live worker has the label gpu"],
  ["workflows", () => "/ui/workflows", "parcel"],
  ["workflow", () => "/ui/workflows/training", "No worker can take the step"],
  ["queues", () => "/ui/queues?lane=train-model%20gpu", "Tasks that wait"],
  ["workers", () => "/ui/workers", "conductor"],
  ["schedules", () => "/ui/schedules", "There is no schedule."],
  ["compare", ({ done, failed }) => `/ui/compare?a=${done}&b=${failed}`, "The first step that differs is charge."],
  ["settings", () => "/ui/settings", "This server"],
];

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [1280, 390]) {
    it(`every page has its picture in the ${colorScheme} theme at ${width} px`, async () => {
      const options = { colorScheme, viewport: { width, height: width === 390 ? 844 : 800 }, reducedMotion: "reduce" } as const;
      const { page, faults } = await ui.open(options);
      const shoot = async (name: string, url: string, shows: string) => {
        await page.goto(url);
        await page.getByText(shows).first().waitFor();
        const isDrawn =
          "(document.querySelector('.graph canvas') !== null) === (performance.getEntriesByName('longshore:graph').length > 0)";
        await expect.poll(() => page.evaluate(isDrawn), { timeout: 20_000 }).toBe(true);
        const path = join(folder, `${name}-${colorScheme}-${width}.png`);
        await page.screenshot({ path });
        expect(statSync(path).size).toBeGreaterThan(5_000);
      };
      for (const [name, path, shows] of pages) await shoot(name, ui.town.url + path(ui.town.runs), shows);
      expect(faults).toEqual([]);
      await page.context().close();
    });
  }
}

it("a new server has its picture", async () => {
  const { page } = await openPage(ui.browser, empty.url);
  await page.goto(`${empty.url}/ui`);
  await page.getByText("A worker was seen").waitFor();
  await page.screenshot({ path: join(folder, "overview-empty-light-1280.png") });
  await page.context().close();
});
