// The attacker answers a program that believes it talks to a Longshore server, such as behind a wrong address or a proxy. The attacker redirected the
// request with its input to another server, or sent a response without an end, and the program kept all of it.

import { expect, it } from "vitest";
import { connect } from "../../src/client/connect.ts";
import { foreignServer } from "../support/foreign-http.ts";

it.each([301, 302, 307, 308])("a start is not sent to the target of a redirect with %i", async (status) => {
  const reached: string[] = [];
  const other = await foreignServer((request, response) => {
    reached.push(`${request.method} ${request.url}`);
    response.end("{}");
  });
  const url = await foreignServer((request, response) => {
    request.resume();
    response.writeHead(status, { location: `${other}${request.url}` }).end();
  });
  const client = connect(url, { token: "s3cret", retryFor: 0 });
  await expect(client.start("any", { password: "p" })).rejects.toMatchObject({
    code: "LONGSHORE_BAD_CONFIG",
    message: expect.stringContaining(`answered ${status}`),
  });
  expect(reached).toEqual([]);
});

it.each([200, 500])("a response with the status %i and without an end is read up to a limit", async (status) => {
  const piece = Buffer.alloc(4 * 1_048_576, "x");
  const piecesMax = 64;
  let written = 0;
  const url = await foreignServer((request, response) => {
    request.resume();
    response.writeHead(status);
    const write = () => {
      while (written < piecesMax && !response.destroyed) {
        written++;
        if (!response.write(piece)) return void response.once("drain", write);
      }
      response.end();
    };
    write();
  });
  const started = connect(url, { retryFor: 0 }).start("any", {});
  await expect(started).rejects.toMatchObject({
    code: "LONGSHORE_BAD_CONFIG",
    message: expect.stringContaining("has more than 67108864 bytes"),
  });
  expect(written).toBeLessThan(piecesMax);
});
