// A real NATS server with JetStream for a test: on a free loopback port, with a store of its own, ended with the test.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type JetStreamManager, jetstreamManager, RetentionPolicy } from "@nats-io/jetstream";
import { connect, type NatsConnection, headers as natsHeaders } from "@nats-io/transport-node";
import { onTestFinished } from "vitest";
import { accepts, freePort } from "./port.ts";

/** What is missing on this machine; tests that need it skip themselves and name it. */
export const natsMissing =
  spawnSync("nats-server", ["--version"]).status === 0 ? undefined : "the command nats-server (Debian package nats-server)";

export class TestNats {
  readonly port: number;
  readonly #folder = mkdtempSync(join(tmpdir(), "longshore-nats-"));
  readonly #jetStream: boolean;
  #process: ChildProcess | undefined;
  #connection: NatsConnection | undefined;

  private constructor(port: number, jetStream: boolean) {
    this.port = port;
    this.#jetStream = jetStream;
  }

  static async start({ jetStream = true } = {}): Promise<TestNats> {
    const nats = new TestNats(await freePort(), jetStream);
    await nats.up();
    onTestFinished(async () => {
      await nats.#connection?.close();
      await nats.down("SIGKILL");
      rmSync(nats.#folder, { recursive: true, force: true });
    });
    return nats;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.port}`;
  }

  async up(): Promise<void> {
    const store = this.#jetStream ? ["-js", "-sd", this.#folder] : [];
    const child = spawn("nats-server", ["-a", "127.0.0.1", "-p", String(this.port), ...store], { stdio: "ignore" });
    this.#process = child;
    while (!(await accepts(this.port))) if (child.exitCode !== null) throw new Error(`nats-server ended with ${child.exitCode}`);
  }

  async down(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await ended;
  }

  /** The test's own connection. */
  async connection(): Promise<NatsConnection> {
    this.#connection ??= await connect({ servers: this.url, reconnectTimeWait: 20, maxReconnectAttempts: -1 });
    return this.#connection;
  }

  async manager(): Promise<JetStreamManager> {
    return jetstreamManager(await this.connection());
  }

  /** As an orchestrator makes it. */
  async addStream(name: string): Promise<void> {
    await (await this.manager()).streams.add({ name, subjects: [`${name}.tasks`], retention: RetentionPolicy.Workqueue });
  }

  /** Kept when it resolves; repeated while the server has just been started. */
  async publish(stream: string, bytes: Uint8Array): Promise<void> {
    const connection = await this.connection();
    const headers = natsHeaders();
    headers.set("Nats-Msg-Id", randomUUID());
    for (let kept = false; !kept; ) {
      kept = await connection.request(`${stream}.tasks`, bytes, { headers, timeout: 1_000 }).then(
        () => true,
        () => false,
      );
    }
  }

  /** Every answer that workers give to messages of the stream from now on, as text. */
  async acks(stream: string): Promise<string[]> {
    const texts: string[] = [];
    const connection = await this.connection();
    connection.subscribe(`$JS.ACK.${stream}.>`, { callback: (_error, message) => void texts.push(message.string()) });
    await connection.flush();
    return texts;
  }

  /** How many messages were delivered and not answered, and how many wait. */
  async counts(stream: string, consumer: string): Promise<{ readonly held: number; readonly waiting: number }> {
    const { num_ack_pending: held, num_pending: waiting } = await (await this.manager()).consumers.info(stream, consumer);
    return { held, waiting };
  }
}
