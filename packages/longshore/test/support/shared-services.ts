// Services that are slow to start, shared by all integration tests of a run. Each is started when the first test asks for it, and ended
// after the last test. Test files run in processes of their own, so they ask over a loopback socket.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { fetchServices, JavaKafka, JavaMongo, javaMissing } from "./java-service.ts";

declare module "vitest" {
  interface ProvidedContext {
    sharedServices: string;
  }
}

interface Service {
  readonly address: string;
  remove(): Promise<void>;
}

const starters: Readonly<Record<string, () => Promise<Service>>> = {
  async kafka() {
    const kafka = await JavaKafka.start();
    return { address: kafka.broker, remove: () => kafka.remove() };
  },
  async mongo() {
    const mongo = await JavaMongo.start();
    return { address: mongo.url, remove: () => mongo.remove() };
  },
};

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // A fetch takes longer than a test may. The test that needs the service reports a failed fetch.
  if (javaMissing === undefined) await fetchServices().catch((error: Error) => process.stderr.write(`${error.message}\n`));
  const started = new Map<string, Promise<Service>>();
  const server = createServer((request, response) => {
    const name = (request.url ?? "").slice(1);
    const start = starters[name] ?? (() => Promise.reject(new Error(`no such service: ${name}`)));
    if (!started.has(name)) started.set(name, start());
    started.get(name)?.then(
      ({ address }) => response.end(address),
      (error: Error) => response.writeHead(500).end(error.message),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  project.provide("sharedServices", `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return async () => {
    server.close();
    server.closeAllConnections();
    const services = await Promise.allSettled(started.values());
    await Promise.all(services.map((one) => (one.status === "fulfilled" ? one.value.remove() : undefined)));
  };
}
