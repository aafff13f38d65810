import { describe, expect, it } from "vitest";
import { addressesOf, isOnLoopback, parseAddress } from "./address.ts";

describe("the address of a server", () => {
  it.each([
    ["10.0.0.7:7837", "10.0.0.7:7837"],
    ["http://10.0.0.7:7837/", "10.0.0.7:7837"],
    ["grpc://orchestrator.example", "orchestrator.example"],
    [" [::1]:4500 ", "[::1]:4500"],
    ["https://orchestrator.example:443", "https://orchestrator.example:443"],
    ["grpcs://orchestrator.example", "https://orchestrator.example"],
  ])("%s is announced as %s", (text, address) => {
    expect(parseAddress(text, "It")).toBe(address);
  });

  it.each(["", "ftp://x", "http://x/path", "user@host:1", "host:port", "::1", "a b"])("is not %j", (text) => {
    expect(() => parseAddress(text, "STEPFLOW_ORCHESTRATOR_URL")).toThrow(
      expect.objectContaining({ code: "LONGSHORE_BAD_CONFIG", message: expect.stringContaining("STEPFLOW_ORCHESTRATOR_URL is") }),
    );
  });

  it("is the operator's setting, else the one that the worker has called, else where the server listens", () => {
    expect(addressesOf("told:1", () => "listens:2").forCaller("called:3")).toBe("told:1");
    const { forCaller } = addressesOf(undefined, () => "listens:2");
    expect([forCaller("called:3"), forCaller("not an address"), forCaller()]).toEqual(["called:3", "listens:2", "listens:2"]);
  });

  it("has a scheme where the server uses TLS", () => {
    const { forCaller } = addressesOf(undefined, () => "https://listens:2");
    expect([forCaller("called:3"), forCaller()]).toEqual(["https://called:3", "https://listens:2"]);
  });

  it("of this machine itself is known", () => {
    for (const own of ["127.0.0.1:4500", "https://[::1]:1", "localhost", "nats://token@127.0.0.2:4222"])
      expect(isOnLoopback(own)).toBe(true);
    for (const other of ["10.0.0.1:1", "localhost.example:1", "nats://nats:4222", "127.0.0.1.example"])
      expect(isOnLoopback(other)).toBe(false);
  });
});
