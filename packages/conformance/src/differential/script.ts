// The language of the differential test: chapters of literal requests, which are sent one after the other to one server. `{{name}}` in a path
// or body is replaced by a value from an earlier response of the same chapter. `{{server}}` is the address of the server.
import { type Answer, exchange, type Request } from "../exchange.ts";

export interface Step {
  /** Unique within its chapter. */
  name: string;
  method: string;
  path: string;
  headers?: Record<string, string>;
  body?: string;
  /** Values to keep from the response: a name, and a dotted path into the JSON. An empty path keeps the whole text. */
  keep?: Record<string, string>;
  /** Values to keep from the text of the response: a name, and an expression whose first group is the value. */
  keepMatch?: Record<string, RegExp>;
  /** The reference makes some changes a moment after its response: repeat the request until the body matches. */
  until?: RegExp;
}

export interface Chapter {
  /** Also the name of its fixture file. */
  name: string;
  steps: readonly Step[];
}

export interface Played {
  step: Step;
  request: Request;
  answer: Answer;
  /** The step has received what it waits for, or does not wait. */
  met: boolean;
}

/**
 * The reference checks a waiting run at least every 30 s, and looks for new event handlers every 60 s. A change that is not visible after
 * this time will not happen.
 */
const SETTLE_MS_MAX = 75_000;
const SETTLE_EVERY_MS = 50;

export async function play(url: string, chapter: Chapter): Promise<Played[]> {
  const kept: Record<string, string> = { server: url };
  const played: Played[] = [];
  for (const step of chapter.steps) {
    const request = fillIn(step, kept);
    const answer = await settled(url, request, step.until);
    for (const [name, path] of Object.entries(step.keep ?? {})) kept[name] = String(valueAt(answer.body, path));
    for (const [name, pattern] of Object.entries(step.keepMatch ?? {})) kept[name] = pattern.exec(answer.body)?.[1] ?? "undefined";
    played.push({ step, request, answer, met: step.until?.test(answer.body) ?? true });
  }
  return played;
}

function fillIn(step: Step, kept: Record<string, string>): Request {
  const fill = (text: string, write = (value: string): string => value): string =>
    text.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => write(kept[name] ?? whole));
  const body = step.body === undefined ? {} : { body: fill(step.body) };
  // The kept value may be an error text instead of an id.
  return { method: step.method, path: fill(step.path, encodeURIComponent), headers: step.headers ?? {}, ...body };
}

async function settled(url: string, request: Request, pattern: RegExp | undefined): Promise<Answer> {
  const giveUpAt = Date.now() + SETTLE_MS_MAX;
  for (;;) {
    const answer = await exchange(url, request);
    if (pattern === undefined || pattern.test(answer.body) || Date.now() > giveUpAt) return answer;
    await new Promise((resolve) => setTimeout(resolve, SETTLE_EVERY_MS));
  }
}

/** A missing value is kept as the text `undefined`, so that later steps show the consequences. */
function valueAt(body: string, path: string): unknown {
  if (path === "") return body;
  try {
    return path.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], JSON.parse(body));
  } catch {
    return undefined;
  }
}
