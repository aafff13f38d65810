import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Command } from "commander";
import { expect, it, onTestFinished, vi } from "vitest";
import { temporaryFolder } from "../../test/support/parts.ts";
import { type ServerFlags, serveOptions, withServerFlags } from "./server-flags.ts";

/** As the program reads them when nothing is typed. */
const plain: ServerFlags = withServerFlags(new Command()).parse([], { from: "user" }).opts();

it("the key of TLS is a secret file, which no flow reads", () => {
  const folder = temporaryFolder();
  const [tlsCert, tlsKey] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  for (const file of [tlsCert, tlsKey]) writeFileSync(file, "pem");
  expect(serveOptions({ ...plain, tlsCert, tlsKey }, { format: "json" }).secretFiles).toEqual([tlsKey]);
});

const secretUrl = "mongodb://flowkit:secret@db.example/flowkit";

it("the address of FlowKit's database may come from a file or a variable, and the file is no flow's to read", () => {
  const flowkitMongoFile = join(temporaryFolder(), "mongo.txt");
  writeFileSync(flowkitMongoFile, `${secretUrl}\n`);
  const fromFile = serveOptions({ ...plain, flowkitMongoFile }, { format: "json" });
  expect(fromFile).toMatchObject({ flowkit: { mongo: secretUrl }, secretFiles: [flowkitMongoFile] });
  const env = { LONGSHORE_FLOWKIT_MONGO_URL: secretUrl };
  expect(serveOptions(plain, { format: "json" }, env).flowkit).toEqual({ mongo: secretUrl });
  expect(serveOptions({ ...plain, flowkitMongo: "mongodb://db/x" }, { format: "json" }, env).flowkit).toEqual({ mongo: "mongodb://db/x" });
  writeFileSync(flowkitMongoFile, "\n");
  expect(() => serveOptions({ ...plain, flowkitMongoFile }, { format: "json" })).toThrow(/is empty, expected the address/);
});

it.each([
  [secretUrl, true],
  ["mongodb+srv://flowkit:p@ss@db.example", true],
  ["mongodb://db1:27017,db2:27017/flowkit", false],
  ["mongodb://flowkit@db:27017/a:b@c", false],
])("%s typed on the command line: a warning about its password %s", (flowkitMongo, warns) => {
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  serveOptions({ ...plain, flowkitMongo }, { format: "json" });
  const said = write.mock.calls.map(([text]) => String(text)).join("");
  expect(said.includes("--flowkit-mongo-file")).toBe(warns);
  expect(said).not.toContain("secret@");
});

it("flows are let read what the flags name, and nothing without them", () => {
  expect(serveOptions(plain, { format: "json" }).stepflow).toEqual({});
  const flags = { ...plain, stepflowFiles: "flows", stepflowEnv: ["A", "B"] };
  expect(serveOptions(flags, { format: "json" }).stepflow).toEqual({ files: resolve("flows"), variables: ["A", "B"] });
});
