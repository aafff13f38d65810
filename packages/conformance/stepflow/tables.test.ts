// Compares our tables of messages, enums and services with the descriptors in Stepflow's own Python packages, which Google's compiler made
// from the .proto files: every message, field, number, type, oneof, enum and method, in both directions.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import * as status from "../../longshore/src/net/grpc/status.ts";
import type { Message, Rpc } from "../../longshore/src/net/protobuf/protobuf.ts";
import * as apiMessages from "../../longshore/src/protocols/stepflow/wire/api-messages.ts";
import * as messages from "../../longshore/src/protocols/stepflow/wire/messages.ts";
import * as services from "../../longshore/src/protocols/stepflow/wire/services.ts";
import { pythonWithSdk, type Release } from "./fetch.ts";

type Row = [name: string, number: number, type: string, rule: string | null];
type Method = [request: string, response: string, clientStream: boolean, serverStream: boolean];

interface Descriptors {
  readonly messages: Readonly<Record<string, Row[]>>;
  readonly enums: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly services: Readonly<Record<string, Readonly<Record<string, Method>>>>;
}

/** A service for machines that run workers in a sandbox. None of our connections uses it. */
const unused = ["VsockTaskEnvelope"];
/** Fields that 0.13 renamed without changing their numbers. */
const renamed: Readonly<Record<string, string>> = { name: "componentId", component: "componentId" };

const exported = Object.entries({ ...messages, ...apiMessages });
const isMessage = (value: unknown): value is Message => typeof (value as Message).decode === "function";
const ours = new Map<string, Row[]>(
  exported.flatMap(([, value]) => (isMessage(value) ? [[`stepflow.v1.${value.name}`, rowsOf(value)] as const] : [])),
);

function descriptorsOf(release: Release): Descriptors {
  const program = fileURLToPath(new URL("./programs/descriptors.py", import.meta.url));
  return JSON.parse(execFileSync(pythonWithSdk(release), [program], { encoding: "utf8" }));
}

/** Fields by number, with the type names of the descriptors. */
function rowsOf({ fields }: Message): Row[] {
  return sorted(Object.entries(fields).map(([name, [number, type, rule]]) => [name, number, typeName(type), rule ?? null]));
}

function typeName(type: string | Message): string {
  if (typeof type !== "string") return type.name.includes(".") ? type.name : `stepflow.v1.${type.name}`;
  return /^[A-Z]/.test(type) ? `google.protobuf.${type}` : type;
}

function sorted(rows: readonly Row[]): Row[] {
  return [...rows].sort(([, a], [, b]) => a - b);
}

describe("our tables and the descriptors of Stepflow 0.13", () => {
  const theirs = descriptorsOf("0.13");

  it("have the same messages, with the same fields, numbers, types and rules", () => {
    const wanted = Object.entries(theirs.messages).filter(
      ([name]) => name.startsWith("stepflow.v1.") && !unused.some((part) => name.endsWith(part)),
    );
    expect(wanted.length).toBeGreaterThan(70);
    expect(Object.fromEntries(ours)).toEqual(Object.fromEntries(wanted.map(([name, rows]) => [name, sorted(rows)])));
  });

  it("have the same enums; our values have no enum name before them", () => {
    const enums = exported.filter(([name, value]) => /^[A-Z]/.test(name) && !isMessage(value));
    const full = enums.map(([name, values]) => [
      `stepflow.v1.${name}`,
      Object.fromEntries(Object.entries(values).map(([value, number]) => [`${constantCase(name)}_${value}`, number])),
    ]);
    expect(Object.fromEntries(full)).toEqual(theirs.enums);
  });

  it("have the same services, with the same methods, messages and streams", () => {
    const rpcs = Object.values(services).flatMap((service) => Object.values(service) as Rpc[]);
    const methods = rpcs.map(({ path, kind, request, response }) => [path, typeName(request), typeName(response), kind]);
    const wanted = Object.entries(theirs.services).flatMap(([service, each]) =>
      Object.entries(each).map(([name, [request, response, fromClient, fromServer]]) => {
        expect(fromClient).toBe(false);
        return [`/${service}/${name}`, request, response, fromServer ? "server-stream" : "unary"];
      }),
    );
    expect(methods.sort()).toEqual(wanted.sort());
  });

  it("agree on the details of gRPC errors", () => {
    const carried = [status.ErrorInfo, status.BadRequest, status.Status].flatMap((message) => [message, ...innerOf(message)]);
    expect(carried).toHaveLength(5);
    // Google adds fields to these messages. Ours read only the fields that they need.
    for (const message of carried)
      expect([message.name, theirs.messages[message.name]]).toEqual([message.name, expect.arrayContaining(rowsOf(message))]);
  });
});

it("our tables have everything of 0.12 with the same numbers, and only four fields have another name", () => {
  const theirs = descriptorsOf("0.12");
  const other = new Set<string>();
  for (const [name, rows] of Object.entries(theirs.messages).filter(([each]) => each.startsWith("stepflow.v1."))) {
    const known = new Map(ours.get(name)?.map((row) => [row[1], row]));
    for (const [field, number, type, rule] of rows) {
      const newName = known.get(number)?.[0] === field ? field : (renamed[field] ?? field);
      if (newName !== field) other.add(`${name}.${field}`);
      expect([name, known.get(number)]).toEqual([name, [newName, number, type, rule]]);
    }
  }
  expect(other.size).toBe(4);
});

function innerOf({ fields }: Message): Message[] {
  return Object.values(fields).flatMap(([, type]) => (typeof type === "string" ? [] : [type]));
}

function constantCase(name: string): string {
  return name.replace(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase();
}
