// The language of the differential test: chapters of literal requests; each chapter gets a fresh server. `{name}` in a path or body is
// replaced by a value from an earlier response of the same chapter.
import { type Answer, exchange, type Request } from "../../src/exchange.ts";

export interface Step {
  /** Unique within its chapter. */
  name: string;
  method: string;
  path: string;
  /** The content type; absent sends none. */
  type?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Values to keep from the JSON response: a name and a dotted path. */
  keep?: Record<string, string>;
  /** The reference makes some changes a moment after its response: repeat the request until the response contains this text. */
  until?: string;
}

export interface Chapter {
  name: string;
  steps: readonly Step[];
}

export interface Played {
  step: Step;
  request: Request;
  answer: Answer;
}

/** The reference processes its events in microseconds. A change that is not visible after this time will not happen. */
const SETTLE_MS_MAX = 1_000;
const SETTLE_EVERY_MS = 20;

export async function play(url: string, chapter: Chapter): Promise<Played[]> {
  const kept: Record<string, string> = {};
  const played: Played[] = [];
  for (const step of chapter.steps) {
    const request = fillIn(step, kept);
    const answer = await settled(url, request, step.until);
    for (const [name, path] of Object.entries(step.keep ?? {})) kept[name] = String(valueAt(answer.body, path));
    played.push({ step, request, answer });
  }
  return played;
}

function fillIn(step: Step, kept: Record<string, string>): Request {
  const fill = (text: string): string => text.replace(/\{([a-z][A-Za-z]*)\}/g, (whole, name: string) => kept[name] ?? whole);
  const headers = { ...step.headers, ...(step.type === undefined ? {} : { "content-type": step.type }) };
  const body = step.body === undefined ? {} : { body: fill(step.body) };
  return { method: step.method, path: fill(step.path), headers, ...body };
}

async function settled(url: string, request: Request, text: string | undefined): Promise<Answer> {
  const giveUpAt = Date.now() + SETTLE_MS_MAX;
  for (;;) {
    const answer = await exchange(url, request);
    if (text === undefined || answer.body.includes(text) || Date.now() > giveUpAt) return answer;
    await new Promise((resolve) => setTimeout(resolve, SETTLE_EVERY_MS));
  }
}

/** A missing value is kept as the text `undefined`, so that later steps show the consequences. */
function valueAt(body: string, path: string): unknown {
  try {
    return path.split(".").reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], JSON.parse(body));
  } catch {
    return undefined;
  }
}
