// Checks the set-up of these tests: they test a cluster only when requests of programs pass between two nodes.
import { expect, it } from "vitest";
import { startOurServer } from "../src/longshore.ts";
import { openStage } from "../src/stage.ts";

it("programs get the address of the node that does not own the data, and that node passes requests on", async (context) => {
  const { url } = await startOurServer(openStage(context));
  const figure = async (name: string): Promise<number> => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
  };
  expect(await figure("longshore_node_takeovers_total")).toBe(0);
  const before = await figure("longshore_link_calls_total");
  expect((await fetch(`${url}/api/metadata/workflow`)).status).toBe(200);
  expect(await figure("longshore_link_calls_total")).toBe(before + 1);
});
