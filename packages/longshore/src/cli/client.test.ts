import { describe, expect, it } from "vitest";
import { foreignServer } from "../../test/support/foreign-http.ts";
import { connect, Unreachable } from "./client.ts";

function saying(status: number, body: string): Promise<string> {
  return foreignServer((_, response) => response.writeHead(status).end(body));
}

describe("the error for a refused request is one sentence", () => {
  it("with the server's own message, and the place in a file", async () => {
    const url = await saying(400, '{"error":{"code":"LONGSHORE_BAD_DEFINITION","message":"Job a is empty.","line":3,"column":5}}');
    await expect(connect({ on: url }).get("/runs")).rejects.toThrow("3:5: Job a is empty.");
  });

  it("with what to do when a token is missing or wrong", async () => {
    const unauthorized = await saying(401, "{}");
    await expect(connect({ on: unauthorized }).get("/runs")).rejects.toThrow(/requires a token.*LONGSHORE_TOKEN/);
    await expect(connect({ on: unauthorized, token: "x" }).get("/runs")).rejects.toThrow(/does not know the token.*LONGSHORE_TOKEN/);
    const forbidden = await saying(403, '{"error":{"message":"This needs the scope operator."}}');
    await expect(connect({ on: forbidden }).get("/runs")).rejects.toThrow("This needs the scope operator. Give a token that allows more.");
  });

  it("that reports when the server is probably not Longshore", async () => {
    await expect(connect({ on: await saying(404, "<html>not here") }).get("/runs")).rejects.toThrow(
      /answered 404: <html>.*Is that a Longshore server\?/,
    );
    await expect(connect({ on: await saying(200, "hello") }).get("/runs")).rejects.toThrow(/not JSON.*Is that a Longshore server\?/);
  });
});

describe("a request", () => {
  it("carries the token, the query and the body, below the path of the URL", async () => {
    let seen: unknown;
    const url = await foreignServer((request, response) => {
      const { method, url: path, headers } = request;
      request.setEncoding("utf8").on("data", (body) => {
        seen = { method, path, body, token: headers.authorization, type: headers["content-type"] };
      });
      request.on("end", () => response.end("{}"));
    });
    await connect({ on: `${url}/below/`, token: "secret" }).post("/definitions", "a: 1", {
      contentType: "application/yaml",
      query: { name: "x y", no: undefined },
    });
    expect(seen).toEqual({
      method: "POST",
      path: "/below/api/longshore/v1/definitions?name=x+y",
      body: "a: 1",
      token: "Bearer secret",
      type: "application/yaml",
    });
  });

  it("without a server fails, and may be retried", async () => {
    await expect(connect({ on: "http://127.0.0.1:9" }).get("/runs")).rejects.toBeInstanceOf(Unreachable);
    const cut = await foreignServer((request) => void request.socket.destroy());
    await expect(connect({ on: cut }).get("/runs")).rejects.toBeInstanceOf(Unreachable);
  });
});

describe("events", () => {
  it("resume after an id, end when the server ends them, and report a broken connection as an error", async () => {
    const url = await foreignServer((request, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`id: 1\ndata: after ${request.headers["last-event-id"]}\n\n`, () => {
        if (request.url?.includes("break")) request.socket.destroy();
        else response.end();
      });
    });
    const read = async (query: { break?: string }) => {
      const seen: string[] = [];
      for await (const { data } of connect({ on: url }).events("/events", { query, lastEventId: "7" })) seen.push(data);
      return seen;
    };
    expect(await read({})).toEqual(["after 7"]);
    await expect(read({ break: "yes" })).rejects.toBeInstanceOf(Unreachable);
  });
});
