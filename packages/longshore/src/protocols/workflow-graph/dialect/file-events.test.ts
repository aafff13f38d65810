import { expect, it } from "vitest";
import { workflowGraphDialect } from "./compile.ts";
import { parseFile } from "./file.ts";

const eventsOf = (...on: string[]) => parseFile(["name: N", ...on, "jobs: { a: { run: x } }"].join("\n"), { file: "mail.yml" }).events;

it("the events of a definition file are a name, a list of names, or names with a match", () => {
  expect(eventsOf("on: push")).toEqual([]);
  expect(eventsOf("on: { event: order.created }")).toEqual([{ event: "order.created" }]);
  expect(eventsOf("on: { event: [order.created, order.paid] }")).toEqual([{ event: "order.created" }, { event: "order.paid" }]);
  expect(eventsOf("on: { event: [{ name: order.created, match: { customer.country: [DE, AT] } }] }")).toEqual([
    { event: "order.created", match: { "customer.country": ["DE", "AT"] } },
  ]);
});

it("an event of a definition file that cannot be read is refused at its place", () => {
  const refused = (...on: string[]) => expect(() => eventsOf(...on));
  refused("on: { event: 7 }").toThrow("This is no event.");
  refused("on:", "  event:", "    - { name: a, match: { x: { y: 1 } } }").toThrow(
    expect.objectContaining({ code: "LONGSHORE_BAD_DEFINITION", detail: expect.objectContaining({ line: 4 }) }),
  );
  refused("on: { event: { match: {} } }").toThrow("on.event.event of workflow mail is absent");
});

it("the start limit of a definition file is part of its plan, and is refused at its place when it cannot be read", () => {
  const limit = (text: string) =>
    parseFile(["name: N", "on: push", `limit: ${text}`, "jobs: { a: { run: x } }"].join("\n"), { file: "mail.yml" });
  const { source } = limit("{ runs: 2, key: branch, overlap: skip }");
  expect(workflowGraphDialect.compile(source).limit).toEqual({ runs: 2, key: "branch", overlap: "skip" });
  expect(() => limit("{ runs: 0 }")).toThrow("limit.runs of workflow mail is 0, expected a whole number from 1 to 100");
  expect(() => limit("{ overlap: allow }")).toThrow(
    'limit.overlap of workflow mail is "allow", expected one of queue, skip, cancel-previous',
  );
  expect(() => limit("{ key: a..b }")).toThrow('limit.key of workflow mail is "a..b", expected the path of a field of the input');
  expect(() => limit("one")).toThrow(expect.objectContaining({ detail: expect.objectContaining({ line: 3 }) }));
});

it("the debounce of a definition file is part of its plan, and is refused at its place when it cannot be read", () => {
  const debounce = (text: string) =>
    parseFile(["name: N", "on: push", `debounce: ${text}`, "jobs: { a: { run: x } }"].join("\n"), { file: "mail.yml" });
  const { source } = debounce("{ key: branch, period: 30s, atMost: 5m }");
  expect(workflowGraphDialect.compile(source).debounce).toEqual({ key: "branch", periodMs: 30_000, atMostMs: 300_000 });
  expect(() => debounce("{ key: branch }")).toThrow(
    "debounce.period of workflow mail is missing, expected a duration from 1 ms to 366 days",
  );
  expect(() => debounce("{ period: 1h, atMost: 1m }")).toThrow(
    'debounce.atMost of workflow mail is "1m", expected a duration that is not shorter than debounce.period',
  );
  expect(() => debounce("{ period: soon }")).toThrow(expect.objectContaining({ detail: expect.objectContaining({ line: 3 }) }));
});
