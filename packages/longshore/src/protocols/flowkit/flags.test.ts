import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { expect, it, onTestFinished, vi } from "vitest";
import { temporaryFolder } from "../../../test/support/parts.ts";
import { resolveSettings } from "../../cli/resolved-settings.ts";
import { type ServerFlags, serveOptions, withServerFlags } from "../../cli/server-flags.ts";

/** The flags as the program reads them when none is given. */
const plain: ServerFlags = withServerFlags(new Command(), "start").parse([], { from: "user" }).opts();

const secretUrl = "mongodb://flowkit:secret@db.example/flowkit";

it("the address of FlowKit's database may be in a file, and no flow may read the file", () => {
  const flowkitMongoFile = join(temporaryFolder(), "mongo.txt");
  writeFileSync(flowkitMongoFile, `${secretUrl}\n`);
  const fromFile = serveOptions({ ...plain, flowkitMongoFile }, { format: "json" });
  expect(fromFile).toMatchObject({ flowkit: { mongo: secretUrl }, secretFiles: [flowkitMongoFile] });
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

it("the address of FlowKit's database in a variable causes no warning, and a file in a flag takes precedence", async () => {
  const env = { LONGSHORE_FLOWKIT_MONGO_URL: secretUrl };
  const command = withServerFlags(new Command(), "start");
  const fromVariable = await resolveSettings(command.parse([], { from: "user" }), "start", env);
  const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  onTestFinished(() => write.mockRestore());
  const flags = fromVariable.values as ServerFlags;
  expect(serveOptions(flags, { format: "json", isTyped: fromVariable.isTyped }).flowkit).toEqual({ mongo: secretUrl });
  expect(write).not.toHaveBeenCalled();
  const typed = await resolveSettings(command.parse(["--flowkit-mongo-file", "mongo.txt"], { from: "user" }), "start", env);
  expect(typed.values).toMatchObject({ flowkitMongoFile: "mongo.txt" });
  expect(typed.values).not.toHaveProperty("flowkitMongo");
});
