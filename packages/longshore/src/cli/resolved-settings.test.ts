import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../test/support/parts.ts";
import { resolveSettings } from "./resolved-settings.ts";
import { withServerFlags } from "./server-flags.ts";
import { serverSettings } from "./server-settings.ts";

interface Given {
  readonly typed?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The content of a file whose name has this ending. */
  readonly file?: string;
  readonly ending?: string;
}

async function settle({ typed = [], env = {}, file, ending = "json" }: Given) {
  const path = join(temporaryFolder(), `longshore.config.${ending}`);
  if (file !== undefined) writeFileSync(path, file);
  const args = file === undefined ? typed : ["--config", path, ...typed];
  const command = withServerFlags(new Command().exitOverride(), "start").parse(args, { from: "user" });
  return { path, ...(await resolveSettings(command, "start", env)) };
}

const refusal = async (given: Given) => {
  const { message, code } = await settle(given).then(
    () => ({ message: "", code: undefined }),
    (error: Error & { code?: string }) => error,
  );
  return { message: message.replaceAll(/[^\s(]*longshore\.config/g, "longshore.config"), code };
};

describe("the value of a setting", () => {
  const env = { LONGSHORE_PORT: "2" };
  const file = '{ "port": 3 }';

  it("comes from the command line, else from the environment, else from the file, else it is the default", async () => {
    expect((await settle({ typed: ["--port", "1"], env, file })).values.port).toBe(1);
    expect((await settle({ env, file })).values.port).toBe(2);
    expect((await settle({ file })).values.port).toBe(3);
    expect((await settle({})).values.port).toBe(4500);
    // An empty variable counts as absent.
    expect((await settle({ env: { LONGSHORE_PORT: " " }, file })).values.port).toBe(3);
  });

  it("has its place", async () => {
    const { list } = await settle({ typed: ["--host", "::1"], env, file: '{\n  "keepFor": "1d"\n}' });
    const places = list.filter(({ source }) => source !== "default").map(({ setting, place }) => [setting.key, place]);
    expect(places).toEqual([
      ["port", "LONGSHORE_PORT"],
      ["host", "--host"],
      ["keepFor", expect.stringMatching(/longshore\.config\.json:2:3$/)],
    ]);
  });

  it.each(["json", "yaml", "mjs"])("may have any type in a file that ends with %s", async (ending) => {
    const content = {
      port: 0,
      ephemeral: true,
      origin: ["https://a.example"],
      keepFor: "2d",
      logLevel: "error",
      tokens: "secretsecretsecret",
    };
    const file = ending === "mjs" ? `export default ${JSON.stringify(content)};` : JSON.stringify(content);
    expect((await settle({ file, ending })).values).toMatchObject({
      ...{ port: 0, ephemeral: true, origin: ["https://a.example"], logLevel: "error", token: ["secretsecretsecret"] },
    });
  });

  it("may have any type in an environment variable", async () => {
    const variables = {
      EPHEMERAL: "true",
      ORIGIN: "https://a.example, https://b.example",
      TOKENS: "worker,read:aaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbb",
    };
    const given = Object.fromEntries(Object.entries(variables).map(([name, value]) => [`LONGSHORE_${name}`, value]));
    expect((await settle({ env: given })).values).toMatchObject({
      ephemeral: true,
      origin: ["https://a.example", "https://b.example"],
      token: ["worker,read:aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"],
    });
    expect((await settle({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://otel:4317" } })).values.otlpEndpoint).toBe("http://otel:4317");
    const both = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://otel:4317", LONGSHORE_OTLP_ENDPOINT: "http://mine:4317" };
    expect((await settle({ env: both })).values.otlpEndpoint).toBe("http://mine:4317");
  });

  it("does not come from the variables that Kubernetes sets for a service called longshore", async () => {
    expect((await settle({ env: { LONGSHORE_PORT: "tcp://10.0.0.7:4500" } })).values.port).toBe(4500);
  });

  it("that is a path is relative to the folder of the file", async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "ops"));
    const path = join(folder, "ops/settings.yaml");
    writeFileSync(path, "data: data\ntokenFile: /etc/tokens\n");
    const command = withServerFlags(new Command(), "start").parse(["--config", path], { from: "user" });
    const { values } = await resolveSettings(command, "start", {});
    expect(values).toMatchObject({ data: join(folder, "ops/data"), tokenFile: "/etc/tokens" });
  });
});

describe("settings that exclude each other", () => {
  it("do not conflict when they have different sources", async () => {
    const typed = await settle({ typed: ["--ephemeral"], env: { LONGSHORE_DATA: "x" } });
    expect(typed.values).not.toHaveProperty("data");
    const data = await settle({ typed: ["--data", "x"], env: { LONGSHORE_STORE: "postgres://u@h/d" } });
    expect(data.values).toMatchObject({ data: "x" });
    expect(data.values).not.toHaveProperty("store");
    expect((await settle({ env: { LONGSHORE_EPHEMERAL: "false", LONGSHORE_DATA: "x" } })).values).toMatchObject({ data: "x" });
  });

  it("are refused when they have the same source; the error names both places", async () => {
    expect(await refusal({ env: { LONGSHORE_STORE: "postgres://u@h/d", LONGSHORE_DATA: "x" } })).toEqual({
      message: "LONGSHORE_STORE and LONGSHORE_DATA exclude each other. Remove one of them.",
      code: "LONGSHORE_BAD_CONFIG",
    });
    expect((await refusal({ file: '{ "ephemeral": true,\n"data": "x" }' })).message).toBe(
      "ephemeral (longshore.config.json:1:3) and data (longshore.config.json:2:1) exclude each other. Remove one of them.",
    );
  });
});

describe("an error names the place of the mistake", () => {
  it.each<[Given, string]>([
    [{ file: '{\n "prot": 1 }' }, "longshore.config.json:2:2: there is no setting prot. Did you mean port?"],
    [{ file: "port: '80'\n", ending: "yaml" }, 'longshore.config.yaml:1:1: port is "80", expected a port from 0 to 65535.'],
    [{ file: '{ "port": 70000 }' }, "longshore.config.json:1:3: port is 70000, expected a port from 0 to 65535."],
    [{ file: '{ "origin": [1] }' }, "longshore.config.json:1:3: origin is [1], expected a list of texts."],
    [{ file: '{ "port": 1,, }' }, "longshore.config.json:1:13: This is not JSON: "],
    [{ file: "[]" }, "longshore.config.json:1:1: A configuration is not a list or a single value."],
    [{ file: "export const port = 1;", ending: "mjs" }, "longshore.config.mjs has no configuration as its default export."],
    [{ file: "export default { prot: 1 };", ending: "mjs" }, "longshore.config.mjs: there is no setting prot. Did you mean port?"],
    [{ file: "", ending: "toml" }, "the configuration file longshore.config.toml ends with .toml, expected "],
    [{ typed: ["--config", "missing.json"] }, "the configuration file missing.json cannot be read: ENOENT"],
    [{ env: { LONGSHORE_KEEP_FOR: "soon" } }, 'the environment variable LONGSHORE_KEEP_FOR is "soon", expected a duration'],
    [{ env: { LONGSHORE_INSECURE: "maybe" } }, 'the environment variable LONGSHORE_INSECURE is "maybe", expected true or false.'],
  ])("%o", async (given, message) => {
    const refused = await refusal(given);
    expect(refused.message).toContain(message);
    expect(refused.code).toBe("LONGSHORE_BAD_CONFIG");
  });

  it("but contains no secret", async () => {
    const { message } = await refusal({ file: '{ "tokens": ["", "secretsecretsecret"] }' });
    expect(message).toMatch(/tokens is not a list of tokens\.$/);
  });
});

it("the type of a configuration has exactly the keys of the table", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  const folders = readdirSync(new URL("../protocols", import.meta.url), { withFileTypes: true }).filter((one) => one.isDirectory());
  const options = folders
    .map(({ name }) => `../protocols/${name}/server/options.ts`)
    .filter((path) => existsSync(new URL(path, import.meta.url)));
  const interfaces = [read("../server/define-config.ts"), ...options.map(read)].flatMap((text) => [
    ...text.matchAll(/^export interface (?:Config|\w+Settings)\b[^\n]*\{\n([\s\S]*?)^\}/gm),
  ]);
  const keys = interfaces.flatMap(([, body = ""]) => [...body.matchAll(/^ {2}(\w+)\?:/gm)].map(([, key]) => key));
  expect(keys.sort()).toEqual(serverSettings.map(({ key }) => key).sort());
});
