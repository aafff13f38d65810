import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../test/support/parts.ts";
import { type ServerFlags, serveOptions, withServerFlags } from "./server-flags.ts";

/** The flags as the program reads them when none is given. */
const plain: ServerFlags = withServerFlags(new Command(), "start").parse([], { from: "user" }).opts();

it("the TLS key is a secret file, which no flow can read", () => {
  const folder = temporaryFolder();
  const [tlsCert, tlsKey] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  for (const file of [tlsCert, tlsKey]) writeFileSync(file, "pem");
  expect(serveOptions({ ...plain, tlsCert, tlsKey }, { format: "json" }).secretFiles).toEqual([tlsKey]);
});
