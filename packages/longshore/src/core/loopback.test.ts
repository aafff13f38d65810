import { describe, expect, it } from "vitest";
import { isLoopback } from "./loopback.ts";

describe("loopback addresses", () => {
  it.each(["localhost", "LOCALHOST", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "::ffff:127.0.0.1"])("include %s", (host) => {
    expect(isLoopback(host)).toBe(true);
  });

  it.each(["0.0.0.0", "::", "192.168.1.4", "127.evil.example", "localhost.evil.example", "10.127.0.1", "", "::ffff:10.0.0.1"])(
    "do not include %j",
    (host) => {
      expect(isLoopback(host)).toBe(false);
    },
  );
});
