// The log pane with a log of the largest size that a task may have.

import { readFileSync } from "node:fs";
import { beforeAll, expect, it } from "vitest";
import { chromiumMissing } from "./support/browser.ts";
import { useTown } from "./support/suite.ts";

/** 15.9 of the 16 MiB that a task may log; its step fails once, so that there are two attempts. */
const lines = 150_000;
const linesAtOnce = 5_000;
const lineChars = 105;
const lineOf = (at: number) =>
  `${String(at).padStart(6, "0")} ${"the crane lifts another box from the quay to the ship ".repeat(2)}`.slice(0, lineChars);

const ui = useTown({}, { isEmpty: true });
let run: string;

beforeAll(async () => {
  if (chromiumMissing !== undefined) return;
  const send = (path: string, body: unknown) =>
    fetch(`${ui.town.url}/api${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  const claim = async () => {
    const answer = await send("/jobs/claim", { worker_id: "writer", labels: [], lease_ttl_secs: 600, wait_secs: 20 });
    return (await answer.json()) as { lease: { lease_id: string; workflow_id: string; job_id: string } };
  };
  const push = async ({ lease }: Awaited<ReturnType<typeof claim>>, sequence: number, stream: string, data: string) => {
    const chunk = { workflow_id: lease.workflow_id, job_id: lease.job_id, sequence, timestamp_ms: Date.now(), stream, data };
    expect((await send(`/jobs/${lease.lease_id}/logs`, { chunks: [chunk] })).ok).toBe(true);
  };
  await ui.town.api("POST", "/definitions", { name: "talking", on: "demand", jobs: { talk: { run: "talk", retries: 1 } } });
  run = (await ui.town.api<{ id: string }>("POST", "/runs", { workflow: "talking", input: null })).id;
  const first = await claim();
  await push(first, 0, "stderr", "the first try\n");
  await send(`/jobs/${first.lease.lease_id}/fail`, { error: "once more", retryable: true });
  const second = await claim();
  for (let from = 0; from < lines; from += linesAtOnce) {
    const some = Array.from({ length: linesAtOnce }, (_none, at) => `${lineOf(from + at)}\n`);
    await push(second, from / linesAtOnce, "stdout", some.join(""));
  }
  await send(`/jobs/${second.lease.lease_id}/complete`, { outputs: {} });
  await ui.town.ended(run);
});

async function openedLog(query = "") {
  const opened = await ui.open();
  await opened.page.goto(`${ui.town.url}/ui/runs/${run}?pane=log${query}`);
  await opened.page.getByText(lineOf(lines - 1).slice(0, 30)).waitFor();
  return opened;
}

it("a log of 16 MiB shows its end first, earlier lines when they are asked for, and few elements", async () => {
  const { page, requests, faults } = await openedLog();
  const read = requests.filter((path) => path.includes("/logs?")).length;
  expect(read).toBeLessThan(3);
  const shown = page.getByText(/^[\d,]+ lines, there are earlier ones/);
  const before = await shown.innerText();
  await page.getByRole("button", { name: "Show earlier lines" }).click();
  await expect.poll(() => shown.innerText(), { timeout: 10_000 }).not.toBe(before);
  expect(await page.locator(".log-line").count()).toBeLessThan(120);
  expect(faults).toEqual([]);
});

it("a search visits the whole log, and says how much it has visited", async () => {
  const { page, requests, faults } = await openedLog();
  await page.getByRole("searchbox", { name: "Search the log" }).fill("000017 the crane");
  await page.getByText(/^1 line found, looked at 1\d\.\d MB/).waitFor();
  await page.getByText(lineOf(17).slice(0, 30)).waitFor();
  expect(requests.filter((path) => path.includes("text=000017")).length).toBeLessThan(8);
  await page.getByRole("searchbox", { name: "Search the log" }).fill("no such words");
  await page.getByText("No line matches.").waitFor();
  expect(faults).toEqual([]);
});

it("the whole log can be downloaded, and one attempt shown alone", async () => {
  const { page } = await openedLog();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download the whole log" }).click()]);
  const text = readFileSync(await file.path(), "utf8");
  expect(text.match(/^\d{6} the crane/gm)).toHaveLength(lines);
  await page.goto(`${ui.town.url}/ui/runs/${run}?pane=log&step=talk&tab=log&attempt=1`);
  await page.getByRole("region", { name: "Step talk" }).getByText("the first try").waitFor();
});
