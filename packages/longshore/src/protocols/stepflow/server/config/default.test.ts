import { describe, expect, it } from "vitest";
import { defaultConfig } from "./default.ts";
import { queuesOf } from "./queues.ts";

describe("the configuration of a server that was given none", () => {
  it("takes workers on the queues python and default, and workers of every other protocol", () => {
    const config = defaultConfig();
    expect([...config.plugins.keys()]).toEqual(["builtin", "python", "default", "longshore"]);
    expect(queuesOf(config).map(({ name, backend }) => [name, backend])).toEqual([
      ["python", "grpc"],
      ["default", "grpc"],
    ]);
    expect(config.routes.map(({ pattern }) => pattern.text)).toEqual(["/builtin", "/python", "/"]);
  });
});
