// What the pages do: live rows, keys, tokens, tabs, and a server that is killed.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { openPage, textOf, watched } from "./support/browser.ts";
import { apiOf, goodOrder, untilTrue } from "./support/port-town.ts";
import { useTown } from "./support/suite.ts";

const tokens = { operator: "operator-secret-0123456789", read: "read-secret-0123456789" };
const ui = useTown({ tokens: [`worker,operator,read:${tokens.operator}:crew`, `read:${tokens.read}:guest`] }, { token: tokens.operator });
const signedIn = (path: string, token = tokens.operator) => ui.openAt(path, token);

describe("the list of runs", () => {
  it("shows a new run and its end without a reload", async () => {
    const { page, faults } = await signedIn("/ui/runs");
    const { id } = await ui.town.api<{ id: string }>("POST", "/runs", { workflow: "approval", input: goodOrder });
    const row = page.getByRole("row").filter({ has: page.locator(`a[href$="${id}"]`) });
    await row.getByText("running").waitFor();
    await ui.town.api("POST", `/runs/${id}/cancel`, {});
    await row.getByText("cancelled").waitFor();
    expect(faults).toEqual([]);
  });

  it("moves no row while the user works in the list, and shows how many newer runs there are", async () => {
    const { page } = await signedIn("/ui/runs");
    await page.getByRole("grid", { name: "Runs" }).focus();
    const before = await page.locator(".table-row a").first().getAttribute("href");
    const { id } = await ui.town.api<{ id: string }>("POST", "/runs", { workflow: "order", input: goodOrder });
    await page.getByRole("button", { name: /newer run/ }).waitFor();
    expect(await page.locator(".table-row a").first().getAttribute("href")).toBe(before);
    await page.getByRole("button", { name: /newer run/ }).click();
    await page.locator(`a[href$="${id}"]`).waitFor();
  });

  it("keeps only the visible rows in the document", async () => {
    const starts = Array.from({ length: 150 }, () =>
      ui.town.api("POST", "/runs", { workflow: "training", input: null, delayMs: 3_600_000 }),
    );
    await Promise.all(starts);
    const { page } = await signedIn("/ui/runs");
    await page.locator(".table-row").nth(10).waitFor();
    await page.evaluate("document.querySelector('.table-box').scrollTop = 2500");
    await page.locator("#row-90").waitFor();
    expect(await page.locator(".table-row").count()).toBeLessThan(60);
  });

  it("has its query in the address, and searches the data of all runs", async () => {
    const { page } = await signedIn("/ui/runs");
    await page.keyboard.press("/");
    await page.keyboard.type("input.customer:Mallory");
    await page.keyboard.press("Enter");
    await page.getByText("ECONNREFUSED").first().waitFor();
    expect(new URL(page.url()).searchParams.get("q")).toBe("input.customer:Mallory");
    await page.getByText(/Looked at \d+ of \d+, 1 found/).waitFor();
    await page.reload();
    await page.getByText("ECONNREFUSED").first().waitFor();
  });
});

it("with the keyboard alone, a user finds a failed run and its cause, runs it again with another input, and cancels the new run", async () => {
  const { page, faults } = await signedIn("/ui");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("runs");
  await page.keyboard.press("Enter");
  await page.getByRole("grid", { name: "Runs" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("state:failed workflow:order");
  await page.keyboard.press("Enter");
  await page.getByText("ECONNREFUSED").first().waitFor();
  await page.getByRole("grid", { name: "Runs" }).focus();
  expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "order" }).waitFor();
  await page.getByText("charge", { exact: true }).first().waitFor();
  await page.keyboard.press("f");
  await page.getByRole("region", { name: "Step charge" }).getByText("ECONNREFUSED").waitFor();
  await page.keyboard.press("e");
  await page.getByRole("textbox", { name: "Input, as JSON" }).focus();
  await page.keyboard.press("Control+a");
  await page.keyboard.type('{"customer": "Grace", "items": []}');
  await page.getByRole("button", { name: "Start", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("succeeded").first().waitFor();
  await page.goto(`${ui.town.url}/ui/runs/${ui.town.runs.approval}`);
  await page.getByText('is waiting for signal "approve"').waitFor();
  const cancel = page.getByRole("button", { name: "Cancel", exact: true });
  await cancel.focus();
  await page.keyboard.press("Enter");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await expect.poll(() => page.evaluate("document.activeElement.textContent"), { timeout: 10_000 }).toBe("Cancel");
  await page.keyboard.press("c");
  await page.getByRole("textbox", { name: /Reason/ }).focus();
  await page.keyboard.type("by hand");
  await page.getByRole("button", { name: "Cancel the run" }).focus();
  await page.keyboard.press("Enter");
  await page.getByText("by hand").first().waitFor();
  expect(faults).toEqual([]);
});

it("the preview of a bulk action shows what the action then does", async () => {
  const { page, faults } = await signedIn(`/ui/runs/${ui.town.runs.done}?step=price`);
  await page.getByRole("button", { name: "Run again from here" }).click();
  const expected = page.getByRole("group", { name: "What will happen" });
  await expected.getByText(/charge/).waitFor();
  const said = await expected.innerText();
  const again = /Begin again \(\d+\): (.*)/.exec(said)?.[1]?.split(", ").sort();
  const kept = /Keep their results \(\d+\): (.*)/.exec(said)?.[1]?.split(", ").sort();
  const before = await stepsOf(ui.town.runs.done);
  await page.getByRole("button", { name: "Run again", exact: true }).last().click();
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  await untilTrue(async () => (await stepsOf(ui.town.runs.done)).every(({ state }) => state === "done"));
  const changed = (await stepsOf(ui.town.runs.done)).filter(
    ({ id, startedAt }) => startedAt !== before.find((step) => step.id === id)?.startedAt,
  );
  expect(changed.map(({ id }) => id).sort()).toEqual(again);
  expect(kept).toEqual(["print-label", "reserve-box"]);
  expect(faults).toEqual([]);
});

async function stepsOf(run: string) {
  return (await ui.town.api<{ items: { id: string; state: string; startedAt: number | null }[] }>("GET", `/runs/${run}/steps`)).items;
}

describe("a token", () => {
  it("that only allows reading shows every page, and disables what it does not allow, with the reason", async () => {
    const { page, faults } = await signedIn(`/ui/runs/${ui.town.runs.failed}`, tokens.read);
    const retry = page.getByRole("button", { name: /^Retry/ });
    await retry.waitFor();
    await page.getByText("Your token guest has read").first().waitFor({ state: "attached" });
    expect(await retry.getAttribute("aria-disabled")).toBe("true");
    expect(await retry.getAttribute("title")).toBe("This needs the scope operator. Your token guest has read.");
    await retry.focus();
    await page.keyboard.press("Enter");
    expect(await page.locator("dialog[open]").count()).toBe(0);
    for (const path of ["/ui", "/ui/runs", "/ui/workflows", "/ui/queues", "/ui/workers", "/ui/schedules", "/ui/settings"]) {
      await page.goto(ui.town.url + path);
      await page.locator("#title").waitFor();
      expect(await page.getByRole("alert").count()).toBe(0);
    }
    expect(faults).toEqual([]);
  });

  it("that is unknown to the server makes the page ask for another, and no token is in an address, the document or a log", async () => {
    const logs: string[] = [];
    const { page, requests } = await ui.open();
    page.on("console", (message) => logs.push(message.text()));
    await page.goto(`${ui.town.url}/ui/runs`);
    await page.getByLabel("Token").fill("a-token-that-is-wrong");
    await page.keyboard.press("Enter");
    await page.getByText("The server does not know this token.").waitFor();
    await page.getByLabel("Token").fill(tokens.read);
    await page.keyboard.press("Enter");
    await page.getByRole("grid", { name: "Runs" }).waitFor();
    const seen = [
      page.url(),
      ...requests,
      ...logs,
      await page.content(),
      await textOf(page),
      await page.evaluate("JSON.stringify(localStorage)"),
    ];
    expect(seen.filter((text) => String(text).includes(tokens.read))).toEqual([]);
  });
});

it("eight tabs of a browser share one stream, and another tab takes it over", async () => {
  const { page, requests } = await signedIn("/ui/runs");
  await page.getByText("Live").waitFor();
  const others = await Promise.all(
    Array.from({ length: 7 }, async () => {
      const tab = await watched(await page.context().newPage(), ui.town.url);
      await tab.page.addInitScript(`sessionStorage.setItem("longshore.token", ${JSON.stringify(tokens.operator)})`);
      await tab.page.goto(`${ui.town.url}/ui/runs`);
      await tab.page.getByText("Live").waitFor();
      return tab;
    }),
  );
  const streams = (list: readonly string[]) => list.filter((path) => path.includes("/events")).length;
  expect(streams(requests)).toBeGreaterThan(0);
  expect(others.map((tab) => streams(tab.requests))).toEqual([0, 0, 0, 0, 0, 0, 0]);
  await page.close();
  await untilTrue(async () => others.some((tab) => streams(tab.requests) > 0));
  const { id } = await ui.town.api<{ id: string }>("POST", "/runs", { workflow: "order", input: goodOrder });
  for (const tab of others) await tab.page.locator(`a[href$="${id}"]`).waitFor();
});

describe("a server that is killed", () => {
  const folder = mkdtempSync(join(tmpdir(), "longshore-ui-"));
  const program = fileURLToPath(new URL("../../longshore/bin/longshore.js", import.meta.url));
  let child: ChildProcess | undefined;
  afterAll(() => {
    child?.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });

  async function start(port: number): Promise<void> {
    child = spawn(process.execPath, [program, "start", "--port", String(port), "--data", join(folder, "data"), "--log-level", "error"], {
      stdio: "ignore",
    });
    await untilTrue(() =>
      fetch(`http://127.0.0.1:${port}/health`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  }

  it("is reported, and the page continues without a reload when the server is back", async () => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    await start(port);
    const api = apiOf(url);
    await api("POST", "/definitions?name=wait", { name: "wait", on: "demand", jobs: { a: { run: "echo a" } } });
    const first = await api<{ id: string }>("POST", "/runs", { workflow: "wait" });
    const { page, faults } = await openPage(ui.browser, url);
    await page.goto(`${url}/ui/runs`);
    await page.locator(`a[href$="${first.id}"]`).waitFor();
    await page.evaluate("globalThis.isSamePage = true");
    child?.kill("SIGKILL");
    // A request of the page may also fail, with the same message.
    const words = page.getByText("The server does not answer.");
    await words.first().waitFor();
    await start(port);
    await expect.poll(() => words.count(), { timeout: 30_000 }).toBe(0);
    const second = await api<{ id: string }>("POST", "/runs", { workflow: "wait" });
    await page.locator(`a[href$="${second.id}"]`).waitFor();
    await api("POST", `/runs/${first.id}/cancel`, {});
    await page
      .getByRole("row")
      .filter({ has: page.locator(`a[href$="${first.id}"]`) })
      .getByText("cancelled")
      .waitFor();
    expect(await page.evaluate("globalThis.isSamePage")).toBe(true);
    expect(faults.filter((fault) => !fault.includes("ERR_"))).toEqual([]);
  });
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
