import { describe, expect, it } from "vitest";
import { asciiJson, errorText, eventText, parseRpc, requestText, resultText } from "./json-rpc.ts";
import { RpcError } from "./rpc-error.ts";

function refusal(text: string): Pick<RpcError, "fault" | "message" | "id"> {
  try {
    parseRpc(text);
  } catch (error) {
    if (error instanceof RpcError) return { fault: error.fault, message: error.message, id: error.id };
    throw error;
  }
  throw new Error(`${text} was understood`);
}

describe("a JSON-RPC message", () => {
  it("[S-HTTP-02] is a request, a notification, a result or an error", () => {
    expect(parseRpc('{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}')).toEqual({
      kind: "request",
      id: "a",
      method: "m",
      params: { x: 1 },
    });
    expect(parseRpc('{"jsonrpc":"2.0","id":7,"method":"m"}')).toEqual({ kind: "request", id: 7, method: "m", params: {} });
    expect(parseRpc('{"jsonrpc":"2.0","method":"initialized","params":{}}')).toEqual({
      kind: "notification",
      method: "initialized",
      params: {},
    });
    expect(parseRpc('{"jsonrpc":"2.0","id":"b","result":{"blob_id":"x"}}')).toEqual({ kind: "result", id: "b", result: { blob_id: "x" } });
    expect(parseRpc('{"jsonrpc":"2.0","id":"b","error":{"code":-32008,"message":"gone","data":[1]}}')).toEqual({
      kind: "error",
      id: "b",
      error: { code: -32008, message: "gone", data: [1] },
    });
    expect(parseRpc('{"jsonrpc":"2.0","id":"b","result":null}')).toEqual({ kind: "result", id: "b", result: null });
  });

  it.each([
    ["{", "parse", undefined, /not JSON/],
    ["", "parse", undefined, /not JSON/],
    [`${"[".repeat(101)}${"]".repeat(101)}`, "parse", undefined, /deeper than 100 levels/],
    ["[]", "invalidRequest", undefined, /no batches/],
    ["5", "invalidRequest", undefined, /not an object/],
    ['{"id":1,"method":"m"}', "invalidRequest", 1, /^jsonrpc is missing, expected "2.0"/],
    ['{"jsonrpc":"1.0","id":"x","method":"m"}', "invalidRequest", "x", /^jsonrpc is "1.0"/],
    ['{"jsonrpc":"2.0","id":"x"}', "invalidRequest", "x", /no method, result or error/],
    ['{"jsonrpc":"2.0","id":"x","result":1,"error":{"code":1,"message":""}}', "invalidRequest", "x", /both a result and an error/],
    ['{"jsonrpc":"2.0","result":1}', "invalidRequest", undefined, /^id is missing/],
    ['{"jsonrpc":"2.0","id":null,"method":"m"}', "invalidRequest", undefined, /^id is null/],
    ['{"jsonrpc":"2.0","id":1.5,"method":"m"}', "invalidRequest", undefined, /^id is 1.5/],
    ['{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}', "invalidRequest", undefined, /^id is .* below 2\^53/],
    ['{"jsonrpc":"2.0","id":"x","method":5}', "invalidRequest", "x", /^method is 5/],
    ['{"jsonrpc":"2.0","id":"x","method":"m","params":[1]}', "invalidParams", "x", /params is not an object/],
    ['{"jsonrpc":"2.0","id":"x","error":"no"}', "invalidRequest", "x", /^error is "no"/],
  ] as const)("[S-HTTP-02] is refused when it is %s", (text, fault, id, message) => {
    const refused = refusal(text);
    expect(refused).toMatchObject({ fault, id });
    expect(refused.message).toMatch(message);
  });

  it("[S-HTTP-02] is written with its id, or with null when the id could not be read", () => {
    expect(JSON.parse(requestText("a", "m", { x: 1 }))).toEqual({ jsonrpc: "2.0", id: "a", method: "m", params: { x: 1 } });
    expect(JSON.parse(resultText(5, null))).toEqual({ jsonrpc: "2.0", id: 5, result: null });
    expect(JSON.parse(errorText(null, { code: -32700, message: "no" }))).toEqual({
      jsonrpc: "2.0",
      id: null,
      error: { code: -32700, message: "no" },
    });
  });

  it("is ASCII on one line as an event, with the same meaning", () => {
    const value = { text: 'é\u2028"\\ 😀\n', ключ: "\u0000\u007f" };
    const event = eventText(JSON.stringify(value));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant.
    expect(event).toMatch(/^data: [\x00-\x7f]*\n\n$/);
    expect(event.slice(0, -2)).not.toContain("\n");
    expect(JSON.parse(event.slice("data: ".length))).toEqual(value);
    expect(asciiJson('"plain"')).toBe('"plain"');
  });
});
