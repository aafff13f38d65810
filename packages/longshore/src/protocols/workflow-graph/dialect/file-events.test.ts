import { expect, it } from "vitest";
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
