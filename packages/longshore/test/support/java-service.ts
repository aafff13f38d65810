// Services written in Java, as processes of a test or of a whole run: on free loopback ports, with data of their own, ended with it.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CachedPeer, fetchedFolder, fetchIntoCache } from "../../../conformance/src/cache.ts";
import { kafkaConfig, kafkaPeer, mongoPeer, type SecureListener } from "../../../conformance/src/maven.ts";
import { accepts, freePort } from "./port.ts";

/** What is missing on this machine to run these services; tests that need them skip themselves and name it. */
export const javaMissing = missingOf([
  ["javac", "a JDK from 17 on (Debian package default-jdk-headless)"],
  ["mvn", "the command mvn (Debian package maven)"],
]);

/** A start takes some seconds. A refused connection is tried again after a pause. */
const LOOK_MS = 20;
/** Enough for tests, and little compared with what else runs on the machine. */
const JVM = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"];

export class JavaKafka {
  readonly port: number;
  readonly #folder = mkdtempSync(join(tmpdir(), "longshore-kafka-"));
  readonly #jars: string;
  #process: ChildProcess | undefined;

  private constructor(jars: string, port: number) {
    this.#jars = jars;
    this.port = port;
  }

  static async start(options: { readonly secure?: SecureListener; readonly makesTopics?: boolean } = {}): Promise<JavaKafka> {
    const folder = await folderOf(kafkaPeer);
    const [port, controllerPort] = [await freePort(), await freePort()];
    const kafka = new JavaKafka(join(folder, "lib", "*"), port);
    const data = join(kafka.#folder, "data");
    cpSync(join(folder, "formatted"), data, { recursive: true });
    writeFileSync(join(kafka.#folder, "server.properties"), kafkaConfig({ port, controllerPort, data, ...options }));
    await kafka.up();
    return kafka;
  }

  get broker(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Starts it again with its earlier data. */
  async up(): Promise<void> {
    this.#process = spawn("java", [...JVM, "-cp", this.#jars, "kafka.Kafka", join(this.#folder, "server.properties")], { stdio: "ignore" });
    await accepted(this.#process, this.port);
  }

  async down(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    await ended(child, signal);
  }

  /** Stops it for a while. Connections stay open, without any answer. */
  freeze(): void {
    this.#process?.kill("SIGSTOP");
  }

  thaw(): void {
    this.#process?.kill("SIGCONT");
  }

  async remove(): Promise<void> {
    await this.down("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export class JavaMongo {
  readonly #process: ChildProcess;
  readonly port: number;

  private constructor(child: ChildProcess, port: number) {
    this.#process = child;
    this.port = port;
  }

  static async start(): Promise<JavaMongo> {
    const folder = await folderOf(mongoPeer);
    const port = await freePort();
    const path = [join(folder, "lib", "*"), folder].join(":");
    const child = spawn("java", [...JVM, "-cp", path, "MongoPeer", String(port)], { stdio: "ignore" });
    await accepted(child, port);
    return new JavaMongo(child, port);
  }

  get url(): string {
    return `mongodb://127.0.0.1:${this.port}`;
  }

  remove(): Promise<void> {
    return ended(this.#process, "SIGKILL");
  }
}

/** Fetches what is not in the cache yet. */
export async function fetchServices(): Promise<void> {
  for (const peer of [kafkaPeer, mongoPeer]) await folderOf(peer);
}

async function folderOf(peer: CachedPeer): Promise<string> {
  await fetchIntoCache(peer, (line) => process.stderr.write(`${line}\n`));
  return fetchedFolder(peer);
}

function missingOf(needed: readonly (readonly [command: string, words: string])[]): string | undefined {
  const missing = needed.filter(([command]) => !onPath(command));
  return missing.length === 0 ? undefined : missing.map(([, words]) => words).join(" and ");
}

function onPath(command: string): boolean {
  return (
    (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, command))) || !spawnSync(command, ["--version"]).error
  );
}

async function ended(child: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const over = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await over;
}

async function accepted(child: ChildProcess, port: number): Promise<void> {
  while (!(await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`the service on port ${port} ended with ${child.exitCode} before it was ready`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}
