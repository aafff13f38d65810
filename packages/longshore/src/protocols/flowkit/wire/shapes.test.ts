import { describe, expect, it } from "vitest";
import {
  commandGroup,
  commandTopic,
  finalUid,
  nobody,
  nodeKey,
  payloadOf,
  protocolVersion,
  queryGroup,
  signalsGroup,
  statusTopic,
  type TaskStart,
  topicNamesDefault,
} from "./shapes.ts";

describe("names on the wire", () => {
  it("topics contain the type when their name has a place for it", () => {
    expect(commandTopic(topicNamesDefault, "probe")).toBe("cmd.probe.v1");
    expect(statusTopic(topicNamesDefault, "probe")).toBe("status.probe.v1");
    expect(commandTopic({ ...topicNamesDefault, cmd: "a.{type}.b.{type}" }, "$&")).toBe("a.$&.b.$&");
  });

  it("workers of a role share a group, and queries and signals reach each worker", () => {
    expect(commandGroup("probe")).toBe("workers.probe.v1");
    expect(queryGroup("w-1")).toBe("workers.query.w-1");
    expect(signalsGroup("w-1")).toBe("workers.signals.w-1");
  });

  it("the records of a node have the node's key", () => {
    expect(nodeKey("T", "N")).toBe("T:N");
  });

  it("the fixed texts are the reference's", () => {
    expect([protocolVersion, nobody, finalUid]).toEqual([1, "*", "__final__"]);
  });

  it("a payload is a JSON object unchanged", () => {
    const start: TaskStart = { cmd: "TASK_START", input_ref: null, input_inline: {}, batching: null, cancel_token: "c" };
    expect(JSON.stringify(payloadOf(start))).toBe(
      '{"cmd":"TASK_START","input_ref":null,"input_inline":{},"batching":null,"cancel_token":"c"}',
    );
  });
});
