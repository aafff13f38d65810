// Conductor requests to a server that is killed again and again: each is repeated until it gets a response.
import { setTimeout as pause } from "node:timers/promises";
import type { conductorConversation } from "../support/conductor-rest.ts";

export type Conversation = ReturnType<typeof conductorConversation>;

export const REST_MS = 20;

/** Repeats the request until the response is not that of a closing server. */
export async function insistOn(c: Conversation, method: string, path: string, body?: unknown): Promise<{ status: number; text: string }> {
  for (;;) {
    const answer = await c.send(method, path, body).catch(() => null);
    if (answer !== null && answer.status !== 503) return answer;
    await pause(REST_MS);
  }
}

/** The same. Fails the test when the response is not 2xx. */
export async function insist(c: Conversation, method: string, path: string, body?: unknown): Promise<string> {
  const { status, text } = await insistOn(c, method, path, body);
  if (status >= 300) throw new Error(`${method} ${path} was answered ${status}: ${text}`);
  return text;
}
