// What the Python program of FlowKit's protocol needs, and the services that it shares with us, fetched once into the user's cache folder. The
// reference itself is in no registry; a package of its name on PyPI is something else.
import { join } from "node:path";
import { fetchedFolder, fetchIntoCache } from "../src/cache.ts";
import { kafkaPeer, mongoPeer } from "../src/maven.ts";
import { pythonPeer } from "../src/python.ts";

/** The Kafka client that the reference uses, and MongoDB's own. */
const clients = pythonPeer("flowkit-python-aiokafka-0.14.0-pymongo-4.19.0", ["aiokafka==0.14.0", "pymongo==4.19.0"]);

/** Fetches what is not in the cache yet. */
export async function fetchFlowkit(say: (line: string) => void): Promise<void> {
  for (const peer of [clients, kafkaPeer, mongoPeer]) await fetchIntoCache(peer, say);
}

/** A Python that has both clients. */
export function pythonWithClients(): string {
  return join(fetchedFolder(clients), "bin", "python");
}
