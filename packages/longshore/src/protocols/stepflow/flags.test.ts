import { resolve } from "node:path";
import { Command } from "commander";
import { expect, it } from "vitest";
import { type ServerFlags, serveOptions, withServerFlags } from "../../cli/server-flags.ts";

/** As the program reads them when nothing is typed. */
const plain: ServerFlags = withServerFlags(new Command(), "start").parse([], { from: "user" }).opts();

it("flows are let read what the flags name, and nothing without them", () => {
  expect(serveOptions(plain, { format: "json" }).stepflow).toEqual({});
  const flags = { ...plain, stepflowFiles: "flows", stepflowEnv: ["A", "B"] };
  expect(serveOptions(flags, { format: "json" }).stepflow).toEqual({ files: resolve("flows"), variables: ["A", "B"] });
});
