// Selects the bus and the store of a worker: given objects, a Longshore server, or Kafka and MongoDB. Clients are loaded on demand.

import { kafkaSecurityIn } from "../../../bus/kafka/environment.ts";
import type { Bus } from "../../../core/bus/bus.ts";
import { variable } from "../../../core/environment.ts";
import { withoutEndSlashes } from "../../../core/text.ts";
import type { TransportHost } from "../../../runner/transport.ts";
import type { ArtifactStore } from "../wire/artifacts/artifacts.ts";
import type { MongoDb } from "../wire/artifacts/mongo-db.ts";
import { bad, brokersOf } from "../wire/brokers.ts";
import { httpBase } from "../wire/shapes.ts";
import type { FlowkitOptions } from "./options.ts";

export interface Connection {
  /** For logs; contains no secret. */
  readonly name: string;
  open(host: TransportHost): Promise<{ readonly bus: Bus; readonly artifacts: ArtifactStore }>;
  /** Closes what `open` has opened. */
  close(): Promise<void>;
}

interface Opener<Opened> {
  readonly name: string;
  /** True when `close` of this connection closes the object too. */
  readonly own: boolean;
  open(host: TransportHost): Promise<Opened> | Opened;
}

/**
 * Without `url`, the environment supplies absent options: KAFKA_BOOTSTRAP_SERVERS the brokers, FLOWKIT_MONGO_URL the database, and
 * FLOWKIT_URL a server for what is still missing. KAFKA_SECURITY_PROTOCOL and similar variables secure the connection to brokers.
 */
export function connect(options: FlowkitOptions): Connection {
  const given = withEnvironment(options);
  const bus = busOf(given);
  const artifacts = artifactsOf(given);
  const opened: { close(): Promise<void> }[] = [];
  return {
    name: bus.name === artifacts.name ? bus.name : `${bus.name} and ${artifacts.name}`,
    async open(host) {
      const found = { bus: await bus.open(host), artifacts: await artifacts.open(host) };
      if (artifacts.own) opened.push(found.artifacts);
      if (bus.own) opened.push(found.bus);
      return found;
    },
    async close() {
      for (const each of opened.splice(0)) await each.close();
    },
  };
}

function withEnvironment(options: FlowkitOptions): FlowkitOptions {
  const { env = process.env, url, bus, brokers, artifacts, mongo } = options;
  if (url !== undefined) return options;
  const servers = bus === undefined && brokers === undefined ? variable(env, "KAFKA_BOOTSTRAP_SERVERS") : undefined;
  const database = artifacts === undefined && mongo === undefined ? variable(env, "FLOWKIT_MONGO_URL") : undefined;
  const server = variable(env, "FLOWKIT_URL");
  return {
    ...options,
    ...(servers === undefined ? {} : { brokers: servers }),
    ...(database === undefined ? {} : { mongo: database }),
    ...(server === undefined ? {} : { url: server }),
  };
}

function busOf({ bus, brokers, kafka = {}, env = process.env, url, token }: FlowkitOptions): Opener<Bus> {
  if (bus !== undefined) return { name: bus.name, own: false, open: () => bus };
  if (brokers !== undefined) {
    const list = brokersOf(brokers);
    const security = kafkaSecurityIn(env);
    return {
      name: `Kafka at ${list.join(",")}`,
      own: true,
      open: async (host) => {
        const { openKafkaBus } = await import("../../../bus/kafka.ts");
        return openKafkaBus({ ...security, ...kafka, brokers: list, trouble: host, clock: host.clock });
      },
    };
  }
  if (url === undefined) throw bad("brokers", "absent", "Kafka's brokers, or the url of a Longshore server");
  const address = addressOf(url);
  return {
    name: address.origin,
    own: true,
    open: async (host) => {
      const { openHttpBus } = await import("../../../bus/http.ts");
      return openHttpBus({ url: busAt(address), trouble: host, clock: host.clock, ...(token === undefined ? {} : { token }) });
    },
  };
}

function artifactsOf({ artifacts, mongo, database, url, token, bus, brokers }: FlowkitOptions): Opener<ArtifactStore> {
  if (artifacts !== undefined) return { name: artifacts.name, own: false, open: () => artifacts };
  if (typeof mongo === "string") {
    return {
      name: "MongoDB",
      own: true,
      open: async (host) => {
        const { openMongoArtifacts } = await import("./artifacts/mongo.ts");
        const place = { url: mongo, ...(database === undefined ? {} : { database }) };
        return openMongoArtifacts(place, { clock: host.clock, trouble: host });
      },
    };
  }
  if (mongo !== undefined) {
    if (typeof (mongo as Partial<MongoDb>).collection !== "function") throw bad("mongo", "no database", "an address, or a Db of mongodb");
    return {
      name: "MongoDB",
      own: false,
      open: async (host) => {
        const { mongoArtifacts } = await import("./artifacts/mongo.ts");
        return mongoArtifacts(mongo as MongoDb, { clock: host.clock, trouble: host });
      },
    };
  }
  if (url === undefined) throw bad("mongo", "absent", "the address of a database, or the url of a Longshore server");
  const address = addressOf(url);
  return {
    name: address.origin,
    own: true,
    open: async (host) => {
      const { httpArtifacts } = await import("./artifacts/http.ts");
      const tells = bus === undefined && brokers === undefined;
      return httpArtifacts({ url: address, token, tells, clock: host.clock, trouble: host });
    },
  };
}

function busAt(server: URL): URL {
  const url = new URL(server);
  url.pathname = `${withoutEndSlashes(server.pathname)}${httpBase}/bus`;
  return url;
}

function addressOf(url: string | URL): URL {
  const address = URL.canParse(String(url)) ? new URL(url) : undefined;
  if (address !== undefined && /^https?:$/.test(address.protocol)) return address;
  throw bad("url", JSON.stringify(String(url)), "the address of a Longshore server, such as http://127.0.0.1:4500");
}
