import { describe, expect, it } from "vitest";
import { callerWith, everyone } from "../../../core/actions.ts";
import { topicNamesDefault } from "../wire/shapes.ts";
import { checkTopics, isOfTopic } from "./topic-rules.ts";

const worker = callerWith("w", ["worker"]);

describe("the topics of the bus", () => {
  it("are distinguished by the text around the type", () => {
    expect(isOfTopic("cmd.{type}.v1", "cmd.build.v1")).toBe(true);
    expect(isOfTopic("cmd.{type}.v1", "cmd.a.b.v1")).toBe(true);
    for (const topic of ["cmd..v1", "cmd.v1", "xcmd.build.v1", "cmd.build.v2", "cmd.build.v1x"]) {
      expect(isOfTopic("cmd.{type}.v1", topic)).toBe(false);
    }
    expect(isOfTopic("signals.v1", "signals.v1")).toBe(true);
    expect(isOfTopic("signals.v1", "signals.v10")).toBe(false);
  });

  it("allow a worker to write and read its own side, with the names of the installation", () => {
    const names = { ...topicNamesDefault, cmd: "{type}.orders" };
    expect(() => checkTopics(worker, "take", ["build.orders", "query.tasks.v1", "signals.v1"], names)).not.toThrow();
    expect(() => checkTopics(worker, "publish", ["status.build.v1", "workers.announce.v1", "reply.tasks.v1"], names)).not.toThrow();
    expect(() => checkTopics(worker, "publish", ["build.orders"], names)).toThrow('may not publish "build.orders"');
    expect(() => checkTopics(worker, "take", ["cmd.build.v1"], names)).toThrow('may not take "cmd.build.v1"');
  });

  it("are all open when no token is required, and to an operator", () => {
    for (const caller of [everyone, callerWith("o", ["operator"])]) {
      expect(() => checkTopics(caller, "publish", ["cmd.build.v1", "mine"], topicNamesDefault)).not.toThrow();
    }
  });
});
