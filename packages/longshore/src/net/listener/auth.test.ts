import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { LongshoreError } from "../../core/errors.ts";
import { createAuth, parseToken, readTokenFile } from "./auth.ts";

const secret = "kV3mQ0rT8xLw2ZpB";

function tokenFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "longshore-auth-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "tokens.txt");
  writeFileSync(path, text);
  return path;
}

function errorOf(action: () => unknown): LongshoreError {
  try {
    action();
  } catch (error) {
    if (error instanceof LongshoreError) return error;
  }
  throw new Error("Expected a LongshoreError.");
}

describe("the token format", () => {
  it("treats a secret without scopes as an operator's", () => {
    expect(parseToken(secret, "--token 1")).toMatchObject({ secret, scopes: ["operator"] });
  });

  it("accepts scopes before the secret and a name after it", () => {
    expect(parseToken(`worker,read:${secret}:build-machines`, "--token 1")).toEqual({
      secret,
      scopes: ["worker", "read"],
      name: "build-machines",
    });
  });

  it("generates a name that distinguishes tokens and discloses nothing of the secret", () => {
    const { name } = parseToken(`worker:${secret}`, "--token 1");
    expect(name).toMatch(/^worker-[0-9a-f]{6}$/);
    expect(parseToken(`worker:${secret}x`, "--token 1").name).not.toBe(name);
    expect(parseToken(`worker,read:${secret}`, "--token 1").name).toMatch(/^worker-read-[0-9a-f]{6}$/);
  });

  it.each([
    ["an unknown scope", `admin:${secret}`, "scope"],
    ["an empty scope", `:${secret}`, "scope"],
    ["a short secret", "worker:short-secret", "16 to 512"],
    ["characters outside the alphabet", `worker:${secret} with blanks`, "characters"],
    ["an unusable name", `worker:${secret}:na me`, "name"],
    ["too many parts", `worker:${secret}:a:b`, "parts"],
  ])("refuses %s, naming the place and never the secret", (_what, text, hint) => {
    const error = errorOf(() => parseToken(text, "--token 3"));
    expect(error.code).toBe("LONGSHORE_BAD_CONFIG");
    expect(error.message).toContain("--token 3");
    expect(error.message).toContain(hint);
    expect(error.message).not.toContain(secret);
    expect(error.message).not.toContain("short-secret");
  });
});

describe("the token file", () => {
  it("has one token on each line, and may have comments and empty lines", () => {
    const path = tokenFile(`# machines\r\nworker:${secret}:m1\r\n\r\n  read:${secret}2:board  \n`);
    expect(readTokenFile(path).map((token) => [token.scopes[0], token.name])).toEqual([
      ["worker", "m1"],
      ["read", "board"],
    ]);
  });

  it("is refused with file and line of an invalid token", () => {
    const path = tokenFile(`worker:${secret}\nboss:${secret}\n`);
    expect(errorOf(() => readTokenFile(path)).message).toContain(`${path}:2`);
  });

  it("is reported when it is missing", () => {
    const error = errorOf(() => readTokenFile("/nowhere/tokens.txt"));
    expect(error.code).toBe("LONGSHORE_BAD_CONFIG");
    expect(error.message).toContain("/nowhere/tokens.txt");
  });

  it("is refused when it is far too large", () => {
    const path = tokenFile("#".repeat(300_000));
    expect(errorOf(() => readTokenFile(path)).message).toContain("too large");
  });
});

describe("identification", () => {
  const tokens = [parseToken(`worker:${secret}1:w`, "1"), parseToken(`read:${secret}2:r`, "2"), parseToken(`${secret}3`, "3")];

  it("accepts all callers when no token is configured", () => {
    expect(createAuth([]).required).toBe(false);
    expect(createAuth(tokens).required).toBe(true);
  });

  it("finds the owner of a token, for any case of the scheme", () => {
    const auth = createAuth(tokens);
    expect(auth.identify(`Bearer ${secret}1`)?.name).toBe("w");
    expect(auth.identify(`bearer ${secret}2`)?.name).toBe("r");
  });

  it.each([
    ["nothing", undefined],
    ["another scheme", `Basic ${secret}1`],
    ["no scheme", `${secret}1`],
    ["an unknown secret", "Bearer unknown-unknown-unknown"],
    ["a prefix", `Bearer ${secret}`],
    ["a secret with more behind", `Bearer ${secret}11`],
    ["two secrets", `Bearer ${secret}1 ${secret}2`],
    ["a header too long to be one", `Bearer ${"x".repeat(2_000)}`],
  ])("does not know %s", (_what, header) => {
    expect(createAuth(tokens).identify(header)).toBeUndefined();
  });

  it("allows an operator everything, and the scopes worker and read only their own actions", () => {
    const auth = createAuth(tokens);
    const allowed = (suffix: string) =>
      (["task.claim", "run.start", "run.read", "server.health"] as const).filter((action) =>
        auth.identify(`Bearer ${secret}${suffix}`)?.may(action),
      );
    expect(allowed("1")).toEqual(["task.claim", "server.health"]);
    expect(allowed("2")).toEqual(["run.read", "server.health"]);
    expect(allowed("3")).toEqual(["task.claim", "run.start", "run.read", "server.health"]);
  });

  it("compares the digests of all tokens in constant time, also after a match and for a wrong secret", () => {
    const lengths: number[][] = [];
    const auth = createAuth(tokens, (a, b) => {
      lengths.push([a.length, b.length]);
      return Buffer.compare(a, b) === 0;
    });
    for (const presented of [`${secret}1`, `${secret}3`, "completely-different", secret]) {
      lengths.length = 0;
      auth.identify(`Bearer ${presented}`);
      expect(lengths).toEqual([
        [64, 64],
        [64, 64],
        [64, 64],
      ]);
    }
  });

  it("refuses more tokens than can be compared on every request", () => {
    const many = Array.from({ length: 257 }, (_, index) => parseToken(`worker:${secret}${index}`, `${index}`));
    expect(errorOf(() => createAuth(many)).message).toContain("at most 256");
  });
});
