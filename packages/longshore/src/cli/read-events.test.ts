import { expect, it } from "vitest";
import { type EventMessage, readEvents } from "./read-events.ts";

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

it("puts together what arrives in pieces, also within a character and a line end", async () => {
  const bytes = new TextEncoder().encode("data: é\r\n\r\ndata: x\r\n\r\n");
  const pieces = Array.from(bytes, (byte) => Uint8Array.of(byte));
  expect((await read(pieces)).map((message) => message.data)).toEqual(["é", "x"]);
});

it("drops comments, events without data and what was not finished", async () => {
  expect(await read([": beat\n\nevent: empty\n\ndata: cut"])).toEqual([]);
});
