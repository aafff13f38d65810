// Services written in Java, which Maven fetches with their dependencies: Apache Kafka, and a server that behaves like MongoDB.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CachedPeer, execute } from "./cache.ts";

/** The versions that the tests are written for. */
const KAFKA = "4.3.1";
const MONGO = "1.47.0";

const COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/** `lib/` has the jars. `formatted/` is the data folder of a node that has never run; each broker starts with a copy of it. */
export const kafkaPeer: CachedPeer = {
  folder: `kafka-${KAFKA}`,
  tools: ["maven", "java"],
  async fetch(folder) {
    await copyJars(folder, "org.apache.kafka", "kafka_2.13", KAFKA);
    const config = join(folder, "server.properties");
    writeFileSync(config, kafkaConfig({ port: 19092, controllerPort: 19093, data: join(folder, "formatted") }));
    const format = ["format", "-t", "bG9uZ3Nob3JlLXRlc3RzMQ", "-c", config];
    await execute("java", ["-cp", join(folder, "lib", "*"), "kafka.tools.StorageTool", ...format]);
  },
};

/** `MongoPeer.class` is next to `lib/`; its argument is a port, and it prints `ready`. Keeps everything in memory. */
export const mongoPeer: CachedPeer = {
  folder: `mongo-java-server-${MONGO}`,
  tools: ["maven", "java"],
  async fetch(folder) {
    await copyJars(folder, "de.bwaldvogel", "mongo-java-server", MONGO);
    const source = join(folder, "MongoPeer.java");
    writeFileSync(source, mongoProgram);
    await execute("javac", ["-cp", join(folder, "lib", "*"), "-d", folder, source]);
  },
};

/** A second listener of a broker, with TLS. Users authenticate with PLAIN or, after they have been created, with SCRAM-SHA-256. */
export interface SecureListener {
  readonly port: number;
  /** Key and certificate, one after the other. */
  readonly pemFile: string;
  readonly user: { readonly name: string; readonly password: string };
}

/** One node that is both broker and controller and listens on loopback only. Its internal topics have as few partitions as possible. */
export function kafkaConfig(place: KafkaPlace): string {
  return `${commonConfig(place)}${place.secure === undefined ? "" : secureConfig(place.secure)}`;
}

interface KafkaPlace {
  readonly port: number;
  readonly controllerPort: number;
  readonly data: string;
  readonly secure?: SecureListener;
  /** The first program that names a topic creates it, with one partition. This is Kafka's default. */
  readonly makesTopics?: boolean;
}

function secureConfig({ pemFile, user }: SecureListener): string {
  const login = "org.apache.kafka.common.security";
  return `sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256
ssl.keystore.type=PEM
ssl.keystore.location=${pemFile}
listener.name.secure.plain.sasl.jaas.config=${login}.plain.PlainLoginModule required user_${user.name}="${user.password}";
listener.name.secure.scram-sha-256.sasl.jaas.config=${login}.scram.ScramLoginModule required;
`;
}

function commonConfig(place: KafkaPlace): string {
  const secure = place.secure === undefined ? "" : `,SECURE://127.0.0.1:${place.secure.port}`;
  return `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${place.controllerPort}
listeners=PLAINTEXT://127.0.0.1:${place.port},CONTROLLER://127.0.0.1:${place.controllerPort}${secure}
advertised.listeners=PLAINTEXT://127.0.0.1:${place.port}${secure}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
inter.broker.listener.name=PLAINTEXT
log.dirs=${place.data}
num.partitions=${place.makesTopics ? 1 : 4}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=${place.makesTopics === true}
`;
}

async function copyJars(folder: string, group: string, artifact: string, version: string): Promise<void> {
  const pom = join(folder, "pom.xml");
  writeFileSync(
    pom,
    `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>peers</groupId><artifactId>${artifact}-peer</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency></dependencies>
</project>
`,
  );
  await execute("mvn", ["-q", "-B", "-f", pom, COPY, `-DoutputDirectory=${join(folder, "lib")}`, "-DincludeScope=runtime"]);
}

/** Replaces the wire version that the server reports, because new drivers refuse that version. */
const mongoProgram = `import de.bwaldvogel.mongo.*;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

public class MongoPeer {
  public static void main(String[] args) throws Exception {
    MongoVersion version = new MongoVersion() {
      public List<Integer> getVersionArray() { return List.of(5, 0, 0); }
      public int getWireVersion() { return 13; }
    };
    MongoServer server = new MongoServer(new MemoryBackend().version(version));
    server.bind("127.0.0.1", Integer.parseInt(args[0]));
    Runtime.getRuntime().addShutdownHook(new Thread(server::shutdown));
    System.out.println("ready");
    Thread.currentThread().join();
  }
}
`;
