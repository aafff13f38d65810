import { describe, expect, it } from "vitest";
import { type EventValue, matches, triggersOf } from "./event-trigger.ts";

describe("the match of a trigger", () => {
  const payload = { to: "DE", total: 10, paid: true, note: null, customer: { country: "AT" }, "a.b": 1 };

  it("fits when each field has the value, or one of the values", () => {
    expect(matches({}, payload)).toBe(true);
    expect(matches({ match: { to: "DE", total: 10, paid: true, note: null } }, payload)).toBe(true);
    expect(matches({ match: { to: ["AT", "DE"], "customer.country": "AT" } }, payload)).toBe(true);
  });

  it("does not fit another value, another type, a field that is not there, or a payload that is no object", () => {
    const others: readonly (readonly [string, EventValue])[] = [
      ["to", "FR"],
      ["total", "10"],
      ["missing", null],
      ["customer.city", "Graz"],
      ["customer", "AT"],
      ["constructor", "x"],
    ];
    for (const [path, value] of others) expect(matches({ match: { [path]: value } }, payload)).toBe(false);
    expect(matches({ match: { to: "DE" } }, "DE")).toBe(false);
    expect(matches({ match: { "0": "DE" } }, ["DE"])).toBe(false);
  });
});

describe("the events of a workflow", () => {
  it("are checked, and the error names the field", () => {
    expect(triggersOf({ event: "a" }, "w")).toEqual([{ event: "a" }]);
    expect(triggersOf([{ event: "a" }, { event: "b", match: { x: 1 } }], "w")).toEqual([{ event: "a" }, { event: "b", match: { x: 1 } }]);
    const wrong: readonly [unknown, string][] = [
      ["order.created", 'on of workflow w is "order.created", expected an object such as { event: "order.created" }.'],
      [{ event: "" }, 'on.event of workflow w is "", expected a text of 1 to 200 characters.'],
      [[{ event: "a" }, { event: 7 }], "on[1].event of workflow w is 7, expected a text of 1 to 200 characters."],
      [{ event: "a", matches: {} }, "on.matches of workflow w is not known, expected event, match."],
      [
        { event: "a", match: { x: {} } },
        "on.match.x of workflow w is {}, expected a text, number, boolean or null, or a list of at most 50.",
      ],
      [Array.from({ length: 21 }, () => ({ event: "a" })), "on of workflow w has 21 events, expected at most 20."],
    ];
    for (const [on, message] of wrong)
      expect(() => triggersOf(on, "w")).toThrow(expect.objectContaining({ code: "LONGSHORE_BAD_DEFINITION", message }));
  });
});
