// The table of the audit.

import type { AuditEntry, AuditKind, AuditValue } from "../audit/audit.ts";
import type { TableSpec } from "../rows.ts";

export const auditTable: TableSpec<AuditEntry> = {
  name: "audit",
  key: ["number"],
  columns: [
    ["number", ({ number }) => number],
    ["at", ({ at }) => at],
    ["caller", ({ caller }) => caller],
    ["via", ({ via }) => via],
    ["verb", ({ verb }) => verb],
    ["kind", ({ kind }) => kind],
    ["target", ({ target }) => target],
    ["was", ({ was }) => writeValue(was)],
    ["became", ({ became }) => writeValue(became)],
    ["reason", ({ reason }) => reason],
  ],
  of: (row) => ({
    number: row.number as number,
    at: row.at as number,
    caller: row.caller as string | null,
    via: row.via as string,
    verb: row.verb as string,
    kind: row.kind as AuditKind,
    target: row.target as string,
    was: readValue(row.was),
    became: readValue(row.became),
    reason: row.reason as string | null,
  }),
};

function writeValue(value: AuditValue | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

function readValue(text: unknown): AuditValue | null {
  return text === null ? null : (JSON.parse(text as string) as AuditValue);
}
