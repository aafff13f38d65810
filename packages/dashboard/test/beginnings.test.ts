// The page of a new server: each program is copied from the page and run as it is, and the page ticks off what happens.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { startProgram } from "../../longshore/test/support/cli.ts";
import { axe, openPage } from "./support/browser.ts";
import { openTown } from "./support/port-town.ts";
import { useBrowser } from "./support/suite.ts";

const ui = useBrowser();
const token = "first-steps-secret-0123456789";

/** A project with the package, as `npm install longshore` leaves it. */
function projectFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-first-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const built = fileURLToPath(new URL("../../longshore", import.meta.url));
  mkdirSync(join(folder, "node_modules/.bin"), { recursive: true });
  symlinkSync(built, join(folder, "node_modules/longshore"));
  symlinkSync(join(built, "bin/longshore.js"), join(folder, "node_modules/.bin/longshore"));
  writeFileSync(join(folder, "package.json"), "{}");
  return folder;
}

it.each(["TypeScript", "workflow-graph", "Conductor", "Stepflow", "FlowKit"])(
  "the programs of the tab %s run as they are copied, and the page ticks itself off",
  async (tab) => {
    // One of them with tokens: the programs take theirs from the environment.
    const tokens = tab === "TypeScript" ? [`worker,operator,read:${token}:first`] : [];
    const town = await openTown(tokens.length === 0 ? {} : { tokens }, { isEmpty: true });
    onTestFinished(() => town.close());
    const { page, faults } = await openPage(ui.browser, town.url, { permissions: ["clipboard-read", "clipboard-write"] });
    await page.goto(`${town.url}/ui${tokens.length === 0 ? "" : `#token=${token}`}`);
    await page.getByRole("tab", { name: tab, exact: true }).click();
    const done = page.locator(".ticks li[data-done=true]");
    expect(await axe(page)).toEqual([]);
    expect(await done.count()).toBe(0);
    const copied = async (name: RegExp) => {
      await page.getByRole("button", { name }).first().click();
      return (await page.evaluate("navigator.clipboard.readText()")) as string;
    };
    const options = { cwd: projectFolder(), env: { LONGSHORE_TOKEN: token } };
    writeFileSync(join(options.cwd, "worker.mjs"), await copied(/^Copy the worker/));
    startProgram(process.execPath, ["worker.mjs"], options);
    await page.getByText("A worker was seen, done").waitFor();
    expect(await page.getByText("A run was started, not yet").count()).toBe(1);
    // This program brings its workflow with it.
    if (tab === "TypeScript") await page.getByText("A workflow is defined, done").waitFor();
    const tried = await startProgram("sh", ["-c", await copied(/^Copy the commands/)], { ...options, group: true }).ended;
    expect({ code: tried.code, ...(tried.code === 0 ? {} : tried) }).toEqual({ code: 0 });
    await page.getByText("The first run is done").waitFor();
    expect(await done.count()).toBe(4);
    await page.getByRole("button", { name: "Show the overview" }).click();
    await page.getByRole("heading", { name: "Newest runs" }).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  },
);
