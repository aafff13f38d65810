// Servers that differ from the PostgreSQL of the other tests: an old one, one that requires a password, a pooler.

import { type AddressInfo, createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { openPostgres } from "./store.ts";

function message(type: string, ...parts: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(`${part}\0`) : part)));
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.byteLength + 4, 1);
  return Buffer.concat([head, body]);
}

const int = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};

/** A server with one response for each message of a connection, in order. */
async function fake(...responses: Buffer[]): Promise<string> {
  const listener = createServer((socket) => {
    const left = [...responses];
    socket.on("error", () => {});
    socket.on("data", () => socket.write(left.shift() ?? Buffer.alloc(0)));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void listener.close());
  return `postgres://ann@127.0.0.1:${(listener.address() as AddressInfo).port}/shop`;
}

it("a PostgreSQL before version 13 is refused, with both versions", async () => {
  const url = await fake(
    Buffer.concat([message("R", int(0)), message("S", "server_version", "12.22 (Debian)"), message("Z", Buffer.from("I"))]),
  );
  await expect(openPostgres({ url })).rejects.toMatchObject({
    code: "LONGSHORE_BAD_CONFIG",
    message: "PostgreSQL 12.22 (Debian) is too old: Longshore needs version 13 or newer.",
  });
});

it("a PostgreSQL that requires a password causes another error than one that is unavailable", async () => {
  const url = await fake(message("R", int(10), "SCRAM-SHA-256", Buffer.alloc(1)), message("R", int(11), Buffer.from("r=x,s=eA==,i=4096")));
  await expect(openPostgres({ url })).rejects.toMatchObject({
    code: "LONGSHORE_BAD_CONFIG",
    message: expect.stringMatching(/asks for a password\. Give it in PGPASSWORD, in the file ~\/\.pgpass, or in the address/),
  });
});

it("a pooler that accepts no session settings is named in the error", async () => {
  const url = await fake(message("E", "SFATAL", "C08P01", "Munsupported startup parameter: options", Buffer.alloc(1)));
  await expect(openPostgres({ url })).rejects.toMatchObject({
    code: "LONGSHORE_BAD_CONFIG",
    message: expect.stringContaining("is behind a connection pooler"),
  });
});
