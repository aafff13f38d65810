// Fetches what the Python programs of FlowKit's protocol need, and the services that they share with us, once into the user's cache folder.
// The reference itself is in no registry: the package with its name on PyPI is a different project.
import { join } from "node:path";
import { fetchedFolder, fetchIntoCache } from "../src/cache.ts";
import { kafkaPeer, mongoPeer } from "../src/maven.ts";
import { pythonPeer } from "../src/python.ts";

/** The Kafka client that the reference uses, and MongoDB's own client. */
const clients = pythonPeer("flowkit-python-aiokafka-0.14.0-pymongo-4.19.0", ["aiokafka==0.14.0", "pymongo==4.19.0"]);

/** Fetches what is not in the cache yet. */
export async function fetchFlowkit(say: (line: string) => void): Promise<void> {
  for (const peer of [clients, kafkaPeer, mongoPeer]) await fetchIntoCache(peer, say);
}

/** A Python that has both clients. */
export function pythonWithClients(): string {
  return join(fetchedFolder(clients), "bin", "python");
}
