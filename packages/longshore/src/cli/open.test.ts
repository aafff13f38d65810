import { expect, it } from "vitest";
import { dashboardAddress } from "./open.ts";

it("the address of the dashboard begins with the server's address and contains the run", () => {
  expect(dashboardAddress("http://127.0.0.1:4500")).toBe("http://127.0.0.1:4500/ui");
  expect(dashboardAddress("https://ops.example/longshore/", "a/b")).toBe("https://ops.example/longshore/ui/runs/a%2Fb");
});
