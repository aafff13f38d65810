import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { settingsOf } from "./options.ts";

describe("the settings of the connection", () => {
  it("take the address from the code, else from the environment, else the usual one", () => {
    const env = { CONDUCTOR_SERVER_URL: "https://env:1/api" };
    expect(settingsOf("http://code:2", { env }).url.href).toBe("http://code:2/");
    expect(settingsOf(undefined, { env }).url.href).toBe("https://env:1/api");
    expect(settingsOf(undefined, { env: {} }).url.href).toBe("http://localhost:8080/api");
  });

  it("[C-CFG-14] make the default name of a worker from its host and process, different for each worker", async () => {
    const [first, second] = [settingsOf("http://h", { env: {} }), settingsOf("http://h", { env: {} })];
    expect(first.workerId).toMatch(/-[0-9a-f]{8}$/);
    expect(first.workerId.startsWith(`${hostname()}-${process.pid}-`)).toBe(true);
    expect(second.workerId).not.toBe(first.workerId);
  });

  it("convert a user and password in the address to a header, and show them nowhere else", () => {
    const settings = settingsOf("http://ada:s%40cret@host:8080/api", { env: {} });
    expect(settings.basic).toBe(`Basic ${Buffer.from("ada:s@cret").toString("base64")}`);
    expect(settings.url.href).toBe("http://host:8080/api");
    expect(settingsOf("http://host", { env: {} }).basic).toBeUndefined();
  });

  it("require both halves of the access key or neither", () => {
    const env = { CONDUCTOR_AUTH_KEY: " k ", CONDUCTOR_AUTH_SECRET: "s" };
    expect(settingsOf("http://h", { env }).keys).toEqual({ id: "k", secret: "s" });
    expect(settingsOf("http://h", { env, keyId: "code", keySecret: "too" }).keys).toEqual({ id: "code", secret: "too" });
    expect(() => settingsOf("http://h", { env: { CONDUCTOR_AUTH_KEY: "k" } })).toThrow(/keySecret \(or CONDUCTOR_AUTH_SECRET\) is missing/);
  });

  it("[C-HTTP-02, C-HTTP-03] wait 30 s for a response and 10 s for a connection by default, or as set by code or environment", () => {
    const read = (settings: ReturnType<typeof settingsOf>) => [
      settings.requestTimeoutMs,
      settings.connectTimeoutMs,
      settings.refreshTokenMs,
    ];
    expect(read(settingsOf("http://h", { env: {} }))).toEqual([30_000, 10_000, 2_700_000]);
    const env = { CONDUCTOR_REQUEST_TIMEOUT_MS: "100", CONDUCTOR_CONNECT_TIMEOUT_MS: "200", CONDUCTOR_REFRESH_TOKEN_INTERVAL: "300" };
    expect(read(settingsOf("http://h", { env }))).toEqual([100, 200, 300]);
    expect(read(settingsOf("http://h", { env, requestTimeout: "1s", connectTimeout: "2s", refreshToken: "3s" }))).toEqual([
      1_000, 2_000, 3_000,
    ]);
  });

  it.each([
    [{ CONDUCTOR_DISABLE_HTTP2: "true" }, false],
    [{ CONDUCTOR_DISABLE_HTTP2: "0" }, true],
    [{ CONDUCTOR_HTTP2_ENABLED: "no" }, false],
    [{ CONDUCTOR_HTTP2_ENABLED: "off" }, false],
    [{}, true],
  ])("[C-HTTP-01] offer HTTP/2 with %o: %s", (env, expected) => {
    expect(settingsOf("https://h", { env }).http2).toBe(expected);
  });

  it("read certificates from the files that the environment names", async () => {
    const folder = await mkdtemp(join(tmpdir(), "longshore-tls-"));
    const path = join(folder, "ca.pem");
    await writeFile(path, "CERTIFICATE");
    const env = { CONDUCTOR_TLS_CA_PATH: path, CONDUCTOR_TLS_INSECURE: "true", CONDUCTOR_PROXY_URL: "http://proxy:3128" };
    expect(settingsOf("https://h", { env })).toMatchObject({ tls: { ca: "CERTIFICATE", insecure: true }, proxy: "http://proxy:3128" });
    expect(() => settingsOf("https://h", { env: { CONDUCTOR_TLS_CERT_PATH: join(folder, "none") } })).toThrow(
      /CONDUCTOR_TLS_CERT_PATH names/,
    );
    await rm(folder, { recursive: true });
  });

  it.each([
    ["not a url", /expected a URL such as/],
    ["ftp://host", /"ftp:\/\/host", expected one that begins with http:\/\/ or https:\/\//],
    ["localhost:8080", /"localhost:8080", expected one that begins with http:\/\//],
  ])("refuse the address %s", (url, message) => {
    expect(() => settingsOf(url, { env: {} })).toThrow(message);
  });

  it("refuse invalid times", () => {
    expect(() => settingsOf("http://h", { env: {}, requestTimeout: 0 })).toThrow(/requestTimeout is 0 ms, expected at least 1 ms/);
    expect(() => settingsOf("http://h", { env: {}, cancelPoll: 5 })).toThrow(/cancelPoll is 5 ms/);
    expect(() => settingsOf("http://h", { env: { CONDUCTOR_REQUEST_TIMEOUT_MS: "soon" } })).toThrow(
      /CONDUCTOR_REQUEST_TIMEOUT_MS is "soon"/,
    );
  });
});
