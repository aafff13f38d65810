import { expect, it } from "vitest";
import { loadPg } from "./package.ts";

it("a missing client library is named with the command that installs it", async () => {
  const missing = loadPg(() => Promise.reject(new Error("Cannot find package 'pg'")));
  await expect(missing).rejects.toMatchObject({ code: "LONGSHORE_BAD_CONFIG", message: expect.stringContaining("npm install pg@8") });
});

it("the installed client library is found", async () => {
  expect((await loadPg()).Client).toBeTypeOf("function");
});
