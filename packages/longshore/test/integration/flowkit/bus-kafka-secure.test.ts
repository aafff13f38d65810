// The bus on a Kafka with TLS and authentication.
import { execFileSync, spawnSync } from "node:child_process";
import { pbkdf2Sync, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { alterUserScramCredentialsV0, Connection } from "@platformatic/kafka";
import { describe, expect, it, onTestFinished } from "vitest";
import { kafkaSecurityIn } from "../../../src/bus/kafka/environment.ts";
import { type KafkaBusOptions, openKafkaBus } from "../../../src/bus/kafka.ts";
import { kafkaMissing, ownKafka, soonHeard } from "../../support/kafka.ts";
import { temporaryFolder } from "../../support/parts.ts";
import { freePort } from "../../support/port.ts";

const missing = kafkaMissing ?? (spawnSync("openssl", ["version"]).error ? "the command openssl" : undefined);
/** One start of a broker: five seconds on an idle machine, and forty on a busy one. */
const brokerTestMs = 120_000;
const [password, scramPassword, wrong] = ["open sesame", "winter 1884", "a secret that is wrong"];

/** A broker with a self-signed certificate. */
async function setup() {
  const folder = temporaryFolder();
  const [key, cert, pemFile] = ["key.pem", "cert.pem", "both.pem"].map((name) => join(folder, name)) as [string, string, string];
  const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", cert, "-days", "2"];
  const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", ...made, ...subject], { stdio: "pipe" });
  const ca = readFileSync(cert, "utf8");
  writeFileSync(pemFile, `${readFileSync(key, "utf8")}${ca}`);
  const port = await freePort();
  const kafka = await ownKafka({ secure: { port, pemFile, user: { name: "ann", password } } });
  const brokers = [`127.0.0.1:${port}`];
  const told: string[] = [];
  const trouble = { failing: (what: string, error: unknown) => void told.push(`${what}: ${String(error)}`), working: () => {} };
  const open = async (options: Partial<KafkaBusOptions>) => {
    const bus = await openKafkaBus({ brokers, partitions: 1, againMs: 20, ...soonHeard, patienceMs: 5_000, trouble, ...options });
    onTestFinished(() => bus.close());
    return bus;
  };
  return { kafka, ca, caFile: cert, open, told, refusals: [] as string[] };
}

/** Over the listener without authentication. */
async function addScramUser(broker: string, name: string, secret: string): Promise<void> {
  const [host = "", port] = broker.split(":");
  const connection = new Connection("test");
  await connection.connect(host, Number(port));
  const [iterations, salt] = [4_096, randomBytes(16)];
  const saltedPassword = pbkdf2Sync(secret, salt, iterations, 32, "sha256");
  await alterUserScramCredentialsV0.api.async(connection, [], [{ name, mechanism: 1, iterations, salt, saltedPassword }]);
  await connection.close();
}

type World = Awaited<ReturnType<typeof setup>>;

async function roundTrip({ open }: World, options: Partial<KafkaBusOptions>, topic: string): Promise<string> {
  const bus = await open(options);
  let heard: (text: string) => void;
  const first = new Promise<string>((resolve) => {
    heard = resolve;
  });
  const handle = async ([record]: readonly { value: Uint8Array }[]) => heard(Buffer.from(record?.value ?? "").toString());
  const consumer = bus.subscribe({ group: `of.${topic}`, topics: [topic], from: "earliest", handle });
  await consumer.ready;
  await bus.publish([{ topic, key: null, value: `hello ${topic}` }]);
  const text = await first;
  await bus.close();
  return text;
}

/** The error of a refused publish, and the report of a consumer. */
async function refused(
  { open, told, refusals }: World,
  options: Partial<KafkaBusOptions>,
): Promise<{ code: unknown; message: string; told: string }> {
  const bus = await open(options);
  const before = told.length;
  bus.subscribe({ group: "g", topics: ["plain"], from: "earliest", handle: async () => {} });
  const error = (await bus.publish([{ topic: "plain", key: null, value: "x" }]).catch((thrown: unknown) => thrown)) as Error & {
    code?: unknown;
  };
  while (told.length === before) await new Promise(setImmediate);
  await bus.close();
  refusals.push(inspect(error, { depth: 10 }));
  return { code: error.code, message: error.message, told: told.slice(before).join() };
}

describe.skipIf(missing !== undefined)(`Kafka with TLS and SASL${missing === undefined ? "" : ` (needs ${missing})`}`, () => {
  it(
    "accepts known users, and reports to others what to set",
    async () => {
      const world = await setup();
      const { ca, caFile, told } = world;
      const plain = { mechanism: "PLAIN", username: "ann", password } as const;
      expect(await roundTrip(world, { ssl: { ca }, sasl: plain }, "plain")).toBe("hello plain");

      const env = {
        KAFKA_SECURITY_PROTOCOL: "SASL_SSL",
        KAFKA_SSL_CA_FILE: caFile,
        KAFKA_SASL_USERNAME: "ann",
        KAFKA_SASL_PASSWORD: password,
      };
      expect(await roundTrip(world, kafkaSecurityIn(env), "told")).toBe("hello told");

      await addScramUser(world.kafka.broker, "bob", scramPassword);
      const scram = { mechanism: "SCRAM-SHA-256", username: "bob", password: scramPassword } as const;
      expect(await roundTrip(world, { ssl: { ca }, sasl: scram }, "scram")).toBe("hello scram");

      for (const sasl of [plain, scram]) {
        const unknown = await refused(world, { ssl: { ca }, sasl: { ...sasl, password: wrong } });
        expect(unknown.code).toBe("LONGSHORE_UNAUTHORIZED");
        for (const text of [unknown.message, unknown.told]) {
          expect(text).toMatch(
            /Kafka at 127\.0\.0\.1:\d+ refuses this client: .* Check kafka\.sasl: its mechanism, username and password\./,
          );
        }
      }
      const untrusted = await refused(world, { ssl: true, sasl: plain });
      expect(untrusted.code).toBe("LONGSHORE_BAD_CONFIG");
      for (const text of [untrusted.message, untrusted.told]) {
        expect(text).toMatch(
          /The certificate of Kafka at .* is not trusted \(self-signed certificate.*\)\. Give that of its authority in kafka\.ssl\.ca/,
        );
      }
      const nobody = await refused(world, { ssl: { ca }, patienceMs: 100 });
      expect(nobody.code).toBe("LONGSHORE_UNREACHABLE");
      expect(nobody.message).toMatch(/Connection closed \(does it require kafka\.sasl, which is not set\?\)$/);
      const open = await refused(world, { patienceMs: 100 });
      expect(open.message).toMatch(/\(does it require kafka\.ssl or kafka\.sasl, which is not set\?\)$/);

      const said = [...told, ...world.refusals].join();
      for (const secret of [password, scramPassword, wrong]) expect(said).not.toContain(secret);
    },
    brokerTestMs,
  );
});
