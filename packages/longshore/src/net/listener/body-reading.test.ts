import { describe, expect, it } from "vitest";
import { call, groupOf, RawClient, route, startServer, turn } from "../../../test/support/http.ts";
import { ByteBudget } from "../../core/byte-budget.ts";
import { collectText } from "./body-reading.ts";

const echo = route("POST /echo", (request) => ({ status: 200, body: request.text }));
const text = `[${'"Größe \u{1f600}",'.repeat(20_000)}1]`;

describe("a body in many pieces", () => {
  it("is the text that was sent, also when characters are divided", async () => {
    const server = await startServer({ groups: [groupOf("main", [echo])] });
    expect((await call(`${server.url}/echo`, { method: "POST", body: text })).text).toBe(text);
    const bytes = Buffer.from(`\ufeff${text.slice(0, 40)}`);
    const client = new RawClient(server);
    client.send(`POST /echo HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: ${bytes.length}\r\n\r\n`);
    for (const byte of bytes) {
      client.socket.write(Buffer.from([byte]));
      await turn();
    }
    expect((await client.closed()).endsWith(bytes.toString("latin1"))).toBe(true);
  });

  it("that is not UTF-8 is refused, also when its last character is incomplete", async () => {
    const server = await startServer({ groups: [groupOf("main", [echo])] });
    for (const bad of [Buffer.from([0xff]), Buffer.from("ü").subarray(0, 1)]) {
      const body = Buffer.concat([Buffer.from(text), bad]);
      expect((await call(`${server.url}/echo`, { method: "POST", body })).text).toContain("not valid UTF-8");
    }
  });
});

describe("a streamed body that is text", () => {
  const limits = { bytesMax: 100, valuesMax: 5 };
  const collect = async (budget: ByteBudget, ...pieces: string[]) => {
    async function* stream() {
      for (const piece of pieces) yield Buffer.from(piece);
    }
    return collectText(stream(), limits, budget);
  };

  it("is read completely, and holds its bytes only during the read", async () => {
    const budget = new ByteBudget(50);
    expect(await collect(budget, "[1,", "2]")).toBe("[1,2]");
    expect(budget.held).toBe(0);
  });

  it.each([
    ["too many bytes", ["x".repeat(101)], "larger than 100 bytes"],
    ["too many values", ["[1,2,3", ",4,5]"], "more than 5 JSON values"],
    ["no room", ["x".repeat(60)], "receiving 50 bytes of bodies already"],
  ])("is refused for %s", async (_why, pieces, message) => {
    const budget = new ByteBudget(50);
    await expect(collect(budget, ...pieces)).rejects.toThrow(message);
    expect(budget.held).toBe(0);
  });
});
