import { expect, it } from "vitest";
import { type EventMessage, EventParser, readEvents } from "./read-events.ts";

async function read(parts: readonly (string | Uint8Array)[]): Promise<EventMessage[]> {
  const bytes = (async function* () {
    for (const part of parts) yield typeof part === "string" ? new TextEncoder().encode(part) : part;
  })();
  const messages: EventMessage[] = [];
  for await (const message of readEvents(bytes)) messages.push(message);
  return messages;
}

it("reads events with names, ids and several lines of data", async () => {
  expect(await read(["event: log\nid: 7\ndata: one\ndata: two\n\ndata:three\n\n"])).toEqual([
    { event: "log", id: "7", data: "one\ntwo" },
    { event: "message", id: undefined, data: "three" },
  ]);
});

it("joins what arrives in pieces, also when a character or a line end is divided", async () => {
  const bytes = new TextEncoder().encode("data: é\r\n\r\ndata: x\r\n\r\n");
  const pieces = Array.from(bytes, (byte) => Uint8Array.of(byte));
  expect((await read(pieces)).map((message) => message.data)).toEqual(["é", "x"]);
});

it("drops comments, events without data and incomplete events", async () => {
  expect(await read([": beat\n\nevent: empty\n\ndata: cut"])).toEqual([]);
});

it("accepts all three line ends", async () => {
  const data = async (...parts: string[]) => (await read(parts)).map((message) => message.data);
  expect(await data("data: a\rdata: b\r\rdata: c\n\n")).toEqual(["a\nb", "c"]);
  expect(await data("data: a\r", "\ndata: b\r\n\r", "\n")).toEqual(["a\nb"]);
});

it("refuses an event that is too long, in one line or in many", () => {
  const push = (text: string) => new EventParser({ charsMax: 20 }).push(new TextEncoder().encode(text));
  expect(push("data: 12345678901234\n\ndata: 12345678901234\n\n")).toHaveLength(2);
  expect(() => push("data: 123456789012345")).toThrow("An event is longer than 20 characters.");
  expect(() => push("data: 1\n".repeat(3))).toThrow(RangeError);
});
