// The page of one run: an earlier moment, its history, and the end of a delay.

import { readFileSync } from "node:fs";
import { graph, task, work } from "longshore";
import { expect, it } from "vitest";
import { deferred } from "../../longshore/test/support/until.ts";
import { axe } from "./support/browser.ts";
import { goodOrder, untilTrue } from "./support/port-town.ts";
import { useTown } from "./support/suite.ts";

const token = "run-page-secret-0123456789";
const ui = useTown({ tokens: [`worker,operator,read:${token}:harbour-master`] }, { token });
const opened = (path: string) => ui.openAt(path, token);

it("an earlier moment is shown in the graph and in the timeline, and is in the address", async () => {
  const { page, faults } = await opened(`/ui/runs/${ui.town.runs.failed}?step=charge`);
  await page.getByRole("button", { name: /^charge, failed/ }).waitFor();
  const moment = page.getByRole("slider", { name: "Moment" });
  await moment.focus();
  await page.keyboard.press("Home");
  await page.getByRole("button", { name: /^charge, not begun/ }).waitFor();
  expect(new URL(page.url()).searchParams.get("at")).toBe("0");
  expect(await axe(page)).toEqual([]);
  await page.getByRole("tab", { name: "Timeline" }).click();
  await page.locator(".bar-moment").first().waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Show its end" }).click();
  await page.getByRole("tab", { name: "Graph" }).click();
  await page.getByRole("button", { name: /^charge, failed/ }).waitFor();
  expect(faults).toEqual([]);
});

it("the history names who ordered what, and why", async () => {
  const { id } = await ui.town.api<{ id: string }>("POST", "/runs", { workflow: "approval", input: goodOrder });
  await ui.town.api("POST", `/runs/${id}/cancel`, { reason: "the ship has left" });
  const { page, faults } = await opened(`/ui/runs/${id}?pane=history`);
  const history = page.getByRole("list", { name: "What happened to the run" });
  await history.getByText("cancel by harbour-master").waitFor();
  await history.getByText("the ship has left").first().waitFor();
  await page.getByRole("button", { name: "Export" }).click();
  await page.getByText(/^The file has/).waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save the file" }).click()]);
  const bytes = readFileSync(await file.path(), "utf8");
  expect([bytes.includes("the ship has left"), bytes.includes(token)]).toEqual([true, false]);
  expect(await axe(page)).toEqual([]);
  expect(faults).toEqual([]);
});

it("a delay before the next try can be ended", async () => {
  let tries = 0;
  const moor = task("moor", async () => {
    tries++;
    if (tries === 1) throw new Error("no rope yet");
    return "moored";
  });
  const mooring = graph("mooring", (g) => void g.step(moor, null, { retry: { limit: 1, backoff: { kind: "fixed", delayMs: 3_600_000 } } }));
  const worker = await work({ tasks: [moor], on: ui.town.server });
  await ui.town.server.define(mooring);
  const { id } = await ui.town.api<{ id: string }>("POST", "/runs", { workflow: "mooring", input: null });
  await untilTrue(async () => tries === 1);
  const { page, faults } = await opened(`/ui/runs/${id}?step=moor`);
  await page.getByRole("button", { name: "End the delay" }).click();
  await page.getByRole("button", { name: "End the delays" }).click();
  await page.getByText("succeeded").first().waitFor();
  expect(tries).toBe(2);
  await worker.stop();
  expect(faults).toEqual([]);
});

it("a queue is paused and a worker cordoned with a reason, and the tasks of the queue say so", async () => {
  const { page, faults } = await opened("/ui/queues?lane=train-model%20gpu");
  await page.getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByRole("textbox", { name: /Reason/ }).fill("the crane is broken");
  await page.getByRole("button", { name: "Pause the queue" }).click();
  await page.getByText(/Paused by harbour-master .*: the crane is broken/).waitFor();
  expect(await axe(page)).toEqual([]);
  await page.goto(`${ui.town.url}/ui/runs/${ui.town.runs.stuck}?step=train-model`);
  await page
    .getByText(/is paused by harbour-master since .*: the crane is broken/)
    .first()
    .waitFor();
  await page.goto(`${ui.town.url}/ui/queues?lane=train-model%20gpu`);
  await page.getByRole("button", { name: "Resume", exact: true }).click();
  await page.getByRole("button", { name: "Resume the queue" }).click();
  await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
  const { items } = await ui.town.api<{ items: { id: string; protocol: string }[] }>("GET", "/workers");
  const worker = items.find(({ protocol }) => protocol === "conductor")?.id ?? "";
  await page.goto(`${ui.town.url}/ui/workers?worker=${encodeURIComponent(worker)}`);
  await page.getByRole("button", { name: "Cordon", exact: true }).click();
  await page.getByRole("textbox", { name: /Reason/ }).fill("it is repaired");
  await page.getByRole("button", { name: "Cordon the worker" }).click();
  await page.getByText(/cordoned by harbour-master .*: it is repaired/).waitFor();
  await page.getByRole("button", { name: "Uncordon", exact: true }).click();
  await page.getByRole("button", { name: "Uncordon the worker" }).click();
  await page.getByRole("button", { name: "Cordon", exact: true }).waitFor();
  expect(faults).toEqual([]);
});

it("the streams of a run show what each step has given, and follow new parts", async () => {
  const more = deferred<void>();
  const scan = task("scan", async (_input: null, ctx) => {
    await Promise.all([1, 2, 3].map((page) => ctx.emit({ page })));
    await more.promise;
    await ctx.emit({ page: 4 });
  });
  const total = task("total", async (_input: null, ctx) => {
    let sum = 0;
    for await (const _part of ctx.parts("scan")) sum++;
    return sum;
  });
  const scanning = graph("scanning", (g) => {
    const pages = g.step(scan, null);
    g.step(total, null, { after: [pages], startWhen: "first-part" });
  });
  const worker = await work({ tasks: [scan, total], on: ui.town.server });
  await ui.town.server.define(scanning);
  const { id } = await ui.town.api<{ id: string }>("POST", "/runs", { workflow: "scanning", input: null });
  const { page, faults } = await opened(`/ui/runs/${id}`);
  await page.getByRole("tab", { name: "Streams" }).click();
  const stream = page.getByRole("region", { name: "Parts of scan" });
  await stream.getByText("3 parts given").waitFor();
  await stream.getByText("has not reported a part as read").waitFor();
  expect(await axe(page)).toEqual([]);
  more.resolve();
  await stream.getByText("4 parts given").waitFor();
  await stream.getByRole("button", { name: "total" }).click();
  expect(new URL(page.url()).searchParams.get("step")).toBe("total");
  expect(faults).toEqual([]);
  await worker.stop();
});
