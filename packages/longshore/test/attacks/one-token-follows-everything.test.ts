// The attacker holds a read token and opens streams of events until no places for readers are left, or a program forgets to close its
// streams. The dashboards of all other users then got 429. One token gets a quarter of the places, over each protocol that has such streams.

import { expect, it, onTestFinished } from "vitest";
import { TokenPlaces } from "../../src/core/token-places.ts";
import { serve } from "../../src/server/index.ts";
import { EventReader } from "../support/event-reader.ts";
import { call } from "../support/http.ts";

const share = 125;
const tokens = ["read:the-first-token-that-reads:first", "read:the-second-token-that-reads:second"];
const [first, second] = tokens.map((token): Record<string, string> => ({ authorization: `Bearer ${token.split(":")[1]}` }));

it("a token with a quarter of the readers of events gets no more places, but another token does", async () => {
  const server = await serve({ ephemeral: true, port: 0, tokens, logger: { level: "silent" } });
  onTestFinished(() => server.close());
  const url = server.url as string;
  const events = `${url}/api/longshore/v1/events`;
  const readers = await Promise.all(
    Array.from({ length: share }, (_, at) => EventReader.open(at % 2 ? events : `${events}?tick=1000`, first)),
  );
  expect(readers.map(({ response }) => response.statusCode)).toEqual(Array.from({ length: share }, () => 200));
  // Streams have begun when their first event is there.
  await Promise.all(readers.map((reader) => reader.next()));
  const refused = await call(events, { headers: first });
  expect([refused.status, refused.text]).toEqual([429, expect.stringContaining("with this token")]);
  expect((await EventReader.open(events, second)).response.statusCode).toBe(200);
});

it("places are free again after their readers, for any end of these", () => {
  const places = new TokenPlaces(8, "readers");
  const gone = new AbortController();
  const enter = (token?: string) => places.enter(token)(gone.signal);
  const leave = enter("a");
  enter("a");
  expect(() => enter("a")).toThrow("There are 2 readers with this token already");
  leave();
  leave();
  enter("a");
  expect(() => enter("a")).toThrow("with this token");
  for (let at = 0; at < 6; at++) enter();
  expect(() => enter("b")).toThrow("There are 8 readers already");
  gone.abort();
  enter("b")();
  expect(() => places.enter("a")).not.toThrow();
});
