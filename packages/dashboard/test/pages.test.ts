// Every page, in both themes and on a wide and a narrow screen: axe finds no fault, nothing violates the content security policy, and no
// request goes to another host.

import { describe, expect, it } from "vitest";
import { axe, openPage } from "./support/browser.ts";
import { openTown, type Town, untilTrue } from "./support/port-town.ts";
import { useTown } from "./support/suite.ts";

const ui = useTown();

/** The address, and a text that is there when the page has read its data. */
const pages: readonly (readonly [path: (runs: Town["runs"]) => string, shows: string])[] = [
  [() => "/ui", "Needs you"],
  [() => "/ui/runs", "training"],
  [() => "/ui/runs?q=state:failed", "ECONNREFUSED"],
  [() => "/ui/runs?q=workflow:nothing", "No run matches."],
  [({ failed }) => `/ui/runs/${failed}`, "ECONNREFUSED"],
  [({ failed }) => `/ui/runs/${failed}?step=charge&pane=timeline&tab=attempts`, "Attempt 3"],
  [({ failed }) => `/ui/runs/${failed}?pane=steps&step=charge&tab=log`, "Asking the bank"],
  [({ failed }) => `/ui/runs/${failed}?pane=data`, "Mallory"],
  [({ approval }) => `/ui/runs/${approval}`, 'is waiting for signal "approve"'],
  [({ approval }) => `/ui/runs/${approval}?pane=signals`, "No signal was sent"],
  [({ switch: id }) => `/ui/runs/${id}?pane=graph&step=load-ship`, "load-ship"],
  [({ shell }) => `/ui/runs/${shell}?pane=log`, "disk is almost full"],
  [({ stuck }) => `/ui/runs/${stuck}?step=train-model`, "no live worker has the label gpu"],
  [() => "/ui/workflows", "parcel"],
  [() => "/ui/workflows/parcel", "steps"],
  [() => "/ui/workflows/parcel?pane=source", "taskReferenceName"],
  [() => "/ui/workflows/parcel?pane=versions", "There is one version so far."],
  [() => "/ui/queues?lane=train-model%20gpu", "Tasks that wait"],
  [() => "/ui/workers", "conductor"],
  [() => "/ui/schedules", "There is no schedule."],
  [({ done, failed }) => `/ui/compare?a=${done}&b=${failed}`, "The first step that differs is charge."],
  [() => "/ui/settings", "This server"],
  [() => "/ui/settings/audit", "Audit"],
  [() => "/ui/dead-letters", "No step has put an input aside."],
];

describe("the pages", () => {
  for (const [colorScheme, width] of [
    ["light", 1280],
    ["dark", 390],
  ] as const) {
    it(`have no fault in the ${colorScheme} theme at ${width} px`, async () => {
      const { page, faults } = await ui.open({ colorScheme, viewport: { width, height: 800 } });
      const found: string[] = [];
      for (const [path, shows] of pages) {
        const address = path(ui.town.runs);
        await page.goto(ui.town.url + address);
        await page.getByText(shows).first().waitFor();
        for (const violation of await axe(page)) found.push(`${address}: ${violation}`);
        const scrolls = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
        if (scrolls === true) found.push(`${address}: is wider than the screen`);
      }
      expect({ found, faults }).toEqual({ found: [], faults: [] });
      await page.context().close();
    });
  }

  it("compute the layout of a graph of 300 steps in a worker, and keep few elements in the document", async () => {
    const { page, faults } = await ui.open();
    await page.goto(`${ui.town.url}/ui/runs/${ui.town.runs.wide}`);
    await untilTrue(async () => (await page.evaluate("performance.getEntriesByName('longshore:graph').length")) !== 0);
    expect(page.workers().map((worker) => new URL(worker.url()).pathname)).toEqual([expect.stringMatching(/^\/ui\/assets\/layout-/)]);
    await page.getByText("300", { exact: true }).first().waitFor();
    expect(await page.evaluate("document.querySelectorAll('*').length")).toBeLessThan(400);
    await page.getByRole("searchbox", { name: "Find a step in the graph" }).fill("step-5-49");
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Step step-5-49" }).waitFor();
    await page.getByRole("button", { name: "step-5-49, done" }).waitFor();
    for (const pane of ["Timeline", /^Steps/]) {
      await page.getByRole("tab", { name: pane }).click();
      await page.locator(".gantt-row, .table-row").nth(5).waitFor();
      expect(await page.locator(".gantt-row, .table-row").count()).toBeLessThan(60);
    }
    expect(faults).toEqual([]);
  });

  it("have no fault with open dialogs", async () => {
    const { page, faults } = await ui.open({ colorScheme: "dark" });
    const found: string[] = [];
    const look = async (name: string) => {
      await page.locator("dialog[open]").waitFor();
      for (const violation of await axe(page)) found.push(`${name}: ${violation}`);
      await page.keyboard.press("Escape");
      await page.locator("dialog[open]").waitFor({ state: "detached" });
    };
    await page.goto(`${ui.town.url}/ui/runs/${ui.town.runs.approval}`);
    await page.getByRole("button", { name: "Cancel" }).click();
    await look("cancel");
    await page.getByRole("button", { name: "Signal", exact: true }).click();
    await look("signal");
    await page.getByRole("button", { name: "Edit and run" }).click();
    await look("start");
    await page.keyboard.press("?");
    await look("keys");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("work");
    await look("palette");
    await page.goto(`${ui.town.url}/ui/schedules`);
    await page.getByRole("button", { name: "New schedule" }).first().click();
    await look("schedule");
    expect({ found, faults }).toEqual({ found: [], faults: [] });
  });

  it("show how to start the first run on an empty server", async () => {
    const fresh = await openTown({}, { isEmpty: true });
    const { page, faults } = await openPage(ui.browser, fresh.url);
    await page.goto(`${fresh.url}/ui`);
    await page.getByText("Nothing has run here yet").waitFor();
    expect(await axe(page)).toEqual([]);
    await fresh.api("POST", "/definitions?name=first", { name: "first", on: "demand", jobs: { a: { run: "echo a" } } });
    await page.locator("li[data-done=true]", { hasText: "A workflow is defined" }).waitFor();
    expect(faults).toEqual([]);
    await fresh.close();
  });
});

describe("what workers and clients send", () => {
  const hostile = `<img src=x onerror="alert(1)">"><svg onload=alert(2)>\u001b[31mred\u001b[0m\u202Etxet`;

  it("is shown as text, wherever it appears", async () => {
    const { page, faults } = await ui.open();
    const { id } = await ui.town.api<{ id: string }>("POST", "/runs", { workflow: "hostile", input: { [hostile]: hostile } });
    await ui.town.ended(id);
    for (const path of [
      "",
      "?pane=data",
      "?pane=log",
      "?pane=steps&step=say&tab=step",
      "?pane=timeline&step=say&tab=data",
      "?step=say&tab=attempts",
    ]) {
      await page.goto(`${ui.town.url}/ui/runs/${id}${path}`);
      await page.getByText("img src=x").first().waitFor();
    }
    for (const path of ["/ui", "/ui/runs"]) {
      await page.goto(ui.town.url + path);
      await page.getByText("img src=x").first().waitFor();
    }
    expect(await page.evaluate("document.querySelectorAll('img, [onerror], [onload]').length")).toBe(0);
    expect(faults).toEqual([]);
  });
});
