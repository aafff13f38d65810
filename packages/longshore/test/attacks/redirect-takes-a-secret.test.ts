// A server that an HTTP task calls redirects the request to another server. The secret in a header came along, unless the header had one of four
// names.

import type { IncomingHttpHeaders } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import type { LaneWork } from "../../src/engine/board/lane-worker.ts";
import { AddressGuard } from "../../src/net/http/address-guard.ts";
import { HttpCalls } from "../../src/protocols/conductor/server/system/http.ts";
import { foreignServer } from "../support/foreign-http.ts";

/** Returns its address, and the headers that it got. */
async function target(location?: string): Promise<{ uri: string; got: IncomingHttpHeaders[] }> {
  const got: IncomingHttpHeaders[] = [];
  const address = await foreignServer((request, response) => {
    got.push(request.headers);
    response.writeHead(location === undefined ? 200 : 302, location === undefined ? {} : { location }).end();
  });
  return { uri: `${address}/`, got };
}

it.each(["authorization", "x-our-token", "cookie"])("a redirect to another server does not carry the header %s", async (header) => {
  const other = await target();
  const first = await target(other.uri);
  const calls = new HttpCalls(new AddressGuard(["127.0.0.1"]), () => null);
  onTestFinished(() => calls.close());
  const input = JSON.stringify({ uri: first.uri, method: "GET", headers: { [header]: "s3cret" } });
  await calls.perform({ task: { input }, signal: new AbortController().signal } as unknown as LaneWork);
  expect(first.got[0]).toHaveProperty(header, "s3cret");
  expect(JSON.stringify(other.got)).not.toContain("s3cret");
  expect(other.got[0]).toMatchObject({ accept: "application/json" });
});
