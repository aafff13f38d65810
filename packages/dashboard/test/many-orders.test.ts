// Orders to many runs, and the audit of orders, with the keyboard.

import { describe, expect, it } from "vitest";
import { axe } from "./support/browser.ts";
import { goodOrder, untilTrue } from "./support/port-town.ts";
import { useTown } from "./support/suite.ts";

const operator = "operator-secret-0123456789";
const reader = "reader-secret-0123456789";

const ui = useTown({ tokens: [`worker,operator:${operator}:anna`, `read:${reader}:rea`] }, { token: operator });

async function failedRuns(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const { id } = await ui.town.api<{ id: string }>("POST", "/runs", { workflow: "order", input: { ...goodOrder, customer: "Mallory" } });
    ids.push(id);
  }
  await Promise.all(ids.map((id) => ui.town.ended(id)));
  return ids;
}

const livesOf = async (id: string) => (await ui.town.api<{ retries: number }>("GET", `/runs/${id}`)).retries;

describe("the list of runs", () => {
  it("retries chosen runs with the keyboard: first shows how many, then the server retries them", async () => {
    const ids = await failedRuns(4);
    const { page, faults } = await ui.open();
    await page.goto(`${ui.town.url}/ui/runs?q=state:failed#token=${operator}`);
    await page.goto(`${ui.town.url}/ui/runs?q=state:failed`);
    await page.getByRole("row").nth(4).waitFor();
    await page.locator("[data-list]").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    await page.keyboard.press("Shift+X");
    const chosen = page.getByRole("region", { name: "Chosen runs" });
    await chosen.getByText("3 runs chosen").waitFor();
    await chosen.getByRole("button", { name: "Retry" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("3 can").waitFor();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("button", { name: "Retry 3 runs" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Order to many runs" }).getByText("3 done").waitFor();
    expect(await axe(page)).toEqual([]);
    expect((await Promise.all(ids.map(livesOf))).sort()).toEqual([0, 1, 1, 1]);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  it("orders all runs that match, names those that are left out, and can be stopped", async () => {
    await failedRuns(3);
    const { page, faults } = await ui.open();
    await page.goto(`${ui.town.url}/ui/runs?q=workflow:order#token=${operator}`);
    await page.goto(`${ui.town.url}/ui/runs?q=workflow:order`);
    await page.getByRole("row").nth(3).waitFor();
    await page.locator("[data-list]").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    await page.getByRole("button", { name: "Choose all that match" }).click();
    await page.getByRole("region", { name: "Chosen runs" }).getByRole("button", { name: "Retry" }).click();
    await page.getByText("1 has succeeded").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog[open]").waitFor({ state: "detached" });
    const { id } = await ui.town.api<{ id: string }>("POST", "/bulk", { action: "rerun", filter: { workflow: "order" }, perSecond: 1 });
    await page.reload();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped.").waitFor();
    expect((await ui.town.api<{ state: string }>("GET", `/bulk/${id}`)).state).toBe("stopped");
    expect(faults).toEqual([]);
    await page.context().close();
  });
});

describe("the audit", () => {
  it("shows each order with its caller and reason, and has its filter in the address", async () => {
    await ui.town.api("POST", "/queues/pause", { lane: "train-model", labels: ["gpu"], reason: "the card is broken" });
    await ui.town.api("POST", "/queues/resume", { lane: "train-model", labels: ["gpu"] });
    const { page, faults } = await ui.open();
    await page.goto(`${ui.town.url}/ui/settings#token=${reader}`);
    await page.getByText("rea", { exact: true }).first().waitFor();
    await page.getByText("Disk use by table").waitFor();
    await page.getByText("The server would remove 0 runs").waitFor();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("link", { name: "the audit" }).click();
    await page.getByRole("gridcell", { name: "the card is broken", exact: true }).waitFor();
    await page.getByRole("combobox", { name: "Of" }).selectOption("queue");
    await untilTrue(async () => (await page.getByRole("row").count()) === 3);
    expect(new URL(page.url()).search).toBe("?kind=queue");
    await page.getByText("anna").first().waitFor();
    expect(await axe(page)).toEqual([]);
    await page.getByRole("textbox", { name: "Who" }).fill("nobody");
    await page.keyboard.press("Enter");
    await page.getByText("No order matches.").waitFor();
    expect(await page.content()).not.toContain(operator);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  it("can be read with every token, but a token that only allows reading can order nothing", async () => {
    const { page } = await ui.open();
    await page.goto(`${ui.town.url}/ui/runs?q=state:failed#token=${reader}`);
    await page.goto(`${ui.town.url}/ui/runs?q=state:failed`);
    await page.getByRole("row").nth(1).waitFor();
    await page.locator("[data-list]").focus();
    await page.keyboard.press("j");
    await page.keyboard.press("x");
    const retry = page.getByRole("region", { name: "Chosen runs" }).getByRole("button", { name: "Retry" });
    expect(await retry.getAttribute("aria-disabled")).toBe("true");
    expect(await retry.getAttribute("title")).toContain("operator");
    await page.context().close();
  });
});
