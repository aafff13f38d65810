// The export of a run: one file that opens without a server, has the same steps, log and data, and none of what was taken out.

import { readFileSync, renameSync } from "node:fs";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { redact } from "../src/run/redact.ts";
import { axe } from "./support/browser.ts";
import { useTown } from "./support/suite.ts";

const ui = useTown();

/** Saves the export, and opens it in a new profile without a network. */
async function exported(page: Page, names?: string) {
  await page.getByRole("button", { name: "Export" }).click();
  const dialog = page.locator("dialog[open]");
  await dialog.getByText(/^The file has \d+ kB/).waitFor();
  if (names !== undefined) await dialog.getByRole("textbox", { name: /Leave out/ }).fill(names);
  expect(await axe(page)).toEqual([]);
  const said = await dialog.getByRole("status").innerText();
  const [download] = await Promise.all([page.waitForEvent("download"), dialog.getByRole("button", { name: "Save the file" }).click()]);
  // A browser shows a file as a page only when its name ends with .html.
  const file = `${await download.path()}.html`;
  renameSync(await download.path(), file);
  const context = await ui.browser.newContext({ offline: true, viewport });
  const other = await context.newPage();
  const faults: string[] = [];
  other.on("request", (request) => !request.url().startsWith("file:") && faults.push(request.url()));
  other.on("pageerror", (error) => void faults.push(error.message));
  other.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  await other.goto(`file://${file}`);
  return { other, faults, said, bytes: readFileSync(file, "utf8") };
}

/** High enough for all rows of a list. */
const viewport = { width: 1280, height: 2_000 };

const text = (page: Page, selector: string) => page.locator(selector).allInnerTexts();

it("an exported run has the same steps, log and data as the page", async () => {
  const { page, faults } = await ui.open({ viewport });
  await page.goto(`${ui.town.url}/ui/runs/${ui.town.runs.failed}?pane=steps`);
  await page.getByRole("gridcell", { name: "ship", exact: true }).waitFor();
  const { other, faults: otherFaults } = await exported(page);
  await other.getByText("ECONNREFUSED").first().waitFor();
  expect(await axe(other)).toEqual([]);
  await other.getByRole("tab", { name: /Steps/ }).click();
  await other.getByRole("gridcell", { name: "ship", exact: true }).waitFor();
  const cells = ".table-row > div:first-child";
  expect(await text(other, cells)).toEqual(await text(page, cells));
  for (const each of [page, other]) {
    await each.getByRole("tab", { name: "Log" }).click();
    await each.getByText("Asking the bank of Mallory (attempt 3)").waitFor();
  }
  expect(await text(other, ".log-text")).toEqual(await text(page, ".log-text"));
  for (const each of [page, other]) {
    await each.getByRole("tab", { name: "Data" }).click();
    await each.getByText('"Mallory"').first().waitFor();
  }
  expect(await text(other, ".run-data")).toEqual(await text(page, ".run-data"));
  expect({ faults, otherFaults }).toEqual({ faults: [], otherFaults: [] });
  await other.context().close();
});

it("an exported run has nowhere what was taken out, also where a log or an error repeats it", async () => {
  const secret = "hunter2-and-more";
  const { id } = await ui.town.api<{ id: string }>("POST", "/runs", {
    workflow: "hostile",
    input: { said: secret, card: { number: 4_111_222_233 } },
  });
  await ui.town.ended(id);
  const { page } = await ui.open({ viewport });
  await page.goto(`${ui.town.url}/ui/runs/${id}`);
  await page.getByText(secret).first().waitFor();
  const { other, bytes, said } = await exported(page, "said, card.number");
  expect(said).toContain("2 values left out.");
  await other.getByText("[left out]").first().waitFor();
  expect(bytes).not.toContain(secret);
  expect(bytes).not.toContain("4111222233");
  await other.context().close();
});

describe("what is taken out of an export", () => {
  it("are values under a name or a path, and texts that look like keys, in data only", () => {
    const given = {
      token: "the name of a field of the API",
      input: { apiToken: "s3cret-s3cret", nested: [{ card: { number: "12345678" } }], number: 12, key: "AKIAABCDEFGHIJKLMNOP" },
      log: "used s3cret-s3cret and 12345678",
    };
    const { json, count } = redact(given, "token, card.number");
    expect(JSON.parse(json)).toEqual({
      token: "the name of a field of the API",
      input: { apiToken: "[left out]", nested: [{ card: { number: "[left out]" } }], number: 12, key: "[left out]" },
      log: "used [left out] and [left out]",
    });
    expect(count).toBe(3);
  });
});
