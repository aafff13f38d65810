// The catalogue of workflows: what it shows, definitions by paste, versions, and starts with a form.

import { graph, type Ref, task } from "longshore";
import { expect, it } from "vitest";
import { z } from "zod";
import { axe } from "./support/browser.ts";
import { useTown } from "./support/suite.ts";

const ui = useTown();

it("the list has workflows of every language, with how their last runs ended", async () => {
  const { page, faults } = await ui.openAt("/ui/workflows");
  const rowOf = (name: string) => page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
  for (const [name, dialect] of [
    ["order", "code"],
    ["approval", "function"],
    ["parcel", "conductor"],
    ["backup", "workflow-graph"],
  ] as const)
    await rowOf(name).getByText(dialect, { exact: true }).waitFor();
  await rowOf("order").getByRole("img", { name: "1 of the last 2 runs succeeded" }).waitFor();
  await rowOf("training").getByText("none yet").waitFor();
  await rowOf("hostile").getByText("never ran").waitFor();
  expect(faults).toEqual([]);
});

it("a pasted definition is checked while it is typed, defined, and its next version is compared", async () => {
  const { page, faults } = await ui.openAt("/ui/workflows");
  await page.getByRole("button", { name: "Define" }).click();
  const text = page.getByRole("textbox", { name: "Definition" });
  await text.fill("name: harbour\non: demand\njobs:\n  load: { run: echo load, needs: crane }\n");
  await page.getByText("Line 4, column").waitFor();
  expect(await axe(page)).toEqual([]);
  await text.fill("name: harbour\non: demand\njobs:\n  load: { run: echo load }\n");
  await page.getByText("A new workflow").waitFor();
  await page.getByRole("button", { name: "Define" }).last().click();
  await page.getByRole("heading", { name: "harbour" }).waitFor();
  await page
    .getByRole("button", { name: "All its runs" })
    .or(page.getByRole("link", { name: "All its runs" }))
    .waitFor();
  await ui.town.api("POST", "/definitions", {
    name: "harbour",
    on: "demand",
    jobs: { load: { run: "echo load" }, sail: { needs: "load", run: "echo sail" } },
  });
  await page.reload();
  await page.getByRole("tab", { name: "Versions" }).click();
  await page.getByText("New steps (1):").waitFor();
  await page.locator(".diff-added").filter({ hasText: "echo sail" }).waitFor();
  expect(await axe(page)).toEqual([]);
  expect(faults).toEqual([]);
});

it("a workflow says which step no worker can take, with the command that helps, before anything is started", async () => {
  const { page } = await ui.openAt("/ui/workflows/training");
  const section = page.getByRole("region", { name: "Steps that no worker can take" });
  await section.getByText("No worker can take the step train-model").waitFor();
  await section.getByText(`npx longshore work tasks.mjs --labels gpu --on ${ui.town.url}`).waitFor();
});

it("a start begins with the input of an earlier run, has a form, and shows the same as a command", async () => {
  const greet = task("price", async (input: { items: [] }) => input);
  const input = z.object({ customer: z.string(), express: z.boolean().default(false) });
  const formal = graph("formal", (g, given: Ref<z.input<typeof input>>) => void g.step(greet, { items: [], of: given.customer } as never), {
    input,
  });
  await ui.town.api("POST", "/definitions", { source: formal.source });
  await ui.town.api("POST", "/runs", { workflow: "formal", input: { customer: "Grace", express: true } });
  const { page, faults } = await ui.openAt("/ui/workflows/formal");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByLabel("Begin with").selectOption({ label: '{"customer":"Grace","express":true}' });
  const customer = page.getByRole("textbox", { name: /customer/ });
  expect(await customer.inputValue()).toBe("Grace");
  await customer.fill("Ada");
  await page.getByText("The same as a command").click();
  await page.getByText(/curl [\s\S]*"customer":\s*"Ada"/).waitFor();
  expect(await axe(page)).toEqual([]);
  await page.getByRole("button", { name: "Start", exact: true }).last().click();
  await page.waitForURL(/\/ui\/runs\/./);
  await page.getByRole("heading", { name: "formal" }).first().waitFor();
  const { items } = await ui.town.api<{ items: { input: unknown }[] }>("GET", "/runs?workflow=formal");
  expect(items.map((run) => run.input)).toContainEqual({ customer: "Ada", express: true });
  expect(faults).toEqual([]);
});
