import { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import type { Action } from "../../core/actions.ts";
import { Admission, type AdmissionLimits } from "./admission.ts";
import { type Connection, Connections, type OnConnection } from "./connections.ts";

const claim: Action = "task.claim";
const open: Action = "token.check";

function setup(limits: Partial<AdmissionLimits> = {}) {
  const small = { inFlight: 8, inFlightOwn: 1, inFlightConnection: 5, inFlightToken: 6, inFlightOpen: 2, inFlightReserve: 1 };
  const places = new Admission({ ...small, ...limits });
  const connections = new Connections(places);
  const connect = () => connections.add(new Socket());
  /** The reason of the refusal; undefined when the request has a place. */
  const begin = (connection: Connection, token: string | undefined, action: Action = claim) => {
    const request: OnConnection = { place: undefined, clientGone() {} };
    connections.begin(connection, request);
    const refused = places.enter(connection, request, token, action)?.message;
    if (refused !== undefined) connections.finish(connection, request);
    return { refused, finish: () => connections.finish(connection, request) };
  };
  /** How many of many requests get a place. */
  const fill = (connection: Connection, token: string | undefined, action: Action = claim) =>
    Array.from({ length: 20 }, () => begin(connection, token, action)).filter(({ refused }) => refused === undefined).length;
  return { places, connections, connect, begin, fill };
}

describe("places for requests", () => {
  it("are limited on one connection", () => {
    const { connect, fill, begin } = setup();
    const connection = connect();
    expect(fill(connection, "ann")).toBe(5);
    expect(begin(connection, "ann").refused).toMatch("There are 5 requests of this connection under way, the limit.");
  });

  it("are limited for all connections of one token together, and also for each connection", () => {
    const { connect, fill, begin } = setup();
    expect([fill(connect(), "ann"), fill(connect(), "ann"), fill(connect(), "ann")]).toEqual([5, 3, 1]);
    expect(begin(connect(), "bob").refused).toBeUndefined();
    expect(fill(connect(), "bob")).toBe(3);
  });

  it("are limited for all callers without a token together", () => {
    const { connect, fill } = setup();
    expect([fill(connect(), undefined, open), fill(connect(), undefined, open)]).toEqual([3, 1]);
    expect(fill(connect(), "ann")).toBe(5);
  });

  it("are counted only by connection when no caller has a token", () => {
    const { connect, fill } = setup();
    expect([fill(connect(), undefined), fill(connect(), undefined), fill(connect(), undefined)]).toEqual([5, 5, 1]);
  });

  it("are reserved for vital requests", () => {
    const { connect, fill, begin } = setup();
    const connection = connect();
    fill(connection, "ann");
    expect(begin(connection, "ann", "run.steer").refused).toBeUndefined();
    expect(begin(connection, "ann", "run.steer").refused).toBeDefined();
  });

  it("are returned once, with the response or when the socket ends", async () => {
    const { places, connect, begin, fill } = setup();
    const connection = connect();
    begin(connection, "ann");
    const second = begin(connection, "ann");
    expect(places.pooled).toBe(1);
    second.finish();
    second.finish();
    expect(places.pooled).toBe(0);
    fill(connection, "ann");
    expect(places.pooled).toBe(4);
    const closed = new Promise((resolve) => connection.socket.once("close", resolve));
    connection.socket.destroy();
    await closed;
    expect(places.pooled).toBe(0);
    expect(fill(connect(), "ann")).toBe(5);
  });
});
