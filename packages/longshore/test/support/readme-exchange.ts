// Exchanges that a page shows in `http` blocks, so that a test can make them with a real server:
//
//   POST /path
//   content-type: application/json
//
//   {"a": 1}
//
//   200
//   content-type: application/json
//
//   {"b": 2}

import { expect } from "vitest";

export interface ShownExchange {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly status: number;
  readonly type: string | undefined;
  readonly answer: string;
}

export function exchangesIn(text: string): ShownExchange[] {
  return [...text.matchAll(/```http\n([\s\S]*?)```/g)].map(([, block = ""]) => {
    const [request = "", ...rest] = block.trimEnd().split("\n\n");
    const body = request.includes("content-type") ? rest.shift() : undefined;
    const [status = "", type] = (rest.shift() ?? "").split("\n");
    const [method = "", path = ""] = (request.split("\n")[0] as string).split(" ");
    return { method, path, body, status: Number(status), type: type?.replace("content-type: ", ""), answer: rest.join("\n\n") };
  });
}

/** Sends what the page shows. `real` replaces ids of the page by those of this server. */
export async function play(
  url: string,
  shown: ShownExchange,
  real: (text: string) => string,
): Promise<{ response: Response; text: string }> {
  const response = await fetch(url + real(shown.path), {
    method: shown.method,
    ...(shown.body === undefined ? {} : { body: real(shown.body), headers: { "content-type": "application/json" } }),
  });
  return { response, text: await response.text() };
}

/** An answer may have more than the page shows. */
export function expectAnswer(shown: ShownExchange, response: Response, text: string, real: (text: string) => string): void {
  const what = `${shown.method} ${shown.path}`;
  expect(response.status, `${what}: ${text}`).toBe(shown.status);
  expect(response.headers.get("content-type")?.split(";")[0], what).toBe(shown.type);
  if (shown.type === "application/json") expect(JSON.parse(text), what).toEqual(expected(JSON.parse(real(shown.answer))));
  else expect(text, what).toBe(real(shown.answer));
}

/** What must be in an answer: what is shown, with any time for its times. */
function expected(shown: unknown): unknown {
  if (typeof shown === "number" && shown === 1_577_836_800_000) return expect.any(Number);
  if (typeof shown === "string" && shown === "2020-01-01T00:00:00.000Z") return expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  if (Array.isArray(shown)) return shown.map(expected);
  if (typeof shown !== "object" || shown === null) return shown;
  return expect.objectContaining(Object.fromEntries(Object.entries(shown).map(([key, value]) => [key, expected(value)])));
}
