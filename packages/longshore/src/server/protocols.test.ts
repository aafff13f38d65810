import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryFolder } from "../../test/support/parts.ts";
import { createLogger } from "../core/logger.ts";
import type { Protocol } from "../protocols/protocol.ts";
import type { PreparedProtocol, Preparing } from "../protocols/server-half.ts";
import type { ServeOptions } from "./config.ts";
import { openEngine } from "./engine.ts";
import { openProtocols, prepareProtocols } from "./protocols.ts";

const logger = createLogger({ level: "silent", write: () => {}, clock: { now: () => 0 } });

/** What a protocol receives with these options before anything is opened. */
async function preparedWith(options: ServeOptions): Promise<Preparing> {
  const got: Preparing[] = [];
  const probe: Protocol = {
    name: "probe",
    async prepare(_, around) {
      got.push(around);
      return { dialects: [], open: async () => ({ handle: {} }) };
    },
  };
  await prepareProtocols(options, logger, [probe]);
  return got[0] as Preparing;
}

describe("a protocol is prepared", () => {
  it("with the paths of all secrets: the data folder, the token file, further files, and the configurations of all protocols", async () => {
    const folder = temporaryFolder();
    const at = (name: string) => join(folder, name);
    const { secretPaths } = await preparedWith({
      data: at("data"),
      tokenFile: at("tokens"),
      secretFiles: [at("key.pem")],
      stepflow: { files: folder, config: at("stepflow.yml") },
      flowkit: { config: at("flowkit.json") },
    });
    expect(secretPaths).toEqual(["data", "tokens", "key.pem", "stepflow.yml", "flowkit.json"].map(at));
  });

  it("with whether the server listens", async () => {
    expect((await preparedWith({ ephemeral: true })).listens).toBe(true);
    expect((await preparedWith({ ephemeral: true, port: null })).listens).toBe(false);
  });
});

describe("protocols are opened", () => {
  const calls: string[] = [];
  const prepared = (name: string): PreparedProtocol => ({
    dialects: [],
    async open() {
      calls.push(`open ${name}`);
      if (name === "bad") throw new Error("The broker is not there.");
      return { handle: { [name]: name }, close: async () => void calls.push(`close ${name}`) };
    },
  });

  async function open(...names: string[]) {
    calls.length = 0;
    const engine = await openEngine({ directory: null });
    onTestFinished(() => engine.close());
    return openProtocols(names.map(prepared), engine, logger);
  }

  it("in order, and their fields are those of the server", async () => {
    const { handles, close } = await open("a", "b");
    expect(handles).toEqual({ a: "a", b: "b" });
    await close();
    await close();
    expect(calls).toEqual(["open a", "open b", "close a", "close b"]);
  });

  it("or none of them: when one fails, those before it are closed", async () => {
    await expect(open("a", "bad", "b")).rejects.toThrow("The broker is not there.");
    expect(calls).toEqual(["open a", "open bad", "close a"]);
  });
});
