import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../test/support/parts.ts";
import { type ServerFlags, serveOptions, withServerFlags } from "./server-flags.ts";

/** As the program reads them when nothing is typed. */
const plain: ServerFlags = withServerFlags(new Command(), "start").parse([], { from: "user" }).opts();

it("the key of TLS is a secret file, which no flow reads", () => {
  const folder = temporaryFolder();
  const [tlsCert, tlsKey] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  for (const file of [tlsCert, tlsKey]) writeFileSync(file, "pem");
  expect(serveOptions({ ...plain, tlsCert, tlsKey }, { format: "json" }).secretFiles).toEqual([tlsKey]);
});
