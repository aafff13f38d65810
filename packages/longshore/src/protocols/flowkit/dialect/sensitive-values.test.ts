import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../core/json/json.ts";
import { type IsSensitive, loadDetector, looksSensitive, type SensitiveDetector } from "./sensitive-values.ts";
import { changeVars } from "./vars.ts";

const detect = (value: string) => looksSensitive("coordinator.vars.x", value);

/** Refused when the detector blocks, otherwise counted. */
async function expectBlockAndSoft(name: "vars.set" | "vars.merge", detector: SensitiveDetector, data: JsonObject): Promise<void> {
  const isSensitive = await loadDetector(detector);
  expect(() => changeVars(name, {}, { kv: data, block_sensitive: true }, isSensitive)).toThrow(/looks like a secret/);
  expect(() => changeVars(name, {}, { kv: { ...data, block_sensitive: true } }, isSensitive)).toThrow(/looks like a secret/);
  expect(changeVars(name, {}, { kv: data }, isSensitive)).toMatchObject({ vars: data, result: { sensitive_hits: 1 } });
}

/** Found by `module:export`, as an operator would name it. */
export const makeDetector = () => ({ isSensitive: (_path: string, value: unknown) => value === "XYZ" });

describe("a user's own detector", () => {
  it("[T86] may be an object; it blocks a value or counts it", async () => {
    class Leaks {
      readonly word = "LEAK";
      isSensitive(_path: string, value: unknown): boolean {
        return value === this.word;
      }
    }
    await expectBlockAndSoft("vars.set", new Leaks(), { token: "LEAK" });
  });

  // Variables are JSON, which has no bytes. A long text replaces the bytes of the reference's test.
  it("[T87] may be a function, and also works for merge", async () => {
    const isLong: IsSensitive = (_path, value) => typeof value === "string" && value.length > 1_000;
    await expectBlockAndSoft("vars.merge", isLong, { blob: "a".repeat(2_000) });
  });

  it("[T88] may be named as module:export; the export may be a function that creates it", async () => {
    await expectBlockAndSoft("vars.set", `${import.meta.url}:makeDetector`, { x: "XYZ" });
  });

  it.each(["nowhere", "./not-there.js:detector", "node:path:sep", ":x"])("is refused when it is invalid: %s", async (name) => {
    await expect(loadDetector(name)).rejects.toMatchObject({ code: "LONGSHORE_BAD_CONFIG" });
  });
});

describe("what looks like a secret", () => {
  it.each([
    ["a JSON Web Token", "eyJhbGciOi.eyJzdWIiOi.abc"],
    ["a PEM block", "-----BEGIN RSA PRIVATE KEY-----"],
    ["a key id of AWS", "id AKIAIOSFODNN7EXAMPLE"],
    ["a key of Google", `AIza${"a".repeat(35)}`],
    ["a token of Slack", "xoxb-aaaaaaaaaaaaaaaa"],
    ["a bearer token", "Bearer aaaaaaaaaaaaaaaaaaaa"],
    ["base 64", "a".repeat(40)],
    ["much entropy", "q8#Zk!2v@Lm9%Xw5^Ht3"],
  ])("%s", (_what, value) => {
    expect(detect(value)).toBe(true);
  });

  it("is a text that is long enough and has enough different characters", () => {
    expect(detect("Bearer abc")).toBe(false);
    expect(detect("aaa bbb aaa bbb aaa bbb")).toBe(false);
    expect(looksSensitive("p", 1_234_567_890_123)).toBe(false);
  });
});
